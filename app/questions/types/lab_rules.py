"""Reads a lab from its `console` blocks, and checks it."""

import collections
import dataclasses
import difflib
import itertools
import re
from typing import NamedTuple

from markdown_it.token import Token

from app.markup import lenient_yaml
from app.markup.checked_figures import fill_figure_placeholders
from app.markup.html_renderer import render_tokens
from app.markup.markdown_tokens import get_first_line_number
from app.markup.model import NO_TEXT
from app.markup.problems import ParseContext
from app.markup.text import shorten_with_ellipsis, write_hint_for_unknown_word
from app.questions import shell
from app.questions.lab_session import (
    CommandMatcher,
    Lab,
    LabCommand,
    find_shortest_dead_end,
    find_shortest_path_by_state,
    find_shortest_solution,
)
from app.questions.option_parsing import (
    report_if_several_options_right,
    report_unticked_repeated_or_unexplained_options,
)
from app.questions.question_type import AuthoredItem, escape_typed_text

_STATE_PATTERN = r"[a-z0-9][a-z0-9-]*"
_BLOCK_INFO_PART = (
    rf"\s+(?:in\s+\[?(?P<states>{_STATE_PATTERN}(?:\s*,\s*{_STATE_PATTERN})*)\]?|to\s+(?P<to>{_STATE_PATTERN})"
    r"|(?P<flag>needed|first|harmful))(?!\S)"
)
_CHANGING_COMMAND = re.compile(
    r"(?:kill|rm|mv|cp|mkdir|touch|chmod|chown|export|cd)\s"
    r"|(?:systemctl|service)\s(?:.*\s)?(?:start|stop|restart|reload|enable|disable)\b"
)
_SHOWING_COMMAND = re.compile(
    r"(?:cat|ls|ps|df|du|free|top|dmesg|journalctl)\b|(?:systemctl|service)\s(?:.*\s)?status\b"
)
# What other programs write for any text. A star alone may also be every file of a folder.
_FOREIGN_WILDCARD = re.compile(r"(?:(?<!\S)|(?<==))(\.\.\.|\[\.\.\.\]|\.\*|<[\w -]+>)(?!\S)")
_SHELL_STAR = re.compile(
    r"(?!(?:cat|ch\w+|cp|du|e?grep|file|head|less|ls|mv|rm|stat|tail|wc) ).+ (\*)"
)
# A prompt of another shell, or of root, before a command.
_OTHER_PROMPT = re.compile(
    r"(?:\[?[\w.-]+@[\w.-]+[: ][^$#%>]*[$#%>]|[#%>]) *(?P<command>[a-z][\w.-]*(?: .*)?)$"
)
_MAX_COUNT_BY_PART = {"commands": 80, "states": 12, "goals": 8, "lines": 200, "letters": 200}


def parse_lab(authored: AuthoredItem) -> Lab:
    """Read the commands of all blocks; malformed blocks are reported (E89)."""
    comment = authored.comment
    goal = lenient_yaml.collect_texts_of_node(comment.fields.values.get("goal"))
    steps: dict[tuple[str, bool], int] = {}
    commands: list[LabCommand] = []
    tokens = authored.parts.answer_block
    fences = [n for n, t in enumerate(tokens) if t.type == "fence" and t.level == tokens[0].level]
    for start, end in itertools.pairwise([*fences, len(tokens)]):
        block = _parse_console_block(tokens[start], tokens[start + 2 : end - 1], authored)
        # Needed in two states, a command is one step, for which either answer counts. Wanted before
        # the repair (`first`) and needed after it, it is two.
        names = [
            (spelling.plain, c.first) for c in block if c.is_needed for spelling in c.spellings
        ]
        step = next((steps[name] for name in names if name in steps), 0)
        block = [dataclasses.replace(c, step=step or c.step) for c in block]
        steps |= dict.fromkeys(names, max((c.step for c in block), default=0))
        commands += block
    return Lab(
        tuple(commands),
        escape_typed_text(comment.field_text("host") or "lab"),
        comment.field_text("start") or "start",
        tuple(dict.fromkeys(s.strip() for text in goal for s in text.text.split(",") if s.strip())),
    )


def _parse_console_block(
    fence: Token, note_tokens: list[Token], authored: AuthoredItem
) -> list[LabCommand]:
    """Read the commands of a fence, and their note from the inside of the quote below it."""
    parse_context, line = authored.parse_context, get_first_line_number(fence)
    info = fence.info.strip()
    if re.sub(_BLOCK_INFO_PART, "", info) != "console":
        message = f"“{info[:60]}” is not read."
        hint = "Write console, and behind it in STATE (several: in ONE, TWO), to STATE, needed, "
        hint += "first or harmful."
        parse_context.report("E89", line, 1, message, hint)
        return []
    note = render_tokens(note_tokens, authored.context)
    parts = list(re.finditer(_BLOCK_INFO_PART, info))
    states = tuple(re.findall(_STATE_PATTERN, " ".join(p["states"] for p in parts if p["states"])))
    to = next((p["to"] for p in parts if p["to"]), "")
    flags = {p["flag"] for p in parts}
    step, harmful = line if flags & {"needed", "first"} else 0, "harmful" in flags
    base = LabCommand((), NO_TEXT, states, to, harmful, note, step=step, first="first" in flags)
    spans = [c.content for t in note_tokens for c in t.children or () if c.type == "code_inline"]
    commands: list[LabCommand] = []
    for number, spellings, output_lines in _split_block_into_commands(fence, parse_context):
        text = "\n".join(output_lines).strip("\n")
        cue = next((s for s in spans if s in text), "")
        output, cue_text, *names = map(escape_typed_text, (text, cue, *spellings))
        command = dataclasses.replace(base, spellings=tuple(names), output=output, cue=cue_text)
        commands.append(dataclasses.replace(command, line=number))
    if not commands:
        message = "This console block has no command."
        parse_context.report("E89", line, 1, message, "Begin a line with $ and the command.")
    elif len(commands) > 1 and (to or harmful):
        message = f"This block has {len(commands)} commands, and says what one does."
        hint = "Give each its own block; spellings of one command stand right below each other."
        parse_context.report("E89", commands[1].line, 1, message, hint)
    return commands


class _TranscriptCommand(NamedTuple):
    line: int
    spellings: list[str]
    output_lines: list[str]


def _split_block_into_commands(
    fence: Token, parse_context: ParseContext
) -> list[_TranscriptCommand]:
    """Return the commands of a block: `$` lines in a row are spellings of one.

    A line of an output that is likely a command behind another prompt is reported (W89).
    """
    first, commands = get_first_line_number(fence) + 1, list[_TranscriptCommand]()
    for number, raw in enumerate(fence.content.expandtabs().split("\n"), first):
        text = fill_figure_placeholders(raw.rstrip(), number, parse_context)
        if prompt := re.match(r"\$ +(?=\S)" if number > first else r"[$#] +(?=\S)", text):
            if not commands or commands[-1].output_lines:
                commands.append(_TranscriptCommand(number, [], []))
            commands[-1].spellings.append(text[prompt.end() :])
        elif commands:
            commands[-1].output_lines.append(text)
            prompt_match = _OTHER_PROMPT.match(text)
            if prompt_match and prompt_match["command"].split()[0] in shell.load_program_specs():
                message = f"“{text[:40]}” is read as output, not as a command."
                parse_context.report(
                    "W89",
                    number,
                    1,
                    message,
                    f"Write $ {shorten_with_ellipsis(prompt_match['command'])}",
                )
        elif text:
            message = f"“{text[:40]}” stands before the first command."
            hint = "Begin the block with $ and a command."
            parse_context.report("E89", number, 1, message, hint)
    return commands


def report_lab_problems(lab: Lab, authored: AuthoredItem) -> None:
    """Report problems of options, commands and states, and a goal not reached without harm.

    Problem codes: E20 to E23, E88 to E93, W25, W89.
    """
    options, parse_context = authored.parts.options, authored.parse_context
    if len(options) < 2:
        message = "The lab asks for no diagnosis: fewer than two options stand below its blocks."
        hint = "Write what is wrong as - [x] text, and two likely mistakes as - [ ] text."
        parse_context.report("E22", authored.answer_or_item_line, 1, message, hint)
    else:
        report_unticked_repeated_or_unexplained_options(
            options, authored.answer_or_item_line, parse_context
        )
    report_if_several_options_right(options, "diagnoses", parse_context)
    checked = len(parse_context.problems)
    _report_exceeded_size_limits(lab, authored)
    _report_command_problems(lab, parse_context)
    _report_unknown_states(lab, authored)
    if any(p.severity == "error" for p in parse_context.problems[checked:]):
        return
    _report_ambiguous_commands(lab, parse_context)
    _report_unreachable_states(lab, authored)
    _report_ineffective_commands(lab, parse_context)
    _report_contradictory_facts(lab, parse_context)


def _report_exceeded_size_limits(lab: Lab, authored: AuthoredItem) -> None:
    report, line = authored.parse_context.report, authored.source.line
    if not lab.commands:
        hint = "Write a block ```console with lines that begin with $."
        report("E89", line, 1, "The lab has no command.", hint)
    counts = {"commands": lab.commands, "states": lab.states, "goals": lab.goal_ids}
    for label, parts in counts.items():
        if len(parts) > _MAX_COUNT_BY_PART[label]:
            message = f"The lab has {len(parts)} {label}."
            report("E88", line, 1, message, f"Use at most {_MAX_COUNT_BY_PART[label]}.")


def _report_command_problems(lab: Lab, parse_context: ParseContext) -> None:
    """Report faults of each command by itself: size, spellings, note (E88, E89, W25, W89)."""
    for command in lab.commands:
        lines = command.output.plain.split("\n")
        if (
            len(lines) > _MAX_COUNT_BY_PART["lines"]
            or max(map(len, lines)) > _MAX_COUNT_BY_PART["letters"]
        ):
            message = f"The output of “{command.first_spelling[:40]}” is too long."
            hint = f"Write at most {_MAX_COUNT_BY_PART['lines']} lines of {_MAX_COUNT_BY_PART['letters']} characters."
            parse_context.report("E88", command.line, 1, message, hint)
        for spelling in command.spellings:
            _report_bad_wildcards(spelling.plain, command.line, parse_context)
            try:
                pipelines = len(shell.parse_shell_line(spelling.plain))
            except shell.UnclosedQuoteError:
                pipelines = 0
            if pipelines != 1:
                message = f"“{spelling.plain[:40]}” is not one command."
                hint = "Close its quotation marks, and give a second command its own line."
                parse_context.report("E89", command.line, 1, message, hint)
        if (command.is_needed or command.harmful or command.to) and not command.note.html:
            effect = "would have done" if command.harmful else "shows or does"
            message = f"Nothing says what “{command.first_spelling[:40]}” {effect}."
            hint = "Write a quote right below its block: > and a sentence."
            parse_context.report("W25", command.line, 1, message, hint)
        if command.first and {*lab.states} <= {*lab.list_states_in_which_needed(command)}:
            message = f"“{command.first_spelling[:40]}” cannot be first: no command leads to another state."
            parse_context.report("W89", command.line, 1, message, "Write needed in place of first.")
        names = [s.plain.removeprefix("sudo ") for s in command.spellings]
        changing = [name for name in names if _CHANGING_COMMAND.match(name)]
        showing = [name for name in names if _SHOWING_COMMAND.match(name)]
        if changing and showing and not command.harmful:
            message = f"“{changing[0][:40]}” and “{showing[0][:40]}” stand right below each other, "
            message += "which makes them spellings of one command."
            hint = "Leave a line empty between them, if they are two."
            parse_context.report("W89", command.line, 1, message, hint)


def _report_bad_wildcards(spelling: str, line: int, parse_context: ParseContext) -> None:
    """Report E89 and W89: a `…` that matches nothing, and another sign in its place."""
    words = shell.strip_sudo_and_variables(spelling.split())
    program = words[2:3] if words[:1] == ["ssh"] else words[:1]
    if any(shell.ANY_TEXT in word for word in program):
        message = f"“{spelling[:40]}” answers nothing: … cannot stand for a program."
        parse_context.report("E89", line, 1, message, "Write its name, and … behind it.")
    elif match := _FOREIGN_WILDCARD.search(spelling) or _SHELL_STAR.fullmatch(spelling):
        message = f"“{match[1]}” in “{spelling[:40]}” has to be typed as it stands."
        parse_context.report("W89", line, 1, message, "For any text write … there.")


def _report_unknown_states(lab: Lab, authored: AuthoredItem) -> None:
    """Report each named state that does not exist (E91), once."""
    report, states = authored.parse_context.report, lab.states
    lines = {state: c.line for c in reversed(lab.commands) for state in c.states}
    named_states = collections.Counter([*lab.goal, *(s for c in lab.commands for s in c.states)])
    unnamed_targets = {c.to: c.line for c in lab.commands if c.to and c.to not in named_states}
    for state in [s for s in named_states if s not in states]:
        # A misspelled “to STATE” is the fault of one line, and not of all that name the state.
        close_matches = (
            difflib.get_close_matches(state, unnamed_targets, 1) if named_states[state] > 1 else []
        )
        hint = write_hint_for_unknown_word(state, states)
        if close_matches:
            message = f"Only this block says “{close_matches[0]}”."
            hint = f"Did you mean “{state}”?"
            report("E91", unnamed_targets[close_matches[0]], 1, message, hint)
        elif state in lab.goal:
            location = authored.comment.field_location("goal")
            hint = hint or f"Write to {state} at one of the blocks."
            if " " in state:
                hint = f"Put commas between states: goal: {', '.join(state.split())}"
            report("E91", *location, f"No command leads to the goal “{state}”.", hint)
        else:
            report("E91", lines[state], 1, f"The lab is never in the state “{state}”.", hint)


def _report_ambiguous_commands(lab: Lab, parse_context: ParseContext) -> None:
    """Report commands with several answers in a state (E90)."""
    matcher = CommandMatcher(lab)
    for index, command in enumerate(lab.commands):
        for state, spelling in itertools.product(command.states or lab.states, command.spellings):
            sample = spelling.plain.replace(shell.ANY_TEXT, "text")
            typed = shell.parse_shell_line(sample)[0].commands
            variables = matcher.count_variables_by_matching_command(typed)
            earlier_commands = [
                earlier
                for n in matcher.rank_command_indices_in_state(state, typed)
                if n < index and variables[n] == variables.get(index)
                if _command_specificity(earlier := lab.commands[n]) == _command_specificity(command)
            ]
            if earlier_commands:
                line = earlier_commands[0].line
                message = f"“{spelling.plain[:40]}” has an answer in line {line} already, "
                message += f"in the state “{state}”."
                hint = "Say with in STATE when each counts, or delete one."
                if command.states:
                    hint = f"Take {state} away from the in of one of the two, or delete one."
                parse_context.report("E90", command.line, 1, message, hint)
                break


def _command_specificity(command: LabCommand) -> tuple[bool, bool, bool]:
    """Return what decides between commands that mean the same."""
    names = [s.plain for s in command.spellings]
    return (
        bool(command.states),
        any(shell.ANY_TEXT in name for name in names),
        any(shell.may_any_text_follow_spelling(name) for name in names),
    )


def _report_unreachable_states(lab: Lab, authored: AuthoredItem) -> None:
    """Report states and goals not always reachable without harm (E91 to E93, W89)."""
    parse_context, sequences = authored.parse_context, find_shortest_path_by_state(lab)
    for command in lab.commands:
        if command.to and command.to not in sequences:
            message = f"The state “{command.to}” cannot be reached."
            hint = "Check in which states its command counts."
            parse_context.report("E91", command.line, 1, message, hint)
    location = authored.comment.field_location("goal")
    harmless_path = find_shortest_solution(lab)
    any_path = find_shortest_solution(lab, allow_harmful=True)
    if not lab.goal_ids:
        hint = "Write goal: and a state, or needed at a block."
        parse_context.report("E92", *location, "The lab has no goal.", hint)
    elif harmless_path is None:
        which = "Only a harmful" if any_path else "No"
        hint = "Check the states of the commands that lead there."
        parse_context.report("E92", *location, f"{which} command reaches the goal.", hint)
    elif any_path is not None and len(any_path) < len(harmless_path):
        harmful = next(lab.commands[n] for n in any_path if lab.commands[n].harmful)
        message = f"The harmful “{harmful.first_spelling[:40]}” is a shorter way to the goal."
        hint = "Take its to STATE away: the lab stops it and says what it would have done."
        parse_context.report("E93", harmful.line, 1, message, hint)
    elif dead_end := find_shortest_dead_end(lab):
        last = lab.commands[dead_end.command_indices[-1]]
        goal = min(dead_end.lost_goals, default="")
        message = (
            f"After “{last.first_spelling[:40]}” no command leads to the goal “{goal}” any more."
        )
        hint = f"Let one lead there from {last.to}, or say with in STATE when this one counts."
        if goal.startswith("#"):
            needed = lab.commands[int(goal[1:])].first_spelling[:40]
            message = (
                f"After “{last.first_spelling[:40]}” the needed “{needed}” does not count any more."
            )
            hint = f"Answer it in {last.to} as well, with needed; or write first in place of "
            hint += "needed: it has to be run before."
        parse_context.report("W89", last.line, 1, message, hint)


def _report_ineffective_commands(lab: Lab, parse_context: ParseContext) -> None:
    """Warn about a command to a state in which all answers are those of the previous state (W89)."""
    matcher = CommandMatcher(lab)
    answers = {state: matcher.list_available_command_indices(state) for state in lab.states}
    for index, command in enumerate(lab.commands):
        states = {s for s in command.states or lab.states if index in answers[s]} - {command.to}
        if any(answers[state] == answers.get(command.to) for state in states):
            message = f"After “{command.first_spelling[:40]}” every command answers as before."
            hint = f"Write an answer with in {command.to}, so that its effect is seen."
            parse_context.report("W89", command.line, 1, message, hint)


class StatedFact(NamedTuple):
    value: str
    command: LabCommand


def _report_contradictory_facts(lab: Lab, parse_context: ParseContext) -> None:
    """Warn about outputs that contradict each other (W89).

    The facts, and whether they hold in all states, are listed in lab_programs.toml.
    """
    seen: dict[str, list[StatedFact]] = {}
    facts = [f for spec in shell.load_program_specs().values() for f in spec.get("facts", ())]
    for fact, command in itertools.product(facts, lab.commands):
        for subject, value in re.findall(fact["pattern"], command.output.plain):
            name = fact["name"].format(subject)
            for earlier in seen.setdefault(name, []):
                earlier_states = earlier.command.states or lab.states
                states = set(command.states or lab.states) & set(earlier_states)
                if earlier.value != value and (states or fact["lasts"]):
                    line = earlier.command.line
                    message = f"Here {name} is {value}, in line {line} it is {earlier.value}."
                    hint = "Make both the same, or say with in STATE when each counts."
                    parse_context.report("W89", command.line, 1, message, hint)
                    break
            seen[name].append(StatedFact(value, command))
