"""Labs: what a terminal answers, replayed from the typed lines; and the shortest way to the goal."""

import dataclasses
import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from app.markup.model import NO_TEXT, RichText
from app.markup.text import closest_word
from app.questions import lab_tables, shell
from app.questions.shell import ShellCommand, ShellPipeline

_HELP = """\
This lab answers {programs}.
Also: man PROGRAM, history, clear. Behind a command: | grep, head, tail, wc, sort, uniq, awk, less.
Arrow up brings back what you typed, Tab completes a program or an option."""


_SILENT = ("clear", "cd", "export", "unset", "alias", "bash", "screen", "tmux", "set", "true")


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
    def needed(self) -> bool:
        return self.step > 0

    @property
    def name(self) -> str:
        """Return its first spelling."""
        return self.spellings[0].plain

    @property
    def sample_line(self) -> str:
        """Return what a learner could type."""
        return self.name.replace(shell.ANYTHING, "text")

    @property
    def cue_line(self) -> str:
        """Return the line of the output that matters; empty if the note points at none."""
        cue = self.cue.plain
        return next((line for line in self.output.plain.split("\n") if cue and cue in line), "")

    def has_noted_word(self, output: str) -> bool:
        """Return whether an output that was cut or reordered still has a word of what matters."""
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
        needed = (n for n, command in enumerate(self.commands) if command.needed)
        return (*self.goal, *dict.fromkeys(map(self.goal_id_of_command, needed)))

    def goal_id_of_command(self, index: int) -> str:
        """Return the goal that a needed command reaches: `#` and the first one of its block."""
        steps = [command.step for command in self.commands]
        return f"#{steps.index(steps[index])}"

    def states_in_which_needed(self, command: LabCommand) -> tuple[str, ...]:
        """Return the states in which a needed command is a step: the first one for `first`."""
        return command.states or ((self.start,) if command.first else self.states)

    def goals_of_command(self, index: int, state: str) -> set[str]:
        """Return the goals that a command reaches in a state: where it leads, and its own step."""
        command = self.commands[index]
        step = command.needed and state in self.states_in_which_needed(command)
        reached = {command.to or state, *[self.goal_id_of_command(index)] * step}
        return reached & {*self.goal_ids}

    def is_goal_out_of_reach(self, state: str, reached: frozenset[str]) -> bool:
        """Return whether a goal that is missing in a state has no way left, not even a harmful one."""
        ahead = [state]
        for one in ahead:
            leading = {c.to for c in self.commands if c.to and (not c.states or one in c.states)}
            ahead += leading.difference(ahead)
        counting = (
            self.goal_id_of_command(n)
            for n, command in enumerate(self.commands)
            if command.needed and set(self.states_in_which_needed(command)) & set(ahead)
        )
        return not {*self.goal_ids} <= {*reached, *ahead, *counting}

    @property
    def states(self) -> tuple[str, ...]:
        """Return the states that the lab can be in, the first one first."""
        return tuple(dict.fromkeys([self.start, *(c.to for c in self.commands if c.to)]))


@dataclasses.dataclass(frozen=True, slots=True)
class LabEntry:
    """A typed line and its answer; `commands` are the indices of what it ran.

    `note` is what a harmful command would have done. `refused` says that nothing ran.
    """

    line: str
    output: str
    commands: tuple[int, ...] = ()
    note: RichText = NO_TEXT
    refused: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LabSession:
    """What was typed, the state that it led to, and the goals that were reached.

    `cleared` is how many entries are off the screen, `variables` what was exported, and `saved`
    what went to files, by their names.
    """

    entries: tuple[LabEntry, ...]
    state: str
    reached: frozenset[str]
    cleared: int = 0
    variables: tuple[str, ...] = ()
    saved: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def visible_entries(self) -> tuple[LabEntry, ...]:
        return self.entries[self.cleared :]

    @property
    def executed_commands(self) -> tuple[int, ...]:
        """Return the indices of all commands that ran."""
        return tuple(index for entry in self.entries for index in entry.commands)


class CommandMatcher:
    """Finds the command of a lab that a typed pipeline means."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.facts: dict[str, dict[str, str]] = {}
        """What the outputs state, by the state of the lab, as far as it was asked for; or empty."""
        self._exact: dict[tuple[ShellCommand, ...], list[int]] = defaultdict(list)
        self._wild: dict[str, list[tuple[tuple[ShellCommand, ...], int]]] = defaultdict(list)
        for index, command in enumerate(lab.commands):
            for spelling in command.spellings:
                try:
                    pipelines = shell.read_line(spelling.plain)
                except shell.UnclosedQuoteError:
                    continue
                for meaning in (p.commands for p in pipelines[:1]):
                    if shell.ANYTHING in spelling.plain or _count_variables(meaning):
                        program = meaning[0].program.rpartition(" ")[2]  # behind the host of ssh
                        self._wild[program].append((meaning, index))
                    else:
                        self._exact[meaning].append(index)
        for likely in self._wild.values():
            likely.sort(key=lambda one: shell.takes_any_rest(one[0]))

    def replay(self, lines: Sequence[str]) -> LabSession:
        """Answer the typed lines from the first state on."""
        lab = self.lab
        session = LabSession((), lab.start, frozenset({lab.start} & set(lab.goal)))
        for line in lines:
            session = _answer_line(self, session, line)
        return session

    def find_meant_commands(self, state: str, typed: Sequence[ShellCommand]) -> list[int]:
        """Return the commands that are meant in a state, the best first.

        One with more variables before it goes first, then one for certain states, then an exact
        one, and one that ends with `…` is the last.
        """
        return self._sort_applicable_commands(state, self.matching_commands(tuple(typed)))

    def matching_commands(self, typed: tuple[ShellCommand, ...]) -> dict[int, int]:
        """Return the commands that are meant in any state, exact ones first.

        The values count the variables that their spellings name.
        """
        exact = tuple(dataclasses.replace(command, variables=()) for command in typed)
        counts = dict.fromkeys(self._exact.get(exact, ()), 0)
        for meaning, index in self._wild.get(typed[0].program.rpartition(" ")[2], ()):
            if shell.pipeline_matches(meaning, typed):
                counts[index] = max(counts.get(index, 0), _count_variables(meaning))
        return counts

    def _sort_applicable_commands(
        self, state: str, variable_counts: Mapping[int, int]
    ) -> list[int]:
        """Return those that count in a state, with the number of variables of each: most first.

        Of as many, those for certain states go before the others.
        """
        states = {index: self.lab.commands[index].states for index in variable_counts}
        here = [index for index in variable_counts if not states[index] or state in states[index]]
        return sorted(here, key=lambda index: (-variable_counts[index], not states[index]))

    def find_command_and_filters(
        self, state: str, pipeline: ShellPipeline, variables: Sequence[str] = ()
    ) -> tuple[int | None, tuple[tuple[str, ...], ...]]:
        """Return the command, and the filters for its output; None if there is no such command.

        `variables` were exported before.
        """
        stages = ((*variables, *pipeline.stages[0]), *pipeline.stages[1:])
        tries = [(stages, ()), (stages[:1], stages[1:])]
        split = shell.split_into_cat_and_filter(ShellPipeline(stages)).stages
        if split != stages:
            tries.append((split[:1], split[1:]))
        for commands, filters in tries:
            meant = self.find_meant_commands(state, [shell.read_command(c) for c in commands])
            if meant:
                return meant[0], filters
        return None, stages[1:]

    def list_harmless_answers(self, state: str) -> list[lab_tables.LabAnswer]:
        """Return the harmless answers of a state with each spelling, the most special first."""
        here = self._sort_applicable_commands(
            state, {n: 0 for n, c in enumerate(self.lab.commands) if not c.harmful}
        )
        spellings: dict[int, list[ShellCommand]] = defaultdict(list)
        for meaning, indices in self._exact.items():
            for index in indices if len(meaning) == 1 else ():
                spellings[index].append(meaning[0])
        return [
            lab_tables.LabAnswer(n, one, self.lab.commands[n].output.plain)
            for n in here
            for one in spellings[n]
        ]

    def available_commands(self, state: str) -> list[int]:
        samples = enumerate(self.matches_of_first_spellings)
        return [
            index
            for index, meant in samples
            if self._sort_applicable_commands(state, meant)[:1] == [index]
        ]

    @functools.cached_property
    def matches_of_first_spellings(self) -> list[dict[int, int]]:
        """What is meant by the first spelling of each command."""
        lines = (shell.read_line(command.sample_line) for command in self.lab.commands)
        return [self.matching_commands(pipelines[0].commands) for pipelines in lines]

    @property
    def programs(self) -> list[str]:
        wild = (meaning for likely in self._wild.values() for meaning, _ in likely)
        names = (meaning[0].program for meaning in (*wild, *self._exact))
        return sorted({name.partition(" ")[0] for name in names})

    @functools.cached_property
    def options(self) -> dict[str, list[str]]:
        """The options that the spellings name, by their program."""
        names: dict[str, set[str]] = {program: set() for program in self.programs}
        for words in (s.plain.split() for c in self.lab.commands for s in c.spellings):
            for program in names.keys() & {*words[:2]}:
                names[program] |= {w.partition("=")[0] for w in words if w[0] == "-"}
        return {program: sorted(options) for program, options in names.items()}


def _count_variables(pipeline: Sequence[ShellCommand]) -> int:
    return sum(len(command.variables) for command in pipeline)


def replay(lab: Lab, lines: Sequence[str]) -> LabSession:
    """Answer the typed lines from the first state on."""
    return CommandMatcher(lab).replay(lines)


def _answer_line(terminal: CommandMatcher, session: LabSession, line: str) -> LabSession:
    lab, state, reached = terminal.lab, session.state, set(session.reached)
    outputs, indices, note, saved = [], [], NO_TEXT, session.saved
    refused, cleared, variables = False, session.cleared, session.variables
    try:
        pipelines = shell.read_line(line)
    except shell.UnclosedQuoteError:
        pipelines = ()
        refused = True
        outputs.append("bash: a quotation mark is not closed")
    queue = list(pipelines)
    while queue:
        pipeline = queue.pop(0)
        index, filters = terminal.find_command_and_filters(state, pipeline, variables)
        variables = _export_or_unset(variables, pipeline.stages[0])
        derived = index is None
        text = terminal.lab.commands[index].output.plain if index is not None else None
        if index is None:
            original, pipeline = pipeline, shell.split_into_cat_and_filter(pipeline)
            filters = pipeline.stages[1:]
            answer = _derive_output_from_other_answers(terminal, state, pipeline.commands[0])
            if answer:
                index, text = answer.source_index, answer.output
        if index is None and (several := shell.split_by_argument(pipeline)):
            queue[:0] = several
            continue
        if index is None:
            tries = (
                _answer_everyday_command(terminal, state, p.stages[0], saved)
                for p in (pipeline, original)
            )
            text = next((text for text in tries if text is not None), None)
            if text is None:
                text = _answer_builtin(terminal, session, pipeline.stages[0])
            refused = refused or text is None
            cleared = len(session.entries) + 1 if pipeline.stages[0][0] == "clear" else cleared
            if text is None:
                outputs.append(_refusal_message(terminal, pipeline.stages[0]))
                continue
        else:
            command = terminal.lab.commands[index]
            indices.append(index)
            note = command.note if command.harmful else note
            if command.to or not derived or command.has_noted_word(text or ""):
                reached |= lab.goals_of_command(index, state)
            state = command.to or state
        text = _convert_dmesg_seconds(terminal, state, pipeline.stages[0], text or "")
        text = _insert_typed_reason(text, [entry.line for entry in session.entries])
        text = _filter_output(text, filters)
        outputs.append("" if pipeline.silent else text)
        saved = _save_files(terminal, state, pipeline, text, saved)
    output = "\n".join(filter(None, outputs))
    entry = LabEntry(line, output, tuple(indices), note, refused)
    return LabSession(
        (*session.entries, entry), state, frozenset(reached), cleared, variables, saved
    )


def _export_or_unset(variables: tuple[str, ...], tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the variables after `export NAME=value` and `unset NAME`, or as they were."""
    if tokens[0] == "export":
        return shell.collect_variables([*variables, *tokens[1:]])
    if tokens[0] == "unset":
        return tuple(text for text in variables if text.partition("=")[0] not in tokens[1:])
    return variables


def _save_files(
    terminal: CommandMatcher, state: str, line: ShellPipeline, text: str, saved: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the saved files and what a pipeline, whose output is `text`, writes or copies."""
    if line.file:
        return {**saved, line.file: text}
    *tokens, target = line.stages[0]
    if tokens[:1] != ["cp"] or len(tokens) < 2:
        return saved
    meant = terminal.find_meant_commands(state, [ShellCommand("cat", (), (tokens[-1],))])
    copied = [terminal.lab.commands[n].output.plain for n in meant] or [saved.get(tokens[-1], "")]
    return {**saved, target: copied[0]} if copied[0] else saved


def _insert_typed_reason(text: str, lines: Sequence[str]) -> str:
    """Return an output with the reason that was typed last in place of `(your reason)`."""
    if "(your reason)" not in text:
        return text
    reasons = re.findall(r"(?i)\breason=(\"[^\"]+\"|'[^']+'|[^\s\"']+)", "\n".join(lines))
    reason = reasons[-1].strip("\"'")[:20] if reasons else "(your reason)"
    return re.sub(r"\(your reason\) *", lambda m: f"{reason:{len(m[0]) - 1}} ", text)


def _convert_dmesg_seconds(
    terminal: CommandMatcher, state: str, tokens: Sequence[str], text: str
) -> str:
    """Return the lines of `dmesg` with dates, as `dmesg -T` and `journalctl` print them.

    `--since yesterday` or `today` leaves out what is older.
    """
    if not {"-T", "--ctime", "journalctl"} & {*tokens}:
        return text
    facts = _find_facts(terminal, state, ["up", "day", "clock", "host"])
    up = re.match(r"up (?:(\d{1,3}) days?, +)?(?:(\d\d?):)?(\d\d?)", facts["up"])
    day = re.search(r"Nov +([1-9]|[12]\d|30)$", facts["day"])
    if not up or not day:
        return text
    hour, minute, second = map(int, facts["clock"].split(":"))
    boot = datetime(2026, 11, int(day[1]), hour, minute, second, tzinfo=UTC)
    boot -= timedelta(int(up[1] or 0), hours=int(up[2] or 0), minutes=int(up[3]))
    journal = "journalctl" in tokens
    remote = shell.read_command(tuple(tokens)).program.rpartition(" ")[0].removeprefix("ssh ")
    form = (
        f"%b %d %H:%M:%S {remote or facts['host']} kernel:" if journal else "[%a %b %e %H:%M:%S %Y]"
    )
    ages = {"yesterday": 1, "today": 0}
    first = next((int(day[1]) - ages[word] for word in tokens if word in ages), 0)
    rows = []
    for line in text.split("\n"):
        seconds = re.match(r"\[ *(\d{1,9})\.\d+\]", line)
        at = boot + timedelta(seconds=int(seconds[1])) if seconds else boot
        if not seconds or (at.month, at.day) >= (11, first):
            rows.append(f"{at:{form}}{line[len(seconds[0]) :]}" if seconds else line)
    return "\n".join(rows) or "-- No entries --"


def _filter_output(text: str, filters: Sequence[Sequence[str]]) -> str:
    for tokens in filters:
        cut = shell.apply_filter(tokens, text)
        if cut is None:
            return f"{text}\n({tokens[0]} is not part of this lab: the output is as it came.)"
        text = cut
    return text


def _derive_output_from_other_answers(
    terminal: CommandMatcher, state: str, typed: ShellCommand
) -> lab_tables.DerivedAnswer | None:
    """Return what follows from other answers in this state."""
    place, _, program = typed.program.rpartition(" ")
    prefix = f"{place} " if place else ""
    typed = dataclasses.replace(typed, program=program, variables=())

    def find(command: ShellCommand) -> int | None:
        there = dataclasses.replace(command, program=prefix + command.program)
        return next(iter(terminal.find_meant_commands(state, [there])), None)

    everyday = _load_everyday_answers_and_facts()
    for n in everyday.matcher.find_meant_commands("", [typed]):
        for line in everyday.same_lines[n]:
            index = find(shell.read_line(line)[0].commands[0])
            if index is not None:
                output = terminal.lab.commands[index].output.plain
                return lab_tables.DerivedAnswer(index, output)
    answers = [
        answer._replace(
            command=dataclasses.replace(
                answer.command, program=answer.command.program.removeprefix(prefix)
            )
        )
        if prefix
        else answer
        for answer in terminal.list_harmless_answers(state)
        if answer.command.program.rpartition(" ")[0] == place
    ]
    user = _find_facts(terminal, state, ["user"])["user"]
    return lab_tables.derive_answer(typed, find, answers, user)


@dataclasses.dataclass(frozen=True, slots=True)
class EverydayAnswers:
    """What every lab answers, and how facts are read.

    By the index of the answer: `needed_facts` are filled into it, `same_lines` are lines that
    mean the same, and `unless_named` is what a lab must not name for it to hold: command,
    program or unit.
    """

    matcher: CommandMatcher
    fact_patterns: Mapping[str, Any]
    needed_facts: tuple[tuple[str, ...], ...]
    same_lines: tuple[tuple[str, ...], ...]
    unless_named: tuple[str, ...]


@functools.cache
def _load_everyday_answers_and_facts() -> EverydayAnswers:
    file = Path(__file__).parent / "types" / "console_everyday.toml"
    spec = tomllib.loads(file.read_text(encoding="utf-8"))
    commands, unless_named = list[LabCommand](), list[str]()
    needs, same = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for answer in spec["answers"]:
        text = answer.get("output", "").lstrip("\n")
        names = tuple(RichText(escape(c), c) for c in answer["commands"])
        commands.append(LabCommand(names, RichText(escape(text), text)))
        needs.append((*answer.get("needs", ()), *re.findall(r"\{(\w+)\}", text)))
        same.append(tuple(answer.get("same", ())))
        unless_named.append(answer.get("unless_named", ""))
    return EverydayAnswers(
        CommandMatcher(Lab(tuple(commands), NO_TEXT, "", ())),
        spec["facts"],
        tuple(needs),
        tuple(same),
        tuple(unless_named),
    )


def _find_facts(terminal: CommandMatcher, state: str, names: Sequence[str]) -> dict[str, str]:
    """Return what the outputs of a lab state, those of the present state first.

    A fact that none of them states is empty.
    """
    known = terminal.facts.setdefault(state, {"host": terminal.lab.host.plain})
    wanted = [name for name in names if name not in known]
    if wanted:
        commands = terminal.lab.commands
        here = [c for c in commands if not c.states or state in c.states]
        others = [c for c in commands if c.states and state not in c.states]
        text = "\n".join(c.output.plain for c in (*here, *others))
    for name in wanted:
        fact = _load_everyday_answers_and_facts().fact_patterns[name]
        match = re.search(fact["pattern"], text)
        known[name] = next(filter(None, match.groups())) if match else fact.get("default", "")
    return {name: known[name] for name in names}


def _answer_everyday_command(
    terminal: CommandMatcher, state: str, tokens: Sequence[str], saved: Mapping[str, str]
) -> str | None:
    """Return what every lab answers, filled with the facts of this one.

    `ssh HOST COMMAND` is answered in the name of a host that the lab reaches over SSH.
    """
    everyday = _load_everyday_answers_and_facts()
    matcher, same = everyday.matcher, everyday.same_lines
    typed, remote = shell.read_command(tokens), dict[str, str]()
    command = typed
    if command.program == "cat" and tokens[-1] in saved:
        return saved[tokens[-1]]
    place, _, program = command.program.rpartition(" ")
    if place:
        if place not in {
            answer.command.program.rpartition(" ")[0]
            for answer in terminal.list_harmless_answers(state)
        }:
            return None
        remote = {"host": place.removeprefix("ssh "), "user": "root", "home": "/root"}
        command = dataclasses.replace(command, program=program)
    lines = (line for n in matcher.find_meant_commands("", [command]) for line in same[n])
    tries = [command, *(shell.read_line(line)[0].commands[0] for line in lines)]
    for index in (
        n for one in tries for n in matcher.find_meant_commands("", [one]) if not same[n]
    ):
        if _is_named_in_lab(terminal, typed, everyday.unless_named[index]):
            return None
        facts = _find_facts(terminal, state, everyday.needed_facts[index]) | remote
        if all(facts.values()):
            text = matcher.lab.commands[index].output.plain
            for name, value in facts.items():
                text = text.replace(f"{{{name}}}", value)
            return text
    files = (
        _list_files(terminal, state, command, saved) if command.program in {"ls", "stat"} else None
    )
    if files is None:
        return None
    facts = _find_facts(terminal, state, ["user", "day", "clock"]) | remote
    long = {"-l", "-g", "-s"} & dict(command.options).keys() or command.program == "stat"
    row = f"-rw-r--r-- 1 {facts['user']} {facts['user']}" + " {1:>6} Nov {2} {0}"
    dates = ("26 17:20", f"{facts['day'][-2:]} {facts['clock'][:5]}")
    names = {name.rpartition("/")[2] for name in saved}
    shown = [row.format(*f, dates[f.name in names]) if long else f.name for f in files]
    return "\n".join(shown)


def _is_named_in_lab(terminal: CommandMatcher, typed: ShellCommand, subject_kind: str) -> bool:
    """Return whether a lab's commands name the typed command in some state, or its `subject`.

    The subject is its program or unit; where it is empty, nothing is asked.
    """
    if not subject_kind or terminal.matching_commands((typed,)):
        return bool(subject_kind)
    if subject_kind == "program":
        return typed.program in terminal.programs
    units = [value for name, value in typed.options if name == "--unit"]
    units += typed.arguments[1:] if typed.program.endswith("systemctl") else ()
    commands = terminal.lab.commands
    words = {
        word.removesuffix(".service")
        for text in (s.plain for c in commands for s in c.spellings)
        for word in text.split()
    }
    words |= {m for c in commands for m in re.findall(r"([\w@.-]+)\.service\b", c.output.plain)}
    return subject_kind == "unit" and not words.isdisjoint(
        u.removesuffix(".service") for u in units
    )


def _find_local_executables(lab: Lab) -> set[str]:
    """Return the programs that the commands of a lab run from its folder, as `./name`."""
    spellings = (s.plain.split() for c in lab.commands for s in c.spellings)
    first = (word for words in spellings for word in shell.strip_wrappers(words)[:1])
    return {word.removeprefix("./") for word in first if re.fullmatch(r"\./[^/…]+", word)}


class LabFile(NamedTuple):
    name: str
    size: int


def _list_files(
    terminal: CommandMatcher, state: str, command: ShellCommand, saved: Mapping[str, str]
) -> list[LabFile] | None:
    """Return the files of a folder, or the file itself, that a lab lists or prints."""
    place = (command.arguments[0] if command.arguments else "").rstrip("/")
    printed = {
        meaning.arguments[0].removeprefix("./"): len(text) + 1
        for _, meaning, text in terminal.list_harmless_answers(state)
        if meaning.program == "cat" and len(meaning.arguments) == 1 and text[:5] != "cat: "
    }
    printed |= {name: len(text) + 1 for name, text in saved.items()}
    if place in printed:
        return [LabFile(place, printed[place])]
    listing = terminal.find_meant_commands(state, [ShellCommand("ls", (), command.arguments)])
    if listing:
        output = terminal.lab.commands[listing[0]].output.plain
        return [LabFile(name, printed.get(name, 4096)) for name in output.split()]
    here = "" if place in {"", ".", "~", "/root"} else f"{place}/"
    inside = {n.removeprefix(here): size for n, size in printed.items() if n.startswith(here)}
    names = {n.partition("/")[0]: size for n, size in inside.items() if n[0] != "/"}
    if not here:
        names |= dict.fromkeys(_find_local_executables(terminal.lab), 16384)
    if here and not names:
        return None
    return [LabFile(*item) for item in sorted(names.items())]


def _answer_builtin(
    terminal: CommandMatcher, session: LabSession, tokens: Sequence[str]
) -> str | None:
    """Return what the shell itself answers; None if it does not know the command."""
    name, *arguments = shell.strip_wrappers(tokens) or tokens
    spec = shell.known_programs().get(name)
    taken = spec and "-h" in {*spec.get("long", ()), *spec.get("ignore", ())}
    if spec and arguments in ([["--help"]] if taken else [["--help"], ["-h"]]):
        name, arguments = "man", [name]
    if name == "man" and arguments:
        return _read_manual(arguments[-1])
    if name in {"which", "type"} and arguments:
        known = {*terminal.programs, *shell.known_programs()}
        return f"/usr/bin/{arguments[-1]}" if arguments[-1] in known else ""
    history = (f"{n:5}  {entry.line}" for n, entry in enumerate(session.entries, 1))
    return {
        "help": _HELP.format(programs=", ".join(terminal.programs)),
        "history": "\n".join(history),
        "echo": " ".join(text for text in arguments if not text.startswith("$")),
        **dict.fromkeys(["su", "sudo"], "You are root already."),
        "exit": "The terminal stays open. Choose the diagnosis below when you are done.",
        **dict.fromkeys(_SILENT, ""),
    }.get(name)


def _read_manual(program: str) -> str:
    spec = shell.known_programs().get(program)
    return "\n".join(spec["about"]) if spec else f"No manual entry for {program}"


def _refusal_message(terminal: CommandMatcher, tokens: Sequence[str]) -> str:
    """Say why a command has no answer, and what has one."""
    program = shell.read_command(tokens).program.partition(" ")[0]
    programs = terminal.programs
    if program in programs:
        options = ", ".join(terminal.options[program])
        known = f" Options that it knows: {options}." if options else ""
        return f"{program}: this lab has no answer to that, or not now.{known}"
    if program in shell.known_programs():
        return f"{program}: not part of this lab, which answers {', '.join(programs)}."
    near = closest_word(program, [*programs, *shell.known_programs(), "help", "history", "clear"])
    meant = f" Did you mean {near}?" if near else ""
    return f"bash: {program[:40]}: command not found.{meant}"


def shortest_command_sequence(lab: Lab, *, allow_harmful: bool = False) -> tuple[int, ...] | None:
    """Return the fewest commands that reach every goal; None if nothing does.

    With `allow_harmful`, harmful commands may be used.
    """
    ways = {way.goal: way.path for way in _explore_states(lab, allow_harmful=allow_harmful)}
    wanted = frozenset(lab.goal_ids)
    return next((path for goal, path in ways.items() if goal.reached == wanted), None)


class DeadEnd(NamedTuple):
    """Commands after which goals are out of reach, and those goals."""

    commands: tuple[int, ...]
    lost_goals: frozenset[str]


def find_dead_end(lab: Lab) -> DeadEnd | None:
    """Return the dead end of the fewest commands; None if there is none.

    Harmful commands are not used. What is needed `first` is no goal here: that it cannot be made
    up for after a repair is what the author means.
    """
    first = {c.step for c in lab.commands if c.first}
    commands = (dataclasses.replace(c, step=0) if c.step in first else c for c in lab.commands)
    lab = dataclasses.replace(lab, commands=tuple(commands))
    ways = {way.goal: way for way in _explore_states(lab, allow_harmful=False)}
    before = defaultdict(set)
    for way in ways.values():
        for after in way.following.values():
            before[after].add(way.goal)
    safe = [goal for goal in ways if goal.reached == frozenset(lab.goal_ids)]
    for goal in safe:
        safe += before[goal].difference(safe)
    dead = next((way for goal, way in ways.items() if goal not in safe), None)
    if dead is None:
        return None
    later = [dead.goal]
    for goal in later:
        later += set(ways[goal].following.values()).difference(later)
    lost = frozenset(lab.goal_ids).difference(*(goal.reached for goal in later))
    return DeadEnd(dead.path, lost)


class StateWithGoals(NamedTuple):
    """A state of a lab, and the goals reached in it."""

    state: str
    reached: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _ReachedState:
    """A state with the goals reached, a way to it, and what each command leads to from there."""

    goal: StateWithGoals
    path: tuple[int, ...]
    following: Mapping[int, StateWithGoals]


def _explore_states(lab: Lab, *, allow_harmful: bool) -> Iterator[_ReachedState]:
    """Yield each state with the goals reached in it, by the shortest way, nearest first."""
    terminal = CommandMatcher(lab)
    usable: Mapping[str, dict[int, set[str]]] = {
        state: {
            n: lab.goals_of_command(n, state)
            for n in terminal.available_commands(state)
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


def shortest_sequences_to_states(lab: Lab) -> dict[str, tuple[int, ...]]:
    """Return the shortest way to each state that can be reached, harmful commands included."""
    ways: dict[str, tuple[int, ...]] = {}
    for way in _explore_states(lab, allow_harmful=True):
        ways.setdefault(way.goal.state, way.path)
    return ways
