"""The shell of a lab: compares command lines by meaning, and filters output.

Nothing is run. A line is split into pipelines, and a command into program, options and arguments.
The output that an author wrote is filtered by the commands after the bar.
"""

import dataclasses
import functools
import itertools
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ANYTHING = "…"
"""Stands for any text in an author's command; at its end, for any further text or none."""
_ANY_REST = "…*"
_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*\""""
_TARGET = r">{1,2}\s*(?:&[012]|[^\s|;&]+)"
_REDIRECT = re.compile(rf"{_QUOTED}|(?<!\S)(?P<redirect>[012&]?{_TARGET})")
_REDIRECTED = "\0"
_LOOP = re.compile(rf"\bfor (\w+) in ([^;]+); *do (.+?); *done\b( *{_TARGET})?")
_ECHO = re.compile(r"""\becho (?:"[^;|$"]*\$\(([^()]+)\)"|[^;|$"]*\$\(([^()]+)\))""")
_SPECIAL = re.compile(r"""[;|&<>'"\\]""")
_WRAPPERS = frozenset(["sudo", "time", "watch", "nohup", "command"])
_NAMED_ARGUMENT = re.compile(r"[A-Za-z][\w./-]*=")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=")
_WRAPPER_OPTION = re.compile(r"-[A-Za-z]|-n\d+|\d+(?:\.\d+)?")
_PAGERS = frozenset(["less", "more", "cat", "tee", "column", "hexdump", "xxd"])
_EDITORS = frozenset(["view", "vi", "vim", "nano"])
_READERS = _EDITORS | {"less", "more", "head", "tail", "grep", "egrep", "sort", "wc"}
_READERS |= {"awk", "cut", "uniq"}


class ShellOption(NamedTuple):
    name: str
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command by its meaning: program, sorted options with their values, arguments.

    Arguments of the form `NAME=value` come last, sorted. `variables` are the environment variables
    set before the program, as `NAME=value`.
    """

    program: str
    options: tuple[ShellOption, ...]
    arguments: tuple[str, ...]
    variables: tuple[str, ...] = ()

    @property
    def ssh_prefix(self) -> str:
        """The `ssh HOST` before the program of a command for another host; else empty."""
        return self.program.rpartition(" ")[0]

    @property
    def program_on_host(self) -> str:
        return self.program.rpartition(" ")[2]


@dataclasses.dataclass(frozen=True, slots=True)
class ShellPipeline:
    """Commands joined by bars, as tokens; the output goes to `file`, or to its end, if it is set."""

    stages: tuple[tuple[str, ...], ...]
    file: str = ""
    appends: bool = False

    @property
    def commands(self) -> tuple[ShellCommand, ...]:
        return tuple(map(read_command, self.stages))


def sort_options(value_by_name: Mapping[str, str]) -> tuple[ShellOption, ...]:
    return tuple(sorted(ShellOption(*option) for option in value_by_name.items()))


class UnclosedQuoteError(ValueError):
    """A line has a quote that nothing closes."""


@functools.cache
def known_programs() -> Mapping[str, Mapping[str, Any]]:
    """Return the options, aliases and manual of each program that labs and learners use."""
    file = Path(__file__).parent / "types" / "console_programs.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@functools.cache
def _program_aliases() -> Mapping[str, str]:
    """Return the name by which a program is known, for each of its other names."""
    return {
        alias: name for name, spec in known_programs().items() for alias in spec.get("also", ())
    }


@functools.lru_cache(4096)
def read_line(line: str) -> tuple[ShellPipeline, ...]:
    """Split a line at `;`, `&&` and `|`; raises UnclosedQuoteError.

    >>> [p.stages for p in read_line("dmesg -T | grep 'Xid 79' ; sinfo -R 2>/dev/null")]
    [(('dmesg', '-T'), ('grep', 'Xid 79')), (('sinfo', '-R'),)]
    """
    line = _ECHO.sub(r"\1\2", _LOOP.sub(_unroll_loop, line))
    if not _SPECIAL.search(line):  # shlex takes 50 times as long
        return tuple(ShellPipeline((tuple(line.split()),)) for _ in range(bool(line.strip())))
    redirects: list[str] = []

    def mark_redirect(match: re.Match[str]) -> str:
        if not match["redirect"]:
            return match[0]
        redirects.append(match["redirect"])
        return f" {_REDIRECTED} "

    marked_line = _REDIRECT.sub(mark_redirect, line.replace(_REDIRECTED, ""))
    reader = shlex.shlex(marked_line, posix=True, punctuation_chars=";|&")
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        tokens = list(reader)
    except ValueError as error:
        raise UnclosedQuoteError from error
    pipelines: list[list[list[str]]] = [[[]]]
    targets = [""]
    for token in tokens:
        if token in {";", "&&", "||", "&"}:
            pipelines.append([[]])
            targets.append("")
        elif token in {"|", "|&"}:
            pipelines[-1].append([])
        elif token == _REDIRECTED:
            targets[-1] = _output_target(redirects.pop(0)) or targets[-1]
        else:
            pipelines[-1][-1].append(token)
    stages = (tuple(tuple(s) for s in pipeline if s) for pipeline in pipelines)
    return tuple(
        ShellPipeline(s, target.lstrip("> "), target.startswith(">>"))
        for s, target in zip(stages, targets, strict=True)
        if s
    )


def _output_target(redirect: str) -> str:
    """Return `>` or `>>` and the file that the output goes to; empty if it goes to the screen.

    >>> [_output_target(r) for r in ("> 'a'", "&>>b", "2>/dev/null", ">&2", "> /dev/stdout")]
    ['>a', '>>b', '', '', '']
    """
    descriptor, sign, file = re.split("(>+)", redirect, maxsplit=1)
    file = file.strip(" \t'\"")
    is_to_screen = descriptor in {"0", "2"} or file[:1] == "&" or file == "/dev/stdout"
    return "" if is_to_screen else sign + file


def _unroll_loop(loop: re.Match[str]) -> str:
    """Return the body of a `for` for each of its first 16 words; `{0..7}` makes eight.

    >>> _LOOP.sub(_unroll_loop, "for i in 0 1; do ping node$i; done")
    'ping node0; ping node1'
    """
    name, word_list, body, redirect = loop.groups("")
    expanded = re.sub(
        r"\{(\d\d?)\.\.(\d\d?)\}",
        lambda m: " ".join(map(str, range(int(m[1]), int(m[2]) + 1))),
        word_list,
    )
    pieces = re.split(rf"\$(?:{name}\b|\{{{name}\}})", body)
    appending = redirect if ">>" in redirect else redirect.replace(">", ">>")
    bodies = [word.join(pieces) for word in expanded.split()[:16]]
    return "; ".join(
        text + (appending if number else redirect) for number, text in enumerate(bodies)
    )


@functools.lru_cache(4096)
def read_command(tokens: tuple[str, ...]) -> ShellCommand:
    """Return the meaning of a command: without `sudo` and path, options in their long form.

    >>> dict(read_command(("sudo", "/usr/bin/squeue", "-l", "-u", "bob")).options)
    {'--long': '', '--user': 'bob'}
    """
    unwrapped = strip_wrappers(tokens)
    if not unwrapped:
        return ShellCommand(tokens[0], (), ())
    name = unwrapped[0].rpartition("/")[2] or unwrapped[0]
    if name == "ssh" and (remote := _read_ssh_command(unwrapped)):
        return remote
    program = _program_aliases().get(name, name)
    spec = known_programs().get(program, {})
    options: list[ShellOption] = []
    arguments: list[str] = []
    position = 1
    while position < len(unwrapped):
        word = unwrapped[position]
        position += 1
        if not re.match("--?[^-]", word):
            arguments.extend(_expand_resource_alias(word, spec) if word != "--" else ())
            continue
        following = unwrapped[position] if position < len(unwrapped) else None
        parsed = _read_option(word, following, spec)
        options.extend(parsed.options)
        position += parsed.takes_following
    if spec.get("fold") and arguments[:1] == ["show"]:
        aliases = spec.get("words", {})
        arguments = [aliases.get(p, p) for a in arguments for p in a.split("=", 1)]
    if spec.get("fold"):
        arguments = [_expand_slurm_key(a.lower()) for a in arguments]
    if suffix := spec.get("suffix"):
        options = [ShellOption(o.name, o.value.removesuffix(suffix)) for o in options]
        arguments = [argument.removesuffix(suffix) for argument in arguments]
    if tokens[-1] == ANYTHING and arguments[-1:] == [ANYTHING]:
        arguments[-1] = _ANY_REST
    elif ends_with_any_rest(tokens[-1]):
        options = [ShellOption(o.name, _mark_rest(o.value, tokens[-1])) for o in options]
        arguments = [_mark_rest(argument, tokens[-1]) for argument in arguments]
    # The order of NAME=value makes no difference.
    arguments.sort(key=lambda a: a.partition("=")[0] if _NAMED_ARGUMENT.match(a) else "")
    variables = collect_variables(tokens[: len(tokens) - len(unwrapped)])
    return ShellCommand(program, tuple(sorted(options)), tuple(arguments), variables)


def ends_with_any_rest(spelling: str) -> bool:
    """Return whether any text or none may follow a spelling. After `=` a value is required.

    >>> [ends_with_any_rest(s) for s in ("ping …", "ping gpu…", "ping gpu… -q", "x reason=…")]
    [True, True, False, False]
    """
    return spelling.endswith(ANYTHING) and not spelling.endswith(f"={ANYTHING}")


def _mark_rest(piece: str, last_word: str) -> str:
    """Return a piece of a command, marked if it is the end of the last word."""
    ends = (
        piece != ANYTHING and piece.endswith(ANYTHING) and last_word.lower().endswith(piece.lower())
    )
    return f"{piece}*" if ends else piece


def _expand_slurm_key(text: str) -> str:
    """Return `nodename=` for `node=`, and `jobid=` for `job=`, which Slurm takes as well."""
    return re.sub("^job=", "jobid=", re.sub("^node=", "nodename=", text))


def _read_ssh_command(tokens: Sequence[str]) -> ShellCommand | None:
    """Return the meaning of `ssh HOST COMMAND`: the command, with the host before its program."""
    try:
        line = shlex.join(tokens[2:]) if len(tokens) > 3 else "".join(tokens[2:])
        pipelines = read_line(line)
    except UnclosedQuoteError:
        return None
    if tokens[1:2] == [] or tokens[1][0] == "-" or [len(p.stages) for p in pipelines] != [1]:
        return None
    inner = read_command(pipelines[0].stages[0])
    host = tokens[1].rpartition("@")[2]
    return dataclasses.replace(inner, program=f"ssh {host} {inner.program}")


def collect_variables(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the variables among the tokens, sorted; of one name the last.

    >>> collect_variables(["sudo", "B=1", "A=2", "B=3"])
    ('A=2', 'B=3')
    """
    last = {text.partition("=")[0]: text for text in tokens if _VARIABLE.match(text)}
    return tuple(sorted(last.values()))


def strip_wrappers(tokens: Sequence[str]) -> list[str]:
    """Return a command without `sudo`, `watch` and variables before it; empty if nothing is left."""
    rest = list(tokens)
    while rest and (
        rest[0] in _WRAPPERS
        or _VARIABLE.match(rest[0])
        or (rest[0] == "env" and len(rest) > 1 and _VARIABLE.match(rest[1]))
    ):
        wrapper = rest.pop(0) in _WRAPPERS
        while wrapper and rest and _WRAPPER_OPTION.fullmatch(rest[0]):
            rest.pop(0)
    return rest


def split_by_argument(pipeline: ShellPipeline) -> list[ShellPipeline]:
    """Return one pipeline for each argument of `systemctl stop a b` and the like; empty for one.

    >>> [p.stages for p in split_by_argument(read_line("systemctl stop a b")[0])]
    [(('systemctl', 'stop', 'a'),), (('systemctl', 'stop', 'b'),)]
    """
    unwrapped = strip_wrappers(pipeline.stages[0])
    fixed_count = known_programs().get(unwrapped[0] if unwrapped else "", {}).get("each")
    options = [text for text in unwrapped[1:] if text.startswith("-")]
    names = [text for text in unwrapped[1:] if not text.startswith("-")]
    if fixed_count is None or len(names) < fixed_count + 2:
        return []
    commands = (
        (unwrapped[0], *options, *names[:fixed_count], name) for name in names[fixed_count:]
    )
    return [
        dataclasses.replace(
            pipeline,
            stages=(command, *pipeline.stages[1:]),
            appends=pipeline.appends or number > 0,
        )
        for number, command in enumerate(commands)
    ]


def _expand_resource_alias(token: str, spec: Mapping[str, Any]) -> list[str]:
    aliases = spec.get("words", {})
    kind, slash, name = token.partition("/")
    if slash and aliases and kind and name and aliases.get(kind, kind) in aliases.values():
        return [aliases.get(kind, kind), name]
    return [aliases.get(token, token)]


class OptionsOfToken(NamedTuple):
    """The options in a token, and whether the last one's value is the following token."""

    options: list[ShellOption]
    takes_following: bool


def _read_option(token: str, following: str | None, spec: Mapping[str, Any]) -> OptionsOfToken:
    long, values = spec.get("long", {}), spec.get("values", ())
    name, equals, value = token.partition("=")
    is_single_option = (
        name.startswith("--") or name in long or name in values or spec.get("joined") is False
    )
    if not is_single_option:
        return _read_joined_options(token, following, spec)
    numbered = re.fullmatch(r"(-[A-Za-z]+)(\d[\w,.:]*)", name)
    if numbered and name not in long and not name.startswith("--"):
        name, equals, value = numbered[1], "=", numbered[2]
    name = long.get(name, name)
    takes_value = not equals and name in values and following is not None
    takes_value = takes_value and not re.match("--?[A-Za-z]", following or "")
    if name in spec.get("ignore", ()):
        return OptionsOfToken([], takes_value)
    if takes_value:
        value = following or ""
    return OptionsOfToken([ShellOption(name, value)], takes_value)


def _read_joined_options(
    token: str, following: str | None, spec: Mapping[str, Any]
) -> OptionsOfToken:
    """Read single-letter options in one token, such as `-la` or `-n50`."""
    long, values, ignored = spec.get("long", {}), spec.get("values", ()), spec.get("ignore", ())
    options: list[ShellOption] = []
    for position, letter in enumerate(token[1:], 2):
        name = long.get(f"-{letter}", f"-{letter}")
        takes_value, rest = name in values, token[position:]
        value = rest or following or "" if takes_value else ""
        if name not in ignored:
            options.append(ShellOption(name, value))
        if takes_value:
            return OptionsOfToken(options, not rest and following is not None)
    return OptionsOfToken(options, takes_following=False)


def pipeline_matches(authored: Sequence[ShellCommand], typed: Sequence[ShellCommand]) -> bool:
    """Return whether a typed pipeline means the authored one, in which `…` is any text."""
    return len(authored) == len(typed) and all(map(_command_matches, authored, typed))


def takes_any_rest(pipeline: Sequence[ShellCommand]) -> bool:
    """Return whether a pipeline has a command that ends with `…`."""
    values = ((*c.arguments, *(option.value for option in c.options)) for c in pipeline)
    return any(value.endswith(_ANY_REST) for command in values for value in command)


def _command_matches(authored: ShellCommand, typed: ShellCommand) -> bool:
    """Compare two commands piece by piece; anything or nothing may follow a last `…`.

    Variables of the author must be typed; others are ignored.

    >>> ping, = read_line("ping -q …")[0].commands
    >>> [_command_matches(ping, read_line(t)[0].commands[0]) for t in ("ping -q -c 3 a b", "ping a")]
    [True, False]
    >>> unit, = read_line("journalctl -u fabric…")[0].commands
    >>> typed = ("journalctl -u fabric", "journalctl -u fabricmanager x", "journalctl -u fab")
    >>> [_command_matches(unit, read_line(t)[0].commands[0]) for t in typed]
    [True, True, False]
    """
    for variable in authored.variables:
        if not any(_text_matches(variable, text) for text in typed.variables):
            return False
    authored_words, typed_words = [], list(typed.arguments)
    for text in authored.arguments:
        if not _NAMED_ARGUMENT.match(text):
            authored_words += [text] * (text != _ANY_REST)
        elif matching := [
            typed_word for typed_word in typed_words if _text_matches(text, typed_word)
        ]:
            typed_words.remove(matching[0])
        else:
            return False
    pieces, typed_pieces = [authored.program, *authored_words], [typed.program, *typed_words]
    if len(authored_words) > len(typed_words) or not all(map(_text_matches, pieces, typed_pieces)):
        return False
    more_options = len(typed.options) - len(authored.options)
    if not takes_any_rest([authored]):
        pairs = zip(authored.options, typed.options, strict=False)
        same_options = not more_options and all(_option_matches(a, o) for a, o in pairs)
        return same_options and len(authored_words) == len(typed_words)
    # More words may follow a word that ends with `…`; another option would be another command.
    if more_options and _ANY_REST not in authored.arguments:
        return False
    return all(any(_option_matches(a, o) for o in typed.options) for a in authored.options)


def _option_matches(authored: ShellOption, typed: ShellOption) -> bool:
    return all(map(_text_matches, authored, typed))


def _text_matches(pattern: str, text: str) -> bool:
    if ANYTHING not in pattern:
        return pattern == text
    if pattern.endswith(_ANY_REST):
        start = pattern.removesuffix(_ANY_REST)
        return _text_matches(start, text) or _text_matches(start + ANYTHING, text)
    first, *others = pattern.split(ANYTHING)
    position, last = len(first), others.pop()
    for piece in others:
        position = text.find(piece, position) + len(piece)
        if position < len(piece):
            return False
    return text.startswith(first) and text.endswith(last) and len(text) > position + len(last)


def split_into_cat_and_filter(pipeline: ShellPipeline) -> ShellPipeline:
    """Return `less FILE`, `grep WORD FILE` and the like as `cat FILE` and the filter.

    >>> split_into_cat_and_filter(read_line("grep -i xid /var/log/syslog | wc -l")[0]).stages
    (('cat', '/var/log/syslog'), ('grep', '-i', 'xid'), ('wc', '-l'))
    """
    unwrapped = strip_wrappers(pipeline.stages[0])
    if unwrapped[:1] == ["ssh"] and len(unwrapped) == 3 and "|" in unwrapped[2]:
        inner, *filters = (tuple(part.split()) for part in unwrapped[2].split("|"))
        stages = (("ssh", unwrapped[1], *inner), *filters, *pipeline.stages[1:])
        return dataclasses.replace(pipeline, stages=stages)
    if unwrapped[:1] == ["journalctl"] and (
        index := max(map(unwrapped.index, {"-g"} & {*unwrapped}), default=0)
    ):
        log = tuple(unwrapped[:index] + unwrapped[index + 2 :])
        pattern = tuple(unwrapped[index + 1 : index + 2])
        stages = (log, ("grep", "-i", *pattern), *pipeline.stages[1:])
        return dataclasses.replace(pipeline, stages=stages)
    least = 3 if unwrapped and unwrapped[0] in {"grep", "egrep", "awk", "cut"} else 2
    if len(unwrapped) < least or unwrapped[0] not in _READERS or unwrapped[-1].startswith("-"):
        return pipeline
    stages = (("cat", unwrapped[-1]), tuple(unwrapped[:-1]), *pipeline.stages[1:])
    return dataclasses.replace(pipeline, stages=stages)


def apply_filter(tokens: Sequence[str], output: str) -> str | None:
    """Return the output after a bar; None if this program is no filter of a lab.

    An option that the filter doesn't know or an unknown value gives a sentence with those that it knows.
    """
    program, arguments = tokens[0].rpartition("/")[2], list(tokens[1:])
    if program in _PAGERS | _EDITORS:
        return output
    lines = output.split("\n") if output else []
    handler = _FILTERS.get(program)
    try:
        return None if handler is None else "\n".join(handler(lines, arguments))
    except UnknownFilterOptionError:
        options = _OPTIONS_OF_FILTERS[program]
        known_options = ", ".join(f"-{letter}" for letter in options.with_value + options.flags)
        return (
            f"(Of {program}, this lab reads {known_options}, and not “{shlex.join(tokens)[:40]}”.)"
        )


class UnknownFilterOptionError(ValueError):
    """A filter has an option, or a value of an option, that labs do not interpret."""


class FilterArguments(NamedTuple):
    """The options of a filter by letter or long name, and its other arguments."""

    options: dict[str, str]
    positional: list[str]


def _split_filter_arguments(arguments: Sequence[str], letters_with_value: str) -> FilterArguments:
    options: dict[str, str] = {}
    positional: list[str] = []
    queue = list(arguments)
    while queue:
        token = queue.pop(0)
        if re.fullmatch(r"-\d+", token):
            options["n"] = token[1:]
        elif token.startswith("--"):
            options[token[2:].partition("=")[0]] = token.partition("=")[2]
        elif token.startswith("-") and len(token) > 1:
            for position, letter in enumerate(token[1:], 2):
                options[letter] = ""
                if letter in letters_with_value:
                    options[letter] = token[position:] or (queue.pop(0) if queue else "")
                    break
        else:
            positional.append(token)
    return FilterArguments(options, positional)


class FilterOptions(NamedTuple):
    """The options that a filter knows: letters with and without a value, and their long names."""

    with_value: str
    flags: str
    letter_by_long_name: Mapping[str, str]


_OPTIONS_OF_FILTERS: Mapping[str, FilterOptions] = {
    "head": FilterOptions("nc", "q", {"lines": "n", "bytes": "c", "quiet": "q"}),
    "tail": FilterOptions("nc", "qfF", {"lines": "n", "bytes": "c", "quiet": "q", "follow": "f"}),
    "wc": FilterOptions(
        "",
        "lwmcL",
        {"lines": "l", "words": "w", "chars": "m", "bytes": "c", "max-line-length": "L"},
    ),
    "sort": FilterOptions(
        "kt",
        "nhrufbs",
        {
            "key": "k",
            "field-separator": "t",
            "numeric-sort": "n",
            "human-numeric-sort": "h",
            "reverse": "r",
            "unique": "u",
            "ignore-case": "f",
            "ignore-leading-blanks": "b",
            "stable": "s",
        },
    ),
    "uniq": FilterOptions(
        "", "cdui", {"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"}
    ),
    "cut": FilterOptions(
        "dfcb",
        "s",
        {
            "delimiter": "d",
            "fields": "f",
            "characters": "c",
            "bytes": "b",
            "only-delimited": "s",
        },
    ),
}


def _read_known_options(program: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the options by letter; raises UnknownFilterOptionError.

    Several values of an option are joined by spaces.
    """
    known = _OPTIONS_OF_FILTERS[program]
    options: dict[str, str] = {}
    queue = list(arguments)
    while queue:
        token = queue.pop(0)
        if re.fullmatch(r"-\d+", token) and "n" in known.with_value:
            options["n"] = token[1:]
        elif token.startswith("--"):
            name, equals, value = token[2:].partition("=")
            letter = known.letter_by_long_name.get(name, "")
            if letter and letter in known.with_value and not equals:
                value = queue.pop(0) if queue else ""
            _add_option(options, letter, value, known)
        elif token.startswith("-") and len(token) > 1:
            for position, letter in enumerate(token[1:], 2):
                takes_value = letter in known.with_value
                value = token[position:] or (queue.pop(0) if queue else "") if takes_value else ""
                _add_option(options, letter, value, known)
                if takes_value:
                    break
    return options


def _add_option(options: dict[str, str], letter: str, value: str, known: FilterOptions) -> None:
    if not letter or letter not in known.with_value + known.flags:
        raise UnknownFilterOptionError(letter)
    options[letter] = f"{options[letter]} {value}" if options.get(letter) else value


class SignedCount(NamedTuple):
    """A number with the sign that was written before it, or none."""

    sign: str
    number: int


def _parse_signed_count(text: str) -> SignedCount:
    """Parse a count of lines or bytes; raises UnknownFilterOptionError."""
    match = re.fullmatch(r"([+-]?)([0-9]{1,6})", text)
    if match is None:
        raise UnknownFilterOptionError(text)
    return SignedCount(match[1], int(match[2]))


def _parse_count(text: str, default: int) -> int:
    digits = text.lstrip("+-")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else default


def _encode_lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _decode_lines(data: bytes) -> list[str]:
    """Return the lines of bytes that may begin or end within a character, which is left out."""
    return data.decode(errors="ignore").removesuffix("\n").split("\n")


def _head(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("head", arguments)
    sign, count = _parse_signed_count(options.get("c", options.get("n", "10")))
    data = _encode_lines(lines)
    end = max(len(data if "c" in options else lines) - count, 0) if sign == "-" else count
    return _decode_lines(data[:end]) if "c" in options else lines[:end]


def _tail(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("tail", arguments)
    sign, count = _parse_signed_count(options.get("c", options.get("n", "10")))
    data = _encode_lines(lines)
    length = len(data if "c" in options else lines)
    start = max(count - 1 if sign == "+" else length - count, 0)
    return _decode_lines(data[start:]) if "c" in options else lines[start:]


def _wc(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("wc", arguments)
    data = _encode_lines(lines)
    text = data.decode()
    counts = {
        "l": len(lines),
        "w": len(text.split()),
        "m": len(text),
        "c": len(data),
        "L": max(map(len, lines), default=0),
    }
    shown = [n for letter, n in counts.items() if letter in (options or "lwc")]
    return [" ".join(f"{n:7}" for n in shown) if len(shown) > 1 else f"{shown[0]}"]


class SortKey(NamedTuple):
    """A key of `sort -k`: from a field, counted from 0, to before the end; None for all others."""

    start: int
    end: int | None
    flags: str

    def read(self, line: str, separator: str | None) -> float | str:
        text = line
        if self.start or self.end is not None:
            text = (separator or " ").join(line.split(separator)[self.start : self.end])
        if "h" in self.flags or "n" in self.flags:
            match = re.match(r"\s*(-?\d+(?:\.\d+)?)([KMGTPE]?)", text)
            unit = "KMGTPE".find(match[2]) + 1 if match and match[2] and "h" in self.flags else 0
            return float(match[1]) * 1024**unit if match else 0.0
        return text.upper() if "f" in self.flags else text


def _parse_sort_keys(options: Mapping[str, str]) -> list[SortKey]:
    """Return the keys, or the whole line; a key without flags has those of the command."""
    command_flags = "".join({*"nhrf"} & options.keys())
    keys = []
    for text in options.get("k", "1").split() or [""]:
        match = re.fullmatch(r"([1-9]\d?)([bfhnr]*)(?:,([1-9]\d?)([bfhnr]*))?", text)
        if match is None:
            raise UnknownFilterOptionError(text)
        flags = (match[2] + (match[4] or "")).replace("b", "") or command_flags
        keys.append(SortKey(int(match[1]) - 1, int(match[3]) if match[3] else None, flags))
    return keys


def _sort(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("sort", arguments)
    keys, separator = _parse_sort_keys(options), options.get("t") or None
    if "u" in options:
        line_by_keys = dict[tuple[float | str, ...], str]()
        for line in lines:
            line_by_keys.setdefault(tuple(key.read(line, separator) for key in keys), line)
        ordered = list(line_by_keys.values())
    else:
        ordered = lines if "s" in options else sorted(lines, reverse="r" in options)
    for key in reversed(keys):
        ordered = sorted(
            ordered,
            key=functools.partial(key.read, separator=separator),
            reverse="r" in key.flags,
        )
    return ordered


def _uniq(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("uniq", arguments)
    groups = itertools.groupby(lines, str.casefold if "i" in options else None)
    runs = [[*run] for _, run in groups]
    if "d" in options:
        runs = [run for run in runs if len(run) > 1]
    if "u" in options:
        runs = [run for run in runs if len(run) == 1]
    return [f"{len(run):7} {run[0]}" if "c" in options else run[0] for run in runs]


def _awk(lines: list[str], arguments: Sequence[str]) -> list[str]:
    """Print the columns of `{print $1,$3}`, after a `/pattern/` or `NR>1` if there is one."""
    options, positional = _split_filter_arguments(arguments, "F")
    program = re.fullmatch(
        r"\s*(?:/(.*)/|NR\s*>\s*(\d))?\s*(?:\{\s*print\s*(.*?)\s*\})?\s*", "".join(positional[:1])
    )
    if program is None:
        return ["(Of awk, this lab reads /WORD/ and {print $1, $3}.)"]
    pattern, first, fields = program[1] or "", int(program[2] or 0), program[3] or "$0"
    matching_lines = _grep(lines[first:], [pattern]) if pattern else lines[first:]
    output_lines: list[str] = []
    for line in matching_lines:
        cells = line.split(options.get("F") or None)
        values = {"$0": line, "$NF": cells[-1] if cells else ""}
        values |= {f"${n}": cell for n, cell in enumerate(cells, 1)}
        field_tokens = re.findall(r"\$\w+|\"[^\"]*\"|,", fields)
        output_lines.append(
            "".join(
                " " if w == "," else values.get(w, w.strip('"') if w[0] == '"' else "")
                for w in field_tokens
            )
        )
    return output_lines


def _cut(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options = _read_known_options("cut", arguments)
    delimiter = options.get("d") or "\t"
    position_list = options.get("c", options.get("b"))
    if position_list is None and "f" not in options:
        raise UnknownFilterOptionError("no list")
    if position_list is not None:
        return ["".join(_select_positions(position_list, line)) for line in lines]
    rows = [line.split(delimiter) for line in lines if delimiter in line or "s" not in options]
    cells = (_select_positions(options["f"], row) if len(row) > 1 else row for row in rows)
    return [delimiter.join(row) for row in cells]


def _select_positions(position_list: str, pieces: Sequence[str]) -> list[str]:
    """Return the pieces at positions such as `1,3-5,8-`, in their own order.

    Raises UnknownFilterOptionError for another list.

    >>> _select_positions("4-,2", "abcde")
    ['b', 'd', 'e']
    """
    chosen = set[int]()
    for part in position_list.split(","):
        match = re.fullmatch(r"(\d{1,4})?(?:(-)(\d{1,4})?)?", part)
        if match is None or part in {"", "-"}:
            raise UnknownFilterOptionError(part)
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else len(pieces) if match[2] else first
        chosen.update(range(first, min(last, len(pieces)) + 1))
    return [piece for number, piece in enumerate(pieces, 1) if number in chosen]


def _grep(lines: list[str], arguments: Sequence[str]) -> list[str]:
    options, positional = _split_filter_arguments(arguments, "eABCm")
    patterns = _parse_grep_pattern(options.get("e") or "".join(positional[:1]), options)
    inverted = bool({"v", "invert-match"} & options.keys())
    hits = [n for n, line in enumerate(lines) if _matches_any_pattern(line, patterns) != inverted]
    if {"c", "count"} & options.keys():
        return [str(len(hits))]
    context_counts = (_parse_count(options.get(o) or options.get("C", ""), 0) for o in "BA")
    before, after = (min(count, len(lines)) for count in context_counts)
    shown_numbers = {n for hit in hits for n in range(hit - before, hit + after + 1)}
    return [lines[n] for n in sorted(shown_numbers) if 0 <= n < len(lines)]


def _matches_any_pattern(line: str, patterns: Sequence[Sequence[re.Pattern[str]]]) -> bool:
    """Return whether a line has all pieces of a pattern in order."""
    for pieces in patterns:
        position: int | None = 0
        for piece in pieces:
            match = piece.search(line, position) if position is not None else None
            position = match.end() if match else None
        if position is not None:
            return True
    return False


def _parse_grep_pattern(
    grep_pattern: str, options: Mapping[str, str]
) -> list[list[re.Pattern[str]]]:
    """Return the alternatives of a pattern, each cut at `.*`.

    `|`, `.*`, `.`, `^`, `$` and classes are interpreted; all else is literal. No piece has a
    repetition, so a search takes time in proportion to the line.
    """
    flags = re.IGNORECASE if {"i", "ignore-case"} & options.keys() else 0
    if "F" in options:
        return [[re.compile(re.escape(grep_pattern), flags)]]
    alternatives = re.split(r"\\?\|", grep_pattern)
    return [
        [
            _compile_grep_piece(p, flags, word="w" in options)
            for p in re.split(r"\.[*+]", alternative)
        ]
        for alternative in alternatives
    ]


def _compile_grep_piece(text: str, flags: int, *, word: bool) -> re.Pattern[str]:
    pattern = re.escape(text).replace(r"\.", ".")
    pattern = re.sub(r"\\\[([\w^\\-]{1,40})\\\]", r"[\1]", pattern)
    pattern = re.sub(r"\\\$$", "$", re.sub(r"^\\\^", "^", pattern))
    try:
        return re.compile(rf"\b{pattern}\b" if word and pattern else pattern, flags)
    except re.error:
        return re.compile(re.escape(text), flags)


_FILTERS: Mapping[str, Callable[[list[str], Sequence[str]], list[str]]] = {
    "grep": _grep,
    "egrep": _grep,
    "head": _head,
    "tail": _tail,
    "wc": _wc,
    "sort": _sort,
    "uniq": _uniq,
    "awk": _awk,
    "cut": _cut,
}
