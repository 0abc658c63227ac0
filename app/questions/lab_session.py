"""Labs: the terminal session replayed from the typed lines, and the shortest path to the goal."""

import dataclasses
import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from app.markup.model import NO_TEXT, RichText
from app.markup.text import find_closest_word_or_empty
from app.questions import lab_derived_answers, shell, text_filters
from app.questions.shell import ShellCommand, ShellPipeline

_HELP_TEXT = """\
This lab answers {programs}.
Also: man PROGRAM, history, clear. Behind a command: | grep, head, tail, wc, sort, uniq, awk, less.
Arrow up brings back what you typed, Tab completes a program or an option."""


_SILENT_COMMANDS = (
    "clear",
    "cd",
    "export",
    "unset",
    "alias",
    "bash",
    "screen",
    "tmux",
    "set",
    "true",
)


@dataclasses.dataclass(frozen=True, slots=True)
class LabCommand:
    """A command that a lab answers, in all its spellings.

    It counts in `states`, or in all if there are none, and leads to the state `to`. `note` says
    what matters, and `cue` is the piece of the output that it points at. `line` is its place in
    the file. A needed command has a `step`, the line of its block; of those with the same, one is
    enough. `first` says that one is needed in `states` alone, or in the first state if there are none.
    """

    spellings: tuple[RichText, ...]
    output: RichText
    states: tuple[str, ...] = ()
    to: str = ""
    harmful: bool = False
    note: RichText = NO_TEXT
    cue: RichText = NO_TEXT
    line: int = 0
    step: int = 0
    first: bool = False

    @property
    def is_needed(self) -> bool:
        return self.step > 0

    @property
    def first_spelling(self) -> str:
        return self.spellings[0].plain

    @property
    def sample_line_without_prompt(self) -> str:
        return self.first_spelling.replace(shell.ANY_TEXT, "text")

    @property
    def cue_line(self) -> str:
        """Return the line of the output that matters; empty if the note points at none."""
        cue = self.cue.plain
        return next((line for line in self.output.plain.split("\n") if cue and cue in line), "")

    def does_output_have_cue_word(self, output: str) -> bool:
        pieces = re.findall(r"[A-Za-z]{4,}|\d{2,}", self.cue.plain)
        return not pieces or any(piece in output for piece in pieces)


@dataclasses.dataclass(frozen=True, slots=True)
class Lab:
    """The commands of a lab, its first state, and the states that are its goal."""

    commands: tuple[LabCommand, ...]
    host: RichText
    start: str
    goal: tuple[str, ...]

    @property
    def goal_ids(self) -> tuple[str, ...]:
        """Return the goal states, and `#` with the index of each needed command."""
        needed = (n for n, command in enumerate(self.commands) if command.is_needed)
        return (*self.goal, *dict.fromkeys(map(self.goal_id_of_command, needed)))

    def goal_id_of_command(self, index: int) -> str:
        """Return the goal that a needed command reaches: `#` and the first one of its block."""
        steps = [command.step for command in self.commands]
        return f"#{steps.index(steps[index])}"

    def list_states_in_which_needed(self, command: LabCommand) -> tuple[str, ...]:
        """Return the states in which a needed command is a step: the first one for `first`."""
        return command.states or ((self.start,) if command.first else self.states)

    def find_goals_reached_by_command(self, index: int, state: str) -> set[str]:
        """Return the goals that a command reaches in a state: where it leads, and its own step."""
        command = self.commands[index]
        is_step = command.is_needed and state in self.list_states_in_which_needed(command)
        reached = {command.to or state, *[self.goal_id_of_command(index)] * is_step}
        return reached & {*self.goal_ids}

    def is_goal_out_of_reach(self, state: str, reached_goals: frozenset[str]) -> bool:
        """Return whether a missing goal cannot be reached from a state, not even by harmful commands."""
        reachable_states = [state]
        for reachable_state in reachable_states:
            usable = (c for c in self.commands if not c.states or reachable_state in c.states)
            reachable_states += {c.to for c in usable if c.to}.difference(reachable_states)
        reachable_goals = (
            self.goal_id_of_command(n)
            for n, command in enumerate(self.commands)
            if command.is_needed
            and set(self.list_states_in_which_needed(command)) & set(reachable_states)
        )
        return not {*self.goal_ids} <= {*reached_goals, *reachable_states, *reachable_goals}

    @property
    def states(self) -> tuple[str, ...]:
        """Return the states that the lab can be in, the first one first."""
        return tuple(dict.fromkeys([self.start, *(c.to for c in self.commands if c.to)]))


@dataclasses.dataclass(frozen=True, slots=True)
class LabEntry:
    """A typed line and its answer; `command_indices` are the indices of what it ran.

    `harm_note` is what a harmful command would have done. `is_refused` says that nothing ran.
    """

    typed_line: str
    output: str
    command_indices: tuple[int, ...] = ()
    harm_note: RichText = NO_TEXT
    is_refused: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LabSession:
    """What was typed, the state that it led to, and the goals that were reached.

    `cleared_entry_count` is the number of entries that `clear` removed from the screen, `exported_variables` are the
    exported ones as NAME=value, and `content_by_saved_file` has the contents of written files by name.
    """

    entries: tuple[LabEntry, ...]
    state: str
    reached_goals: frozenset[str]
    cleared_entry_count: int = 0
    exported_variables: tuple[str, ...] = ()
    content_by_saved_file: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def visible_entries(self) -> tuple[LabEntry, ...]:
        return self.entries[self.cleared_entry_count :]

    @property
    def executed_command_indices(self) -> tuple[int, ...]:
        return tuple(index for entry in self.entries for index in entry.command_indices)


class AuthoredPipeline(NamedTuple):
    """A spelling of a command of the lab, by the meaning of its parts."""

    shell_commands: tuple[ShellCommand, ...]
    command_index: int


class CommandMatcher:
    """Finds the command of a lab that a typed pipeline means."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.facts_by_state: dict[str, dict[str, str]] = {}
        """Facts read from the outputs, by state of the lab; only those looked up so far."""
        self._exact: dict[tuple[ShellCommand, ...], list[int]] = defaultdict(list)
        self._with_ellipsis: dict[str, list[AuthoredPipeline]] = defaultdict(list)
        for index, command in enumerate(lab.commands):
            for spelling in command.spellings:
                try:
                    pipelines = shell.parse_shell_line(spelling.plain)
                except shell.UnclosedQuoteError:
                    continue
                for pipeline_commands in (p.commands for p in pipelines[:1]):
                    if shell.ANY_TEXT in spelling.plain or _count_variables(pipeline_commands):
                        candidates = self._with_ellipsis[
                            pipeline_commands[0].program_without_ssh_prefix
                        ]
                        candidates.append(AuthoredPipeline(pipeline_commands, index))
                    else:
                        self._exact[pipeline_commands].append(index)
        for candidates in self._with_ellipsis.values():
            candidates.sort(
                key=lambda candidate: shell.may_any_text_follow_pipeline(candidate.shell_commands)
            )

    def replay_typed_lines(self, typed_lines: Sequence[str]) -> LabSession:
        """Answer the typed lines from the first state on."""
        lab = self.lab
        session = LabSession((), lab.start, frozenset({lab.start} & set(lab.goal)))
        for line in typed_lines:
            session = _answer_typed_line(self, session, line)
        return session

    def rank_command_indices_in_state(self, state: str, typed: Sequence[ShellCommand]) -> list[int]:
        """Return the commands that are meant in a state, the best first.

        One with more variables before it goes first, then one for certain states, then an exact
        one, and one that ends with `…` is the last.
        """
        return self._sort_applicable_commands(
            state, self.count_variables_by_matching_command(tuple(typed))
        )

    def count_variables_by_matching_command(
        self, typed: tuple[ShellCommand, ...]
    ) -> dict[int, int]:
        """Return the commands that are meant in any state, exact ones first.

        The values count the variables that their spellings name.
        """
        exact = tuple(dataclasses.replace(command, environment_variables=()) for command in typed)
        counts = dict.fromkeys(self._exact.get(exact, ()), 0)
        for pipeline_commands, index in self._with_ellipsis.get(
            typed[0].program_without_ssh_prefix, ()
        ):
            if shell.pipeline_matches(pipeline_commands, typed):
                counts[index] = max(counts.get(index, 0), _count_variables(pipeline_commands))
        return counts

    def _sort_applicable_commands(
        self, state: str, variable_count_by_command: Mapping[int, int]
    ) -> list[int]:
        """Return the commands that apply in a state, those that name most variables first.

        Of equal ones, commands for certain states go before the others.
        """
        states = {index: self.lab.commands[index].states for index in variable_count_by_command}
        applicable = [n for n in variable_count_by_command if not states[n] or state in states[n]]
        return sorted(
            applicable, key=lambda index: (-variable_count_by_command[index], not states[index])
        )

    def find_command_and_filters(
        self, state: str, pipeline: ShellPipeline, exported_variables: Sequence[str] = ()
    ) -> tuple[int | None, tuple[tuple[str, ...], ...]]:
        """Return the index of the command that a pipeline means, or None, and the filters after it.

        `exported_variables` were exported before.
        """
        stages = ((*exported_variables, *pipeline.stages[0]), *pipeline.stages[1:])
        candidates = [(stages, ()), (stages[:1], stages[1:])]
        split = text_filters.rewrite_as_cat_and_filter(ShellPipeline(stages)).stages
        if split != stages:
            candidates.append((split[:1], split[1:]))
        for commands, filters in candidates:
            matches = self.rank_command_indices_in_state(
                state, [shell.normalize_shell_command(c) for c in commands]
            )
            if matches:
                return matches[0], filters
        return None, stages[1:]

    def list_harmless_answers_by_specificity(
        self, state: str
    ) -> list[lab_derived_answers.LabAnswer]:
        """Return the harmless answers of a state with each spelling, the most special first."""
        applicable = self._sort_applicable_commands(
            state, {n: 0 for n, c in enumerate(self.lab.commands) if not c.harmful}
        )
        spellings: dict[int, list[ShellCommand]] = defaultdict(list)
        for pipeline_commands, indices in self._exact.items():
            for index in indices if len(pipeline_commands) == 1 else ():
                spellings[index].append(pipeline_commands[0])
        return [
            lab_derived_answers.LabAnswer(n, spelling, self.lab.commands[n].output.plain)
            for n in applicable
            for spelling in spellings[n]
        ]

    def list_available_command_indices(self, state: str) -> list[int]:
        samples = enumerate(self.matches_of_first_spellings)
        return [n for n, m in samples if self._sort_applicable_commands(state, m)[:1] == [n]]

    @functools.cached_property
    def matches_of_first_spellings(self) -> list[dict[int, int]]:
        """For each command, what its first spelling matches: variable counts by command index."""
        lines = (
            shell.parse_shell_line(command.sample_line_without_prompt)
            for command in self.lab.commands
        )
        return [
            self.count_variables_by_matching_command(pipelines[0].commands) for pipelines in lines
        ]

    @property
    def program_names(self) -> list[str]:
        wild = (c.shell_commands for candidates in self._with_ellipsis.values() for c in candidates)
        return sorted({c[0].program.partition(" ")[0] for c in (*wild, *self._exact)})

    @functools.cached_property
    def option_names_by_program(self) -> dict[str, list[str]]:
        """The options that the spellings name, by their program."""
        names: dict[str, set[str]] = {program: set() for program in self.program_names}
        for spelling_words in (s.plain.split() for c in self.lab.commands for s in c.spellings):
            for program in names.keys() & {*spelling_words[:2]}:
                names[program] |= {w.partition("=")[0] for w in spelling_words if w[0] == "-"}
        return {program: sorted(options) for program, options in names.items()}


def _count_variables(pipeline: Sequence[ShellCommand]) -> int:
    return sum(len(command.environment_variables) for command in pipeline)


def replay_lab_lines(lab: Lab, typed_lines: Sequence[str]) -> LabSession:
    """Answer the typed lines from the first state on."""
    return CommandMatcher(lab).replay_typed_lines(typed_lines)


def _answer_typed_line(matcher: CommandMatcher, session: LabSession, typed_line: str) -> LabSession:
    lab, state, reached = matcher.lab, session.state, set(session.reached_goals)
    outputs, indices, note, saved = [], [], NO_TEXT, session.content_by_saved_file
    refused, cleared, variables = False, session.cleared_entry_count, session.exported_variables
    try:
        pipelines = shell.parse_shell_line(typed_line)
    except shell.UnclosedQuoteError:
        pipelines = ()
        refused = True
        outputs.append("bash: a quotation mark is not closed")
    queue = list(pipelines)
    while queue:
        pipeline = queue.pop(0)
        index, filters = matcher.find_command_and_filters(state, pipeline, variables)
        variables = _update_exported_variables(variables, pipeline.stages[0])
        derived = index is None
        text = matcher.lab.commands[index].output.plain if index is not None else None
        if index is None:
            original, pipeline = pipeline, text_filters.rewrite_as_cat_and_filter(pipeline)
            filters = pipeline.stages[1:]
            answer = _derive_answer_from_other_answers(matcher, state, pipeline.commands[0])
            if answer:
                index, text = answer.source_command_index, answer.output
        if index is None and (pipelines_by_argument := shell.split_pipeline_by_argument(pipeline)):
            queue[:0] = pipelines_by_argument
            continue
        if index is None:
            stages = (pipeline.stages[0], original.stages[0])
            tries = (_answer_common_command(matcher, state, s, saved) for s in stages)
            text = next((text for text in tries if text is not None), None)
            if text is None:
                text = _answer_builtin(matcher, session, pipeline.stages[0])
            refused = refused or text is None
            cleared = len(session.entries) + 1 if pipeline.stages[0][0] == "clear" else cleared
            if text is None:
                outputs.append(_explain_unanswered_command(matcher, pipeline.stages[0]))
                continue
        else:
            command = matcher.lab.commands[index]
            indices.append(index)
            note = command.note if command.harmful else note
            if command.to or not derived or command.does_output_have_cue_word(text or ""):
                reached |= lab.find_goals_reached_by_command(index, state)
            state = command.to or state
        text = lab_derived_answers.convert_dmesg_seconds_if_asked(
            pipeline.stages[0],
            text or "",
            functools.partial(_extract_facts_from_outputs, matcher, state),
        )
        text = _fill_in_typed_reason(text, [entry.typed_line for entry in session.entries])
        text = _filter_output(text, filters)
        outputs.append("" if pipeline.output_file else text)
        saved = _update_saved_files(matcher, state, pipeline, text, saved)
    output = "\n".join(filter(None, outputs))
    entry = LabEntry(typed_line, output, tuple(indices), note, refused)
    return LabSession(
        (*session.entries, entry), state, frozenset(reached), cleared, variables, saved
    )


def _update_exported_variables(
    exported_variables: tuple[str, ...], tokens: Sequence[str]
) -> tuple[str, ...]:
    """Return the variables after `export NAME=value` and `unset NAME`, or as they were."""
    if tokens[0] == "export":
        return shell.collect_environment_variables([*exported_variables, *tokens[1:]])
    if tokens[0] == "unset":
        return tuple(
            text for text in exported_variables if text.partition("=")[0] not in tokens[1:]
        )
    return exported_variables


def _update_saved_files(
    matcher: CommandMatcher,
    state: str,
    pipeline: ShellPipeline,
    output: str,
    saved_files: Mapping[str, str],
) -> Mapping[str, str]:
    if pipeline.output_file:
        earlier = (
            saved_files.get(pipeline.output_file, "") if pipeline.appends_to_output_file else ""
        )
        return {**saved_files, pipeline.output_file: "\n".join(filter(None, (earlier, output)))}
    *tokens, target = pipeline.stages[0]
    if tokens[:1] != ["cp"] or len(tokens) < 2:
        return saved_files
    matches = matcher.rank_command_indices_in_state(state, [ShellCommand("cat", (), (tokens[-1],))])
    copied_text = saved_files.get(tokens[-1], "")
    if matches:
        copied_text = matcher.lab.commands[matches[0]].output.plain
    return {**saved_files, target: copied_text} if copied_text else saved_files


def _fill_in_typed_reason(output: str, typed_lines: Sequence[str]) -> str:
    """Return an output with the reason that was typed last in place of `(your reason)`."""
    if "(your reason)" not in output:
        return output
    reasons = re.findall(r"(?i)\breason=(\"[^\"]+\"|'[^']+'|[^\s\"']+)", "\n".join(typed_lines))
    reason = reasons[-1].strip("\"'")[:20] if reasons else "(your reason)"
    return re.sub(r"\(your reason\) *", lambda m: f"{reason:{len(m[0]) - 1}} ", output)


_MAX_OUTPUT_LENGTH = 20_000  # `cat a >> a` and awk's `{print $0 $0}` double an output.


def _filter_output(text: str, filters: Sequence[Sequence[str]]) -> str:
    """Return the output after the filters, cut to its greatest length."""
    text = text[:_MAX_OUTPUT_LENGTH]
    for tokens in filters:
        filtered = text_filters.apply_text_filter(tokens, text)
        if filtered is None:
            return f"{text}\n({tokens[0]} is not part of this lab: the output is as it came.)"
        text = filtered[:_MAX_OUTPUT_LENGTH]
    return text


def _derive_answer_from_other_answers(
    matcher: CommandMatcher, state: str, typed: ShellCommand
) -> lab_derived_answers.DerivedAnswer | None:
    """Return an answer derived from other answers in this state; None if there is none."""
    ssh_prefix = typed.ssh_prefix
    prefix = f"{ssh_prefix} " if ssh_prefix else ""
    typed = dataclasses.replace(
        typed, program=typed.program_without_ssh_prefix, environment_variables=()
    )

    def find(command: ShellCommand) -> int | None:
        host_command = dataclasses.replace(command, program=prefix + command.program)
        return next(iter(matcher.rank_command_indices_in_state(state, [host_command])), None)

    everyday = _load_common_command_answers()
    for n in everyday.matcher.rank_command_indices_in_state("", [typed]):
        for line in everyday.equivalent_lines_by_answer[n]:
            index = find(shell.parse_shell_line(line)[0].commands[0])
            if index is not None:
                output = matcher.lab.commands[index].output.plain
                return lab_derived_answers.DerivedAnswer(index, output)
    answers = [
        answer._replace(
            command=dataclasses.replace(
                answer.command, program=answer.command.program_without_ssh_prefix
            )
        )
        for answer in matcher.list_harmless_answers_by_specificity(state)
        if answer.command.ssh_prefix == ssh_prefix
    ]
    user = _extract_facts_from_outputs(matcher, state, ["user"])["user"]
    return lab_derived_answers.derive_answer_from_other_answers(typed, find, answers, user)


@dataclasses.dataclass(frozen=True, slots=True)
class CommonCommandAnswers:
    """Commands that every lab answers, and patterns of the facts in their outputs.

    By the index of the answer: `fact_names_by_answer` are filled into it, `equivalent_lines_by_answer` are lines that
    mean the same, and `excluded_subject_by_answer` is what a lab must not name for it to hold: command,
    program or unit.
    """

    matcher: CommandMatcher
    pattern_by_fact_name: Mapping[str, Any]
    fact_names_by_answer: tuple[tuple[str, ...], ...]
    equivalent_lines_by_answer: tuple[tuple[str, ...], ...]
    excluded_subject_by_answer: tuple[str, ...]


@functools.cache
def _load_common_command_answers() -> CommonCommandAnswers:
    file = Path(__file__).parent / "types" / "lab_everyday.toml"
    spec = tomllib.loads(file.read_text(encoding="utf-8"))
    commands, unless_named = list[LabCommand](), list[str]()
    needed_facts, same_lines = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for answer in spec["answers"]:
        text = answer.get("output", "").lstrip("\n")
        names = tuple(RichText(escape(c), c) for c in answer["commands"])
        commands.append(LabCommand(names, RichText(escape(text), text)))
        needed_facts.append((*answer.get("needs", ()), *re.findall(r"\{(\w+)\}", text)))
        same_lines.append(tuple(answer.get("same", ())))
        unless_named.append(answer.get("unless_named", ""))
    return CommonCommandAnswers(
        CommandMatcher(Lab(tuple(commands), NO_TEXT, "", ())),
        spec["facts"],
        tuple(needed_facts),
        tuple(same_lines),
        tuple(unless_named),
    )


def _extract_facts_from_outputs(
    matcher: CommandMatcher, preferred_state: str, fact_names: Sequence[str]
) -> dict[str, str]:
    """Return facts read from the outputs of a lab, those of the preferred state first.

    A fact that no output states is empty.
    """
    known_facts = matcher.facts_by_state.setdefault(
        preferred_state, {"host": matcher.lab.host.plain}
    )
    missing = [name for name in fact_names if name not in known_facts]
    if missing:
        commands = matcher.lab.commands
        current = [c for c in commands if not c.states or preferred_state in c.states]
        other_commands = [c for c in commands if c.states and preferred_state not in c.states]
        text = "\n".join(c.output.plain for c in (*current, *other_commands))
    for name in missing:
        fact = _load_common_command_answers().pattern_by_fact_name[name]
        match = re.search(fact["pattern"], text)
        known_facts[name] = next(filter(None, match.groups())) if match else fact.get("default", "")
    return {name: known_facts[name] for name in fact_names}


def _answer_common_command(
    matcher: CommandMatcher, state: str, tokens: Sequence[str], saved_files: Mapping[str, str]
) -> str | None:
    """Return the answer to a command that every lab knows, filled with the facts of this lab.

    `ssh HOST COMMAND` is answered in the name of a host that the lab reaches over SSH.
    """
    everyday = _load_common_command_answers()
    everyday_matcher, same_lines = everyday.matcher, everyday.equivalent_lines_by_answer
    typed, remote = shell.normalize_shell_command(tokens), dict[str, str]()
    command = typed
    if command.program == "cat" and tokens[-1] in saved_files:
        return saved_files[tokens[-1]]
    if prefix := command.ssh_prefix:
        if prefix not in {
            a.command.ssh_prefix for a in matcher.list_harmless_answers_by_specificity(state)
        }:
            return None
        remote = {"host": prefix.removeprefix("ssh "), "user": "root", "home": "/root"}
        command = dataclasses.replace(command, program=command.program_without_ssh_prefix)
    lines = (
        line
        for n in everyday_matcher.rank_command_indices_in_state("", [command])
        for line in same_lines[n]
    )
    candidates = [command, *(shell.parse_shell_line(line)[0].commands[0] for line in lines)]
    for index in (
        n
        for candidate in candidates
        for n in everyday_matcher.rank_command_indices_in_state("", [candidate])
        if not same_lines[n]
    ):
        if _does_lab_mention_command(matcher, typed, everyday.excluded_subject_by_answer[index]):
            return None
        facts = (
            _extract_facts_from_outputs(matcher, state, everyday.fact_names_by_answer[index])
            | remote
        )
        if all(facts.values()):
            text = everyday_matcher.lab.commands[index].output.plain
            for name, value in facts.items():
                text = text.replace(f"{{{name}}}", value)
            return text
    lists_files = command.program in {"ls", "stat"}
    if not lists_files or (files := _list_files(matcher, state, command, saved_files)) is None:
        return None
    facts = _extract_facts_from_outputs(matcher, state, ["user", "day", "clock"]) | remote
    is_long_format = {"-l", "-g", "-s"} & dict(command.options).keys() or command.program == "stat"
    row = f"-rw-r--r-- 1 {facts['user']} {facts['user']}" + " {1:>6} Nov {2} {0}"
    dates = ("26 17:20", f"{facts['day'][-2:]} {facts['clock'][:5]}")
    names = {name.rpartition("/")[2] for name in saved_files}
    rows = [row.format(*f, dates[f.name in names]) if is_long_format else f.name for f in files]
    return "\n".join(rows)


def _does_lab_mention_command(
    matcher: CommandMatcher, typed: ShellCommand, subject_kind: str
) -> bool:
    """Return whether a lab's commands name the typed command in some state, or its `subject`.

    The subject is its program or unit; where it is empty, nothing is asked.
    """
    if not subject_kind or matcher.count_variables_by_matching_command((typed,)):
        return bool(subject_kind)
    if subject_kind == "program":
        return typed.program in matcher.program_names
    units = [value for name, value in typed.options if name == "--unit"]
    units += typed.arguments[1:] if typed.program.endswith("systemctl") else ()
    commands = matcher.lab.commands
    words = [word for c in commands for s in c.spellings for word in s.plain.split()]
    words += [m for c in commands for m in re.findall(r"([\w@.-]+\.service)\b", c.output.plain)]
    named_units = {word.removesuffix(".service") for word in words}
    is_named = not named_units.isdisjoint(u.removesuffix(".service") for u in units)
    return subject_kind == "unit" and is_named


def _find_local_executables(lab: Lab) -> set[str]:
    """Return the programs that the commands of a lab run from its folder, as `./name`."""
    spellings = (s.plain.split() for c in lab.commands for s in c.spellings)
    first = (word for words in spellings for word in shell.strip_sudo_and_variables(words)[:1])
    return {word.removeprefix("./") for word in first if re.fullmatch(r"\./[^/…]+", word)}


class LabFile(NamedTuple):
    name: str
    byte_count: int


def _list_files(
    matcher: CommandMatcher, state: str, command: ShellCommand, saved_files: Mapping[str, str]
) -> list[LabFile] | None:
    """Return the files of a folder, or the file itself, that a lab lists or prints."""
    path = (command.arguments[0] if command.arguments else "").rstrip("/")
    file_sizes = {
        meaning.arguments[0].removeprefix("./"): len(text) + 1
        for _, meaning, text in matcher.list_harmless_answers_by_specificity(state)
        if meaning.program == "cat" and len(meaning.arguments) == 1 and text[:5] != "cat: "
    }
    file_sizes |= {name: len(text) + 1 for name, text in saved_files.items()}
    if path in file_sizes:
        return [LabFile(path, file_sizes[path])]
    listing = matcher.rank_command_indices_in_state(
        state, [ShellCommand("ls", (), command.arguments)]
    )
    if listing:
        output = matcher.lab.commands[listing[0]].output.plain
        return [LabFile(name, file_sizes.get(name, 4096)) for name in output.split()]
    folder_prefix = "" if path in {"", ".", "~", "/root"} else f"{path}/"
    files = ((n.removeprefix(folder_prefix), n, size) for n, size in file_sizes.items())
    files_inside = [(inner, size) for inner, n, size in files if n.startswith(folder_prefix)]
    names = {inner.partition("/")[0]: size for inner, size in files_inside if inner[0] != "/"}
    if not folder_prefix:
        names |= dict.fromkeys(_find_local_executables(matcher.lab), 16384)
    if folder_prefix and not names:
        return None
    return [LabFile(*item) for item in sorted(names.items())]


def _answer_builtin(
    matcher: CommandMatcher, session: LabSession, tokens: Sequence[str]
) -> str | None:
    """Return the answer of a shell builtin or manual; None if it does not know the command."""
    name, *arguments = shell.strip_sudo_and_variables(tokens) or tokens
    spec = shell.load_program_specs().get(name)
    is_h_taken = spec and "-h" in {*spec.get("long", ()), *spec.get("ignore", ())}
    if spec and arguments in ([["--help"]] if is_h_taken else [["--help"], ["-h"]]):
        name, arguments = "man", [name]
    if name == "man" and arguments:
        return _read_manual(arguments[-1])
    if name in {"which", "type"} and arguments:
        known_names = {*matcher.program_names, *shell.load_program_specs()}
        return f"/usr/bin/{arguments[-1]}" if arguments[-1] in known_names else ""
    history = (f"{n:5}  {entry.typed_line}" for n, entry in enumerate(session.entries, 1))
    return {
        "help": _HELP_TEXT.format(programs=", ".join(matcher.program_names)),
        "history": "\n".join(history),
        "echo": " ".join(text for text in arguments if not text.startswith("$")),
        **dict.fromkeys(["su", "sudo"], "You are root already."),
        "exit": "The terminal stays open. Choose the diagnosis below when you are done.",
        **dict.fromkeys(_SILENT_COMMANDS, ""),
    }.get(name)


def _read_manual(program: str) -> str:
    spec = shell.load_program_specs().get(program)
    return "\n".join(spec["about"]) if spec else f"No manual entry for {program}"


def _explain_unanswered_command(matcher: CommandMatcher, tokens: Sequence[str]) -> str:
    program = shell.normalize_shell_command(tokens).program.partition(" ")[0]
    programs = matcher.program_names
    if program in programs:
        options = ", ".join(matcher.option_names_by_program[program])
        options_text = f" Options that it knows: {options}." if options else ""
        return f"{program}: this lab has no answer to that, or not now.{options_text}"
    if program in shell.load_program_specs():
        return f"{program}: not part of this lab, which answers {', '.join(programs)}."
    known_programs = [*programs, *shell.load_program_specs(), "help", "history", "clear"]
    closest = find_closest_word_or_empty(program, known_programs)
    suggestion = f" Did you mean {closest}?" if closest else ""
    return f"bash: {program[:40]}: command not found.{suggestion}"


def find_shortest_solution(lab: Lab, *, allow_harmful: bool = False) -> tuple[int, ...] | None:
    """Return the fewest commands that reach every goal; None if nothing does.

    With `allow_harmful`, harmful commands may be used.
    """
    all_goals = frozenset(lab.goal_ids)
    states = _explore_states(lab, allow_harmful=allow_harmful)
    return next(
        (s.command_path for s in states if s.state_with_goals.reached_goals == all_goals), None
    )


class DeadEnd(NamedTuple):
    """Commands after which goals are out of reach, and those goals."""

    command_indices: tuple[int, ...]
    lost_goals: frozenset[str]


def find_shortest_dead_end(lab: Lab) -> DeadEnd | None:
    """Return the dead end of the fewest commands; None if there is none.

    Harmful commands are not used. Commands needed `first` are no goals here: they are meant to be
    impossible after a repair.
    """
    first = {c.step for c in lab.commands if c.first}
    commands = (dataclasses.replace(c, step=0) if c.step in first else c for c in lab.commands)
    lab = dataclasses.replace(lab, commands=tuple(commands))
    states = _explore_states(lab, allow_harmful=False)
    reached_states = {state.state_with_goals: state for state in states}
    predecessors = defaultdict(set)
    for reached_state in reached_states.values():
        for next_goal in reached_state.next_by_command.values():
            predecessors[next_goal].add(reached_state.state_with_goals)
    safe_goals = [goal for goal in reached_states if goal.reached_goals == frozenset(lab.goal_ids)]
    for goal in safe_goals:
        safe_goals += predecessors[goal].difference(safe_goals)
    dead_ends = (state for goal, state in reached_states.items() if goal not in safe_goals)
    if (dead_end := next(dead_ends, None)) is None:
        return None
    later_goals = [dead_end.state_with_goals]
    for goal in later_goals:
        later_goals += set(reached_states[goal].next_by_command.values()).difference(later_goals)
    lost_goals = frozenset(lab.goal_ids).difference(*(goal.reached_goals for goal in later_goals))
    return DeadEnd(dead_end.command_path, lost_goals)


class StateWithGoals(NamedTuple):
    state: str
    reached_goals: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _ReachedState:
    """A state with its goals, the shortest path to it, and where each command leads from there."""

    state_with_goals: StateWithGoals
    command_path: tuple[int, ...]
    next_by_command: Mapping[int, StateWithGoals]


def _explore_states(lab: Lab, *, allow_harmful: bool) -> Iterator[_ReachedState]:
    """Yield each state with the goals reached in it, by the shortest way, nearest first."""
    matcher = CommandMatcher(lab)
    usable: Mapping[str, dict[int, set[str]]] = {
        state: {
            n: lab.find_goals_reached_by_command(n, state)
            for n in matcher.list_available_command_indices(state)
            if allow_harmful or not lab.commands[n].harmful
        }
        for state in lab.states
    }
    first = StateWithGoals(lab.start, frozenset({lab.start} & {*lab.goal_ids}))
    paths: dict[StateWithGoals, tuple[int, ...]] = {first: ()}
    queue = [first]
    for goal in queue:
        state, reached = goal
        following = {
            index: StateWithGoals(lab.commands[index].to or state, reached | goals)
            for index, goals in usable[state].items()
        }
        yield _ReachedState(goal, paths[goal], following)
        for index, next_goal in following.items():
            if next_goal not in paths:
                paths[next_goal] = (*paths[goal], index)
                queue.append(next_goal)


def find_shortest_path_by_state(lab: Lab) -> dict[str, tuple[int, ...]]:
    """Return the shortest way to each state that can be reached, harmful commands included."""
    sequences: dict[str, tuple[int, ...]] = {}
    for reached_state in _explore_states(lab, allow_harmful=True):
        sequences.setdefault(reached_state.state_with_goals.state, reached_state.command_path)
    return sequences
