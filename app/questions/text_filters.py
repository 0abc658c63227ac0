"""The text filters of a lab, such as `grep` and `sort`: what they leave of an output.

Nothing is run. A filter knows the options that labs read; it refuses one that the program doesn't
have as the program does, and says of any other one that labs don't read it.
"""

import dataclasses
import functools
import itertools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from app.questions.shell import ShellPipeline, strip_sudo_and_variables

_PAGERS = frozenset(["less", "more", "cat", "tee", "column", "hexdump", "xxd"])
_EDITORS = frozenset(["view", "vi", "vim", "nano"])
_READERS = _EDITORS | {"less", "more", "head", "tail", "grep", "egrep", "sort", "wc"}
_READERS |= {"awk", "cut", "uniq"}


def rewrite_as_cat_and_filter(pipeline: ShellPipeline) -> ShellPipeline:
    """Return `less FILE`, `grep WORD FILE` and the like as `cat FILE` and the filter.

    >>> from app.questions.shell import parse_shell_line
    >>> rewrite_as_cat_and_filter(parse_shell_line("grep -i xid /var/log/syslog | wc -l")[0]).stages
    (('cat', '/var/log/syslog'), ('grep', '-i', 'xid'), ('wc', '-l'))
    """
    unwrapped = strip_sudo_and_variables(pipeline.stages[0])
    if unwrapped[:1] == ["ssh"] and len(unwrapped) == 3 and "|" in unwrapped[2]:
        inner, *filters = (tuple(part.split()) for part in unwrapped[2].split("|"))
        stages = (("ssh", unwrapped[1], *inner), *filters, *pipeline.stages[1:])
        return dataclasses.replace(pipeline, stages=stages)
    if unwrapped[:1] == ["journalctl"] and (
        index := max(map(unwrapped.index, {"-g"} & {*unwrapped}), default=0)
    ):
        log = tuple(unwrapped[:index] + unwrapped[index + 2 :])
        pattern = tuple(unwrapped[index + 1 : index + 2])
        stages = (log, ("grep", "-iE", *pattern), *pipeline.stages[1:])
        return dataclasses.replace(pipeline, stages=stages)
    least = 3 if unwrapped and unwrapped[0] in {"grep", "egrep", "awk", "cut"} else 2
    if len(unwrapped) < least or unwrapped[0] not in _READERS or unwrapped[-1].startswith("-"):
        return pipeline
    stages = (("cat", unwrapped[-1]), tuple(unwrapped[:-1]), *pipeline.stages[1:])
    return dataclasses.replace(pipeline, stages=stages)


def apply_text_filter(filter_tokens: Sequence[str], text: str) -> str | None:
    """Return the output after a bar; None if this program is no filter of a lab.

    An option that the program doesn't have gives its own message; one that labs don't read, or an
    unknown value, a sentence with those that they read.
    """
    program, arguments = filter_tokens[0].rpartition("/")[2], list(filter_tokens[1:])
    if program in _PAGERS | _EDITORS:
        return text
    if program == "egrep":
        program, arguments = "grep", ["-E", *arguments]
    handler = _FILTERS.get(program)
    if handler is None:
        return None
    lines = text.split("\n") if text else []
    try:
        return "\n".join(handler(lines, _read_arguments(program, arguments)))
    except WrongUsageError as error:
        return f"{error}"
    except (UnsupportedFilterOptionError, re.error):  # No set such as [z-a] is a pattern.
        options = _OPTIONS_OF_FILTERS[program]
        known_options = ", ".join(
            f"-{letter}" for letter in options.letters_with_value + options.letters_without_value
        )
        return f"(Of {program}, this lab reads {known_options}, and not “{shlex.join(filter_tokens)[:40]}”.)"


class UnsupportedFilterOptionError(ValueError):
    """A filter has an option, or a value of an option, that labs do not interpret."""


class WrongUsageError(ValueError):
    """A filter was called in a way that the program refuses; the message is what it prints."""


class FilterArguments(NamedTuple):
    """The options of a filter by letter, and its other arguments.

    Patterns and keys may be given several times; they are joined by line ends.
    """

    value_by_option_letter: dict[str, str]
    positional_arguments: list[str]


class FilterOptions(NamedTuple):
    """The options that a filter reads: letters with and without a value, and their long names.

    `unsupported_options` are the letters and long names of the others that the program has.
    """

    letters_with_value: str
    letters_without_value: str
    letter_by_long_name: Mapping[str, str]
    unsupported_options: tuple[str, ...] = ()


_OPTIONS_OF_FILTERS: Mapping[str, FilterOptions] = {
    "head": FilterOptions(
        "nc",
        "q",
        {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q"},
        (*"vz", "verbose", "zero-terminated"),
    ),
    "tail": FilterOptions(
        "nc",
        "qfF",
        {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "follow": "f"},
        (*"svz", "pid", "retry", "sleep-interval", "verbose", "zero-terminated"),
    ),
    "wc": FilterOptions(
        "",
        "lwmcL",
        {"lines": "l", "words": "w", "chars": "m", "bytes": "c", "max-line-length": "L"},
        ("files0-from", "total"),
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
        (*"VMRCcdgimoSTyz", "version-sort", "month-sort", "random-sort", "check", "output"),
    ),
    "uniq": FilterOptions(
        "",
        "cdui",
        {"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"},
        (*"Dfswz", "all-repeated", "skip-fields", "skip-chars", "check-chars", "group"),
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
        (*"nz", "complement", "output-delimiter", "zero-terminated"),
    ),
    "awk": FilterOptions("F", "", {}, (*"fvW",)),
    "grep": FilterOptions(
        "eABCm",
        "EFGPacinoqsvwx",
        {
            "regexp": "e",
            "after-context": "A",
            "before-context": "B",
            "context": "C",
            "max-count": "m",
            "extended-regexp": "E",
            "fixed-strings": "F",
            "basic-regexp": "G",
            "perl-regexp": "P",
            "text": "a",
            "count": "c",
            "ignore-case": "i",
            "line-number": "n",
            "only-matching": "o",
            "quiet": "q",
            "silent": "q",
            "no-messages": "s",
            "invert-match": "v",
            "word-regexp": "w",
            "line-regexp": "x",
            "color": "color",
            "line-buffered": "line-buffered",
        },
        (*"HILRTUZbdDfhlruyz", "recursive", "include", "exclude", "files-with-matches", "file"),
    ),
}


def _read_arguments(program: str, arguments: Sequence[str]) -> FilterArguments:
    """Raises UnsupportedFilterOptionError for options that labs don't read, else WrongUsageError."""
    known = _OPTIONS_OF_FILTERS[program]
    number_letter = next((letter for letter in "nC" if letter in known.letters_with_value), "")
    options: dict[str, str] = {}
    positional: list[str] = []
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return FilterArguments(options, positional + queue)
        if number_letter and re.fullmatch(r"-\d+", word):
            options[number_letter] = word[1:]
        elif word.startswith("-") and len(word) > 1:
            for letter, value in _split_into_option_letters(program, word):
                if value is None and not queue:
                    raise _wrong_usage(program, f"option requires an argument -- '{letter}'")
                chosen = queue.pop(0) if value is None else value
                earlier = options.get(letter) if letter in _REPEATED else None
                options[letter] = f"{earlier}\n{chosen}" if earlier else chosen
        else:
            positional.append(word)
    return FilterArguments(options, positional)


class _OptionLetter(NamedTuple):
    """A letter of an option word; `value` is "" if it takes none, None if it is the next word."""

    letter: str
    value: str | None


def _split_into_option_letters(program: str, word: str) -> list[_OptionLetter]:
    known = _OPTIONS_OF_FILTERS[program]
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        letter = _find_letter_of_long_option(program, name)
        is_value_next = letter in known.letters_with_value and not equals
        return [_OptionLetter(letter, None if is_value_next else value)]
    found: list[_OptionLetter] = []
    for position, letter in enumerate(word[1:], 2):
        if letter in known.unsupported_options:
            raise UnsupportedFilterOptionError(letter)
        if letter in known.letters_with_value:
            return [*found, _OptionLetter(letter, word[position:] or None)]
        if letter not in known.letters_without_value:
            raise _wrong_usage(program, f"invalid option -- '{letter}'", f"-{letter}")
        found.append(_OptionLetter(letter, ""))
    return found


def _find_letter_of_long_option(program: str, name: str) -> str:
    """Return the letter of a long option, which may be shortened."""
    known = _OPTIONS_OF_FILTERS[program]
    others = ("help", "version", *known.unsupported_options)
    names = {*known.letter_by_long_name, *(n for n in others if len(n) > 1)}
    found = [n for n in sorted(names) if n.startswith(name)]
    if not found:
        raise _wrong_usage(program, f"unrecognized option '--{name}'", f"--{name}")
    full_name = name if name in names else found[0]
    if full_name not in known.letter_by_long_name:
        raise UnsupportedFilterOptionError(full_name)
    return known.letter_by_long_name[full_name]


def _wrong_usage(program: str, message: str, option: str = "") -> WrongUsageError:
    """Return what GNU's programs, and `mawk`, print about an option."""
    if program == "awk" and option:
        return WrongUsageError(f"awk: not an option: {option}")
    usage = f"{_GREP_USAGE}\n" if program == "grep" else ""
    return WrongUsageError(
        f"{program}: {message}\n{usage}Try '{program} --help' for more information."
    )


_REPEATED = "ek"  # Options of which each value counts; of others the last one.
_GREP_USAGE = "Usage: grep [OPTION]... PATTERNS [FILE]..."


class SignedCount(NamedTuple):
    """A number with the sign that was written before it, or none."""

    sign: str
    number: int


def _parse_signed_count(text: str) -> SignedCount:
    """Parse a count of lines or bytes; raises UnsupportedFilterOptionError."""
    match = re.fullmatch(r"([+-]?)([0-9]{1,6})", text)
    if match is None:
        raise UnsupportedFilterOptionError(text)
    return SignedCount(match[1], int(match[2]))


def _encode_lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _decode_lines(data: bytes) -> list[str]:
    """Return the lines of bytes that may begin or end within a character, which is left out."""
    return data.decode(errors="ignore").removesuffix("\n").split("\n")


def _head(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
    sign, count = _parse_signed_count(options.get("c", options.get("n", "10")))
    data = _encode_lines(lines)
    end = max(len(data if "c" in options else lines) - count, 0) if sign == "-" else count
    return _decode_lines(data[:end]) if "c" in options else lines[:end]


def _tail(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
    sign, count = _parse_signed_count(options.get("c", options.get("n", "10")))
    data = _encode_lines(lines)
    length = len(data if "c" in options else lines)
    start = max(count - 1 if sign == "+" else length - count, 0)
    return _decode_lines(data[start:]) if "c" in options else lines[start:]


def _wc(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
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

    first_field: int
    end_field: int | None
    flags: str

    def extract_sort_value(self, line: str, separator: str | None) -> float | str:
        text = line
        if self.first_field or self.end_field is not None:
            text = (separator or " ").join(line.split(separator)[self.first_field : self.end_field])
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
            raise UnsupportedFilterOptionError(text)
        flags = (match[2] + (match[4] or "")).replace("b", "") or command_flags
        keys.append(SortKey(int(match[1]) - 1, int(match[3]) if match[3] else None, flags))
    return keys


def _sort(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
    keys, separator = _parse_sort_keys(options), options.get("t") or None
    if "u" in options:
        line_by_keys = dict[tuple[float | str, ...], str]()
        for line in lines:
            line_by_keys.setdefault(
                tuple(key.extract_sort_value(line, separator) for key in keys), line
            )
        ordered = list(line_by_keys.values())
    else:
        ordered = lines if "s" in options else sorted(lines, reverse="r" in options)
    for key in reversed(keys):
        ordered = sorted(
            ordered,
            key=functools.partial(key.extract_sort_value, separator=separator),
            reverse="r" in key.flags,
        )
    return ordered


def _uniq(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
    groups = itertools.groupby(lines, str.casefold if "i" in options else None)
    runs = [[*run] for _, run in groups]
    if "d" in options:
        runs = [run for run in runs if len(run) > 1]
    if "u" in options:
        runs = [run for run in runs if len(run) == 1]
    return [f"{len(run):7} {run[0]}" if "c" in options else run[0] for run in runs]


def _awk(lines: list[str], arguments: FilterArguments) -> list[str]:
    """Print the columns of `{print $1,$3}`, after a `/pattern/` or `NR>1` if there is one."""
    options, positional = arguments
    program = re.fullmatch(
        r"\s*(?:/(.*)/|NR\s*>\s*(\d))?\s*(?:\{\s*print\s*(.*?)\s*\})?\s*", "".join(positional[:1])
    )
    if program is None:
        return ["(Of awk, this lab reads /WORD/ and {print $1, $3}.)"]
    pattern, first, fields = program[1] or "", int(program[2] or 0), program[3] or "$0"
    alternatives = _parse_grep_patterns(pattern, {"E": ""})
    matching_lines = [line for line in lines[first:] if _find_longest_match(line, alternatives)]
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


def _cut(lines: list[str], arguments: FilterArguments) -> list[str]:
    options = arguments.value_by_option_letter
    delimiter = options.get("d") or "\t"
    position_list = options.get("c", options.get("b"))
    if position_list is None and "f" not in options:
        raise UnsupportedFilterOptionError("no list")
    if position_list is not None:
        return ["".join(_select_positions(position_list, line)) for line in lines]
    rows = [line.split(delimiter) for line in lines if delimiter in line or "s" not in options]
    cells = (_select_positions(options["f"], row) if len(row) > 1 else row for row in rows)
    return [delimiter.join(row) for row in cells]


def _select_positions(position_list: str, pieces: Sequence[str]) -> list[str]:
    """Return the pieces at positions such as `1,3-5,8-`, in their own order.

    Raises UnsupportedFilterOptionError for another list.

    >>> _select_positions("4-,2", "abcde")
    ['b', 'd', 'e']
    """
    chosen = set[int]()
    for part in position_list.split(","):
        match = re.fullmatch(r"(\d{1,4})?(?:(-)(\d{1,4})?)?", part)
        if match is None or part in {"", "-"}:
            raise UnsupportedFilterOptionError(part)
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else len(pieces) if match[2] else first
        chosen.update(range(first, min(last, len(pieces)) + 1))
    return [piece for number, piece in enumerate(pieces, 1) if number in chosen]


def _grep(lines: list[str], arguments: FilterArguments) -> list[str]:
    options, positional = arguments
    if "e" not in options and not positional:
        raise WrongUsageError(f"{_GREP_USAGE}\nTry 'grep --help' for more information.")
    alternatives = _parse_grep_patterns(options["e"] if "e" in options else positional[0], options)
    inverted, only_matches = "v" in options, "o" in options
    hits = [
        n
        for n, line in enumerate(lines)
        if (not _find_longest_match(line, alternatives)) == inverted
    ]
    if "m" in options:
        hits = hits[: _parse_grep_count(options["m"], "invalid max count")]
    if {"c", "q"} & options.keys():
        return [] if "q" in options else [str(len(hits))]
    contexts = [options.get(letter, options.get("C", "0")) for letter in "BA"]
    before, after = (
        0 if only_matches else _parse_grep_count(c, f"{c}: invalid context length argument")
        for c in contexts
    )
    shown = {n for hit in hits for n in range(hit - before, hit + min(after, len(lines)) + 1)}
    rows: list[str] = []
    numbers = [n for n in sorted(shown) if 0 <= n < len(lines)]
    for earlier, n in zip([None, *numbers], numbers, strict=False):
        if earlier is not None and n > earlier + 1 and {*"ABC"} & options.keys():
            rows.append("--")
        texts = [lines[n]]
        if only_matches:
            texts = [] if inverted else _list_matches(lines[n], alternatives)
        prefix = f"{n + 1}{':' if n in hits else '-'}" if "n" in options else ""
        rows += [prefix + text for text in texts]
    return rows


def _parse_grep_count(text: str, message: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise WrongUsageError(f"grep: {message}")
    return int(text)


_Alternatives = Sequence[Sequence[re.Pattern[str]]]


class MatchSpan(NamedTuple):
    """Where a match begins and ends in its line."""

    start: int
    end: int


def _list_matches(line: str, alternatives: _Alternatives) -> list[str]:
    matches, position = [], 0
    while position <= len(line) and (span := _find_longest_match(line, alternatives, position)):
        matches.append(line[span.start : span.end])
        position = max(span.end, span.start + 1)
    return [text for text in matches if text]


def _find_longest_match(
    line: str, alternatives: _Alternatives, position: int = 0
) -> MatchSpan | None:
    """Return the first and longest match, which has all pieces of an alternative in order."""
    spans = []
    for pieces in alternatives:
        start, end = None, position
        for number, piece in enumerate(pieces, 1):
            found = piece.finditer(line, end)
            is_rest = 1 < number == len(pieces)  # `.*` before it takes as much as it can.
            matches = [*found] if is_rest else [*itertools.islice(found, 1)]
            if not matches:
                break
            start = matches[0].start() if start is None else start
            end = matches[-1].end()
        else:
            spans.append(MatchSpan(start or 0, end))
    return min(spans, key=lambda span: (span.start, -span.end), default=None)


def _parse_grep_patterns(
    patterns: str, grep_options: Mapping[str, str]
) -> list[list[re.Pattern[str]]]:
    """Return the alternatives of patterns of grep, one on each line, each cut at `.*`.

    Raises UnsupportedFilterOptionError for what labs don't interpret: repeated groups, counts, and
    repetitions that take long.
    """
    flags = re.IGNORECASE if "i" in grep_options else 0
    syntax = next((letter for letter in "FPE" if letter in grep_options), "G")
    start, end = next((edge for letter, edge in _EDGES.items() if letter in grep_options), ("", ""))
    alternatives = []
    for pattern in patterns.split("\n"):
        if syntax == "F":
            texts = [[re.escape(pattern)]]
        else:
            expanded = pattern if syntax == "G" else _expand_groups(pattern)
            bar = r"\\\|" if syntax == "G" else r"(?<!\\)\|"
            texts = [
                _translate_alternative_to_python(text, syntax) for text in re.split(bar, expanded)
            ]
        for pieces in texts:
            pieces[0] = start + pieces[0]
            pieces[-1] += end
            alternatives.append([re.compile(piece, flags) for piece in pieces])
    return alternatives


# What stands before and after a pattern of whole lines, and of whole words.
_EDGES = {"x": ("^", "$"), "w": (r"(?<!\w)", r"(?!\w)")}
_MOST_GROUPS = 2


def _expand_groups(pattern: str) -> str:
    """Return a pattern with its groups multiplied out.

    >>> _expand_groups("GPU (0|1): (a|b)")
    'GPU 0: a|GPU 0: b|GPU 1: a|GPU 1: b'
    """
    group = re.search(r"(?<!\\)\((?!\?)([^()]*)\)(?![*+?{])", pattern)
    if group is None:
        return pattern
    if pattern.count("(") > _MOST_GROUPS:
        raise UnsupportedFilterOptionError(pattern)
    start, end = pattern[: group.start()], pattern[group.end() :]
    return "|".join(_expand_groups(f"{start}{word}{end}") for word in group[1].split("|"))


_ATOM = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.")


def _translate_alternative_to_python(text: str, syntax: str) -> list[str]:
    r"""Return an alternative of a pattern as pieces of a pattern of Python, cut at `.*`.

    >>> _translate_alternative_to_python(r"^a.*[[:digit:]]\+ (b)", "G")
    ['^a', '[0-9]++\\ \\(b\\)']
    """
    pieces: list[list[list[str]]] = [[]]  # Each atom with its sign of repetition.
    atoms = _ATOM.findall(text)
    for number, atom in enumerate(atoms, 1):
        piece, operator = pieces[-1], atom
        if syntax == "G":  # A backslash makes an operator, where it takes its meaning elsewhere.
            operator = "\\" + atom if atom in {*"+?(){}"} else atom
            operator = atom[1] if len(atom) == 2 and atom[1] in {*"+?(){}"} else operator
        is_repetition = operator in {*"*+?"}
        if operator in {*"(){}"} or (is_repetition and not piece and text[0] != "*"):
            raise UnsupportedFilterOptionError(text)
        if is_repetition and piece:
            if piece[-1] == [".", ""] and operator != "?":
                piece[:] = piece if operator == "+" else piece[:-1]
                while piece and piece[-1][1] in {"*", "?"}:  # What follows takes it as well.
                    piece.pop()
                pieces.append([])
            else:
                piece[-1][1] += operator
        elif operator == ".":
            piece.append([".", ""])
        elif (operator == "^" and number == 1) or (operator == "$" and number == len(atoms)):
            piece.append([operator, ""])
        else:
            piece.append([_translate_atom_to_python(operator, syntax), ""])
    return [_join_atoms_limiting_backtracking(piece) for piece in pieces]


def _join_atoms_limiting_backtracking(piece: Sequence[Sequence[str]]) -> str:
    """Return a piece of which at most one repetition is tried again shorter.

    So a search takes time in proportion to the square of the line at most. A repetition whose
    characters cannot continue the match needs no second try.
    """
    text, retried = "", 0
    for number, (atom, sign) in enumerate(piece, 1):
        text += atom + sign
        if sign and not _overlaps_following_atoms(atom, piece[number:]):
            text += "+"
        elif sign:
            retried += 1
    if retried > 1:
        raise UnsupportedFilterOptionError(text)
    return text


def _overlaps_following_atoms(atom: str, following: Sequence[Sequence[str]]) -> bool:
    for next_atom, sign in following:
        shared = _find_ascii_characters_matching(atom) & _find_ascii_characters_matching(next_atom)
        if shared or next_atom.startswith(r"\b"):
            return True
        if sign not in {"*", "?"}:
            return False
    return False


@functools.lru_cache(1024)
def _find_ascii_characters_matching(atom: str) -> frozenset[str]:
    """Return the characters of ASCII that an atom takes, of both cases."""
    return frozenset(filter(re.compile(atom, re.IGNORECASE).fullmatch, map(chr, range(128))))


def _translate_atom_to_python(atom: str, syntax: str) -> str:
    """Return a character, an escaped one or a set of characters as Python writes it."""
    is_escaped = atom[0] == "\\" and len(atom) == 2
    if is_escaped and atom[1] in ("wWsSbBdD" if syntax == "P" else "wWsSbB"):
        return atom
    if is_escaped:
        return r"\b" if atom[1] in "<>" else re.escape(atom[1])
    if atom[0] != "[" or len(atom) < 3:
        return re.escape(atom)
    sign = "^" if atom[1] == "^" else ""
    named = re.sub(
        r"\[:(\w+):\]",
        lambda m: _NAMED_SETS.get(m[1], ""),
        atom[1 + len(sign) : -1].replace("--", "-"),
    )
    kept = r"\\[wsd]|[\w-]" if syntax == "P" else r"[\w-]"
    return f"[{sign}{re.sub(rf'({kept})|(.)', lambda m: m[1] or re.escape(m[2]), named)}]"


_NAMED_SETS = {"digit": "0-9", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "space": " \t"}
_NAMED_SETS |= {"upper": "A-Z", "lower": "a-z", "xdigit": "0-9a-fA-F", "blank": " \t"}


_FILTERS: Mapping[str, Callable[[list[str], FilterArguments], list[str]]] = {
    "grep": _grep,
    "head": _head,
    "tail": _tail,
    "wc": _wc,
    "sort": _sort,
    "uniq": _uniq,
    "awk": _awk,
    "cut": _cut,
}
