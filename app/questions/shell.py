"""The shell of a lab: reads command lines, and compares them by meaning.

Nothing is run. A line is split into pipelines, and a command into program, options and arguments.
"""

import dataclasses
import functools
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ANY_TEXT = "…"
"""Stands for any text in an author's command; at its end, for any further text or none."""
_ANY_REST = "…*"
_QUOTED_STRING_PATTERN = r"""'[^']*'|"(?:\\.|[^"\\])*\""""
_REDIRECT_TARGET_PATTERN = r">{1,2}\s*(?:&[012]|[^\s|;&]+)"
_REDIRECTION = re.compile(
    rf"{_QUOTED_STRING_PATTERN}|(?<!\S)(?P<redirect>[012&]?{_REDIRECT_TARGET_PATTERN})"
)
_REDIRECTION_PLACEHOLDER = "\0"
_FOR_LOOP = re.compile(
    rf"\bfor (\w+) in ([^;]+); *do (.+?); *done\b( *{_REDIRECT_TARGET_PATTERN})?"
)
_ECHO_OF_COMMAND = re.compile(r"""\becho (?:"[^;|$"]*\$\(([^()]+)\)"|[^;|$"]*\$\(([^()]+)\))""")
_SHELL_SPECIAL_CHARACTER = re.compile(r"""[;|&<>'"\\]""")
_WRAPPER_COMMANDS = frozenset(["sudo", "time", "watch", "nohup", "command"])
_NAMED_ARGUMENT = re.compile(r"[A-Za-z][\w./-]*=")
_VARIABLE_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")
_WRAPPER_OPTION = re.compile(r"-[A-Za-z]|-n\d+|\d+(?:\.\d+)?")


class ShellOption(NamedTuple):
    name: str
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command by its meaning: program, sorted options with their values, arguments.

    Arguments of the form `NAME=value` come last, sorted. `environment_variables` are the environment variables
    set before the program, as `NAME=value`.
    """

    program: str
    options: tuple[ShellOption, ...]
    arguments: tuple[str, ...]
    environment_variables: tuple[str, ...] = ()

    @property
    def ssh_prefix(self) -> str:
        """The `ssh HOST` before the program of a command for another host; else empty."""
        return self.program.rpartition(" ")[0]

    @property
    def program_without_ssh_prefix(self) -> str:
        return self.program.rpartition(" ")[2]


@dataclasses.dataclass(frozen=True, slots=True)
class ShellPipeline:
    """Commands joined by bars, as tokens; the output goes to `output_file`, or to its end, if it is set."""

    stages: tuple[tuple[str, ...], ...]
    output_file: str = ""
    appends_to_output_file: bool = False

    @property
    def commands(self) -> tuple[ShellCommand, ...]:
        return tuple(map(normalize_shell_command, self.stages))


def sort_options(value_by_name: Mapping[str, str]) -> tuple[ShellOption, ...]:
    return tuple(sorted(ShellOption(*option) for option in value_by_name.items()))


class UnclosedQuoteError(ValueError):
    """A line has a quote that nothing closes."""


@functools.cache
def load_program_specs() -> Mapping[str, Mapping[str, Any]]:
    """Return the options, aliases and manual of each program that labs and learners use."""
    file = Path(__file__).parent / "types" / "lab_programs.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@functools.cache
def _load_program_name_by_alias() -> Mapping[str, str]:
    return {
        alias: name for name, spec in load_program_specs().items() for alias in spec.get("also", ())
    }


@functools.lru_cache(4096)
def parse_shell_line(line: str) -> tuple[ShellPipeline, ...]:
    """Split a line at `;`, `&&` and `|`; raises UnclosedQuoteError.

    >>> [p.stages for p in parse_shell_line("dmesg -T | grep 'Xid 79' ; sinfo -R 2>/dev/null")]
    [(('dmesg', '-T'), ('grep', 'Xid 79')), (('sinfo', '-R'),)]
    """
    line = _ECHO_OF_COMMAND.sub(r"\1\2", _FOR_LOOP.sub(_unroll_loop, line))
    if not _SHELL_SPECIAL_CHARACTER.search(line):  # shlex takes 50 times as long
        return tuple(ShellPipeline((tuple(line.split()),)) for _ in range(bool(line.strip())))
    redirects: list[str] = []

    def mark_redirect(match: re.Match[str]) -> str:
        if not match["redirect"]:
            return match[0]
        redirects.append(match["redirect"])
        return f" {_REDIRECTION_PLACEHOLDER} "

    marked_line = _REDIRECTION.sub(mark_redirect, line.replace(_REDIRECTION_PLACEHOLDER, ""))
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
        elif token == _REDIRECTION_PLACEHOLDER:
            targets[-1] = _parse_redirect_target(redirects.pop(0)) or targets[-1]
        else:
            pipelines[-1][-1].append(token)
    stages = (tuple(tuple(s) for s in pipeline if s) for pipeline in pipelines)
    return tuple(
        ShellPipeline(s, target.lstrip("> "), target.startswith(">>"))
        for s, target in zip(stages, targets, strict=True)
        if s
    )


def _parse_redirect_target(redirect: str) -> str:
    """Return `>` or `>>` and the file that the output goes to; empty if it goes to the screen.

    >>> [_parse_redirect_target(r) for r in ("> 'a'", "&>>b", "2>/dev/null", ">&2", "> /dev/stdout")]
    ['>a', '>>b', '', '', '']
    """
    descriptor, sign, file = re.split("(>+)", redirect, maxsplit=1)
    file = file.strip(" \t'\"")
    is_to_screen = descriptor in {"0", "2"} or file[:1] == "&" or file == "/dev/stdout"
    return "" if is_to_screen else sign + file


def _unroll_loop(loop: re.Match[str]) -> str:
    """Return the body of a `for` for each of its first 16 words; `{0..7}` makes eight.

    >>> _FOR_LOOP.sub(_unroll_loop, "for i in 0 1; do ping node$i; done")
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
def normalize_shell_command(tokens: tuple[str, ...]) -> ShellCommand:
    """Return the canonical form of a command: without `sudo` and path, options in their long form.

    >>> dict(normalize_shell_command(("sudo", "/usr/bin/squeue", "-l", "-u", "bob")).options)
    {'--long': '', '--user': 'bob'}
    """
    unwrapped = strip_sudo_and_variables(tokens)
    if not unwrapped:
        return ShellCommand(tokens[0], (), ())
    name = unwrapped[0].rpartition("/")[2] or unwrapped[0]
    if name == "ssh" and (remote := _parse_ssh_command(unwrapped)):
        return remote
    program = _load_program_name_by_alias().get(name, name)
    spec = load_program_specs().get(program, {})
    options: list[ShellOption] = []
    arguments: list[str] = []
    position = 1
    while position < len(unwrapped):
        word = unwrapped[position]
        position += 1
        if not re.match("--?[^-]", word):
            arguments.extend(
                _expand_resource_alias_and_split_name(word, spec) if word != "--" else ()
            )
            continue
        following = unwrapped[position] if position < len(unwrapped) else None
        parsed = _parse_option_token(word, following, spec)
        options.extend(parsed.options)
        position += parsed.uses_following_token
    if spec.get("fold") and arguments[:1] == ["show"]:
        aliases = spec.get("words", {})
        arguments = [aliases.get(p, p) for a in arguments for p in a.split("=", 1)]
    if spec.get("fold"):
        arguments = [_expand_slurm_key(a.lower()) for a in arguments]
    if suffix := spec.get("suffix"):
        options = [ShellOption(o.name, o.value.removesuffix(suffix)) for o in options]
        arguments = [argument.removesuffix(suffix) for argument in arguments]
    if tokens[-1] == ANY_TEXT and arguments[-1:] == [ANY_TEXT]:
        arguments[-1] = _ANY_REST
    elif may_any_text_follow_spelling(tokens[-1]):
        options = [
            ShellOption(o.name, _mark_ellipsis_ending_last_word(o.value, tokens[-1]))
            for o in options
        ]
        arguments = [
            _mark_ellipsis_ending_last_word(argument, tokens[-1]) for argument in arguments
        ]
    # The order of NAME=value makes no difference.
    arguments.sort(key=lambda a: a.partition("=")[0] if _NAMED_ARGUMENT.match(a) else "")
    variables = collect_environment_variables(tokens[: len(tokens) - len(unwrapped)])
    return ShellCommand(program, tuple(sorted(options)), tuple(arguments), variables)


def may_any_text_follow_spelling(spelling: str) -> bool:
    """Return whether any text or none may follow a spelling. After `=` a value is required.

    >>> spellings = ("ping …", "ping gpu…", "ping gpu… -q", "x reason=…")
    >>> [may_any_text_follow_spelling(s) for s in spellings]
    [True, True, False, False]
    """
    return spelling.endswith(ANY_TEXT) and not spelling.endswith(f"={ANY_TEXT}")


def _mark_ellipsis_ending_last_word(piece: str, last_word: str) -> str:
    """Return a piece of a command, marked if it is the end of the last word."""
    ends = (
        piece != ANY_TEXT and piece.endswith(ANY_TEXT) and last_word.lower().endswith(piece.lower())
    )
    return f"{piece}*" if ends else piece


def _expand_slurm_key(text: str) -> str:
    """Return `nodename=` for `node=`, and `jobid=` for `job=`, which Slurm takes as well."""
    return re.sub("^job=", "jobid=", re.sub("^node=", "nodename=", text))


def _parse_ssh_command(tokens: Sequence[str]) -> ShellCommand | None:
    """Return the meaning of `ssh HOST COMMAND`: the command, with the host before its program."""
    try:
        line = shlex.join(tokens[2:]) if len(tokens) > 3 else "".join(tokens[2:])
        pipelines = parse_shell_line(line)
    except UnclosedQuoteError:
        return None
    if tokens[1:2] == [] or tokens[1][0] == "-" or [len(p.stages) for p in pipelines] != [1]:
        return None
    inner = normalize_shell_command(pipelines[0].stages[0])
    host = tokens[1].rpartition("@")[2]
    return dataclasses.replace(inner, program=f"ssh {host} {inner.program}")


def collect_environment_variables(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the variables among the tokens, sorted; of one name the last.

    >>> collect_environment_variables(["sudo", "B=1", "A=2", "B=3"])
    ('A=2', 'B=3')
    """
    last = {text.partition("=")[0]: text for text in tokens if _VARIABLE_ASSIGNMENT.match(text)}
    return tuple(sorted(last.values()))


def strip_sudo_and_variables(tokens: Sequence[str]) -> list[str]:
    """Return a command without `sudo`, `watch` and variables before it; empty if nothing is left."""
    rest = list(tokens)
    while rest and (
        rest[0] in _WRAPPER_COMMANDS
        or _VARIABLE_ASSIGNMENT.match(rest[0])
        or (rest[0] == "env" and len(rest) > 1 and _VARIABLE_ASSIGNMENT.match(rest[1]))
    ):
        wrapper = rest.pop(0) in _WRAPPER_COMMANDS
        while wrapper and rest and _WRAPPER_OPTION.fullmatch(rest[0]):
            rest.pop(0)
    return rest


def split_pipeline_by_argument(pipeline: ShellPipeline) -> list[ShellPipeline]:
    """Return one pipeline for each argument of `systemctl stop a b` and the like; empty for one.

    >>> [p.stages for p in split_pipeline_by_argument(parse_shell_line("systemctl stop a b")[0])]
    [(('systemctl', 'stop', 'a'),), (('systemctl', 'stop', 'b'),)]
    """
    unwrapped = strip_sudo_and_variables(pipeline.stages[0])
    fixed_count = load_program_specs().get(unwrapped[0] if unwrapped else "", {}).get("each")
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
            appends_to_output_file=pipeline.appends_to_output_file or number > 0,
        )
        for number, command in enumerate(commands)
    ]


def _expand_resource_alias_and_split_name(token: str, program_spec: Mapping[str, Any]) -> list[str]:
    aliases = program_spec.get("words", {})
    kind, slash, name = token.partition("/")
    if slash and aliases and kind and name and aliases.get(kind, kind) in aliases.values():
        return [aliases.get(kind, kind), name]
    return [aliases.get(token, token)]


class OptionsOfToken(NamedTuple):
    """The options in a token, and whether the last one's value is the following token."""

    options: list[ShellOption]
    uses_following_token: bool


def _parse_option_token(
    token: str, following_token: str | None, program_spec: Mapping[str, Any]
) -> OptionsOfToken:
    long, values = program_spec.get("long", {}), program_spec.get("values", ())
    name, equals, value = token.partition("=")
    is_single_option = (
        name.startswith("--")
        or name in long
        or name in values
        or program_spec.get("joined") is False
    )
    if not is_single_option:
        return _parse_joined_options(token, following_token, program_spec)
    numbered = re.fullmatch(r"(-[A-Za-z]+)(\d[\w,.:]*)", name)
    if numbered and name not in long and not name.startswith("--"):
        name, equals, value = numbered[1], "=", numbered[2]
    name = long.get(name, name)
    takes_value = not equals and name in values and following_token is not None
    takes_value = takes_value and not re.match("--?[A-Za-z]", following_token or "")
    if name in program_spec.get("ignore", ()):
        return OptionsOfToken([], takes_value)
    if takes_value:
        value = following_token or ""
    return OptionsOfToken([ShellOption(name, value)], takes_value)


def _parse_joined_options(
    token: str, following_token: str | None, program_spec: Mapping[str, Any]
) -> OptionsOfToken:
    """Read single-letter options in one token, such as `-la` or `-n50`."""
    long, values, ignored = (
        program_spec.get("long", {}),
        program_spec.get("values", ()),
        program_spec.get("ignore", ()),
    )
    options: list[ShellOption] = []
    for position, letter in enumerate(token[1:], 2):
        name = long.get(f"-{letter}", f"-{letter}")
        takes_value, rest = name in values, token[position:]
        value = rest or following_token or "" if takes_value else ""
        if name not in ignored:
            options.append(ShellOption(name, value))
        if takes_value:
            return OptionsOfToken(options, not rest and following_token is not None)
    return OptionsOfToken(options, uses_following_token=False)


def pipeline_matches(authored: Sequence[ShellCommand], typed: Sequence[ShellCommand]) -> bool:
    """Return whether a typed pipeline means the authored one, in which `…` is any text."""
    return len(authored) == len(typed) and all(map(_command_matches, authored, typed))


def may_any_text_follow_pipeline(pipeline: Sequence[ShellCommand]) -> bool:
    """Return whether a pipeline has a command that ends with `…`."""
    values = ((*c.arguments, *(option.value for option in c.options)) for c in pipeline)
    return any(value.endswith(_ANY_REST) for command in values for value in command)


def _command_matches(authored: ShellCommand, typed: ShellCommand) -> bool:
    """Compare two commands piece by piece; anything or nothing may follow a last `…`.

    Variables of the author must be typed; others are ignored.

    >>> ping, = parse_shell_line("ping -q …")[0].commands
    >>> typed = ("ping -q -c 3 a b", "ping a")
    >>> [_command_matches(ping, parse_shell_line(t)[0].commands[0]) for t in typed]
    [True, False]
    >>> unit, = parse_shell_line("journalctl -u fabric…")[0].commands
    >>> typed = ("journalctl -u fabric", "journalctl -u fabricmanager x", "journalctl -u fab")
    >>> [_command_matches(unit, parse_shell_line(t)[0].commands[0]) for t in typed]
    [True, True, False]
    """
    for variable in authored.environment_variables:
        if not any(_text_matches(variable, text) for text in typed.environment_variables):
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
    if not may_any_text_follow_pipeline([authored]):
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
    if ANY_TEXT not in pattern:
        return pattern == text
    if pattern.endswith(_ANY_REST):
        start = pattern.removesuffix(_ANY_REST)
        return _text_matches(start, text) or _text_matches(start + ANY_TEXT, text)
    first, *others = pattern.split(ANY_TEXT)
    position, last = len(first), others.pop()
    for piece in others:
        position = text.find(piece, position) + len(piece)
        if position < len(piece):
            return False
    return text.startswith(first) and text.endswith(last) and len(text) > position + len(last)
