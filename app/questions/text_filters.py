"""The text filters of a lab, such as `grep` and `sort`: what they leave of an output.

Nothing is run. A filter says of an option or a pattern that labs don't read what they do read.
"""

import dataclasses
import functools
import getopt
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

    An option or a value that labs don't read gives a sentence with the options that they read.
    """
    program, arguments = filter_tokens[0].rpartition("/")[2], list(filter_tokens[1:])
    if program in _PAGERS | _EDITORS:
        return text
    if program == "egrep":
        program, arguments = "grep", ["-E", *arguments]
    if program not in _FILTERS:
        return None
    options, apply_filter = _FILTERS[program]
    try:
        values, positional = _read_arguments(arguments, options)
        lines = [line[:_MAX_LINE_LENGTH] for line in text.split("\n")] if text else []
        return "\n".join(apply_filter(lines, values, positional))
    except (getopt.GetoptError, UnsupportedFilterOptionError, re.error):  # [z-a] is no set.
        known_options = ", ".join(f"-{letter}" for letter in options.replace(":", ""))
        return f"(Of {program}, this lab reads {known_options}, and not “{shlex.join(filter_tokens)[:40]}”.)"


class UnsupportedFilterOptionError(ValueError):
    """A filter has a pattern or a value of an option that labs do not interpret."""


_MAX_LINE_LENGTH = 500  # The time of a pattern grows with its square.
_REPEATED = "ek"  # Options of which each value counts; of others the last one.


def _read_arguments(arguments: Sequence[str], options: str) -> tuple[dict[str, str], list[str]]:
    """Return the values by the letter of their option, and the other arguments.

    The values of an option that may be repeated are joined by line ends. Raises GetoptError.
    """
    number_option = next((f"-{letter}" for letter in "nC" if f"{letter}:" in options), "-")
    arguments = [
        word if previous == "-n" else re.sub(r"^-(?=\d+$)", number_option, word)
        for previous, word in itertools.pairwise(["", *arguments])
    ]
    pairs, positional = getopt.gnu_getopt(arguments, options)
    value_by_letter: dict[str, str] = {}
    for option, value in pairs:
        letter = option[1:]
        is_added = letter in _REPEATED and letter in value_by_letter
        value_by_letter[letter] = f"{value_by_letter[letter]}\n{value}" if is_added else value
    return value_by_letter, positional


def _parse_signed_count(text: str) -> tuple[str, int]:
    """Return the sign of a count of lines, or none, and the count."""
    match = re.fullmatch(r"([+-]?)([0-9]{1,6})", text)
    if match is None:
        raise UnsupportedFilterOptionError(text)
    return match[1], int(match[2])


def _head(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    sign, count = _parse_signed_count(options.get("n", "10"))
    return lines[: max(len(lines) - count, 0) if sign == "-" else count]


def _tail(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    sign, count = _parse_signed_count(options.get("n", "10"))
    return lines[max(count - 1 if sign == "+" else len(lines) - count, 0) :]


def _wc(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    counts = {"l": len(lines), "w": len(text.split()), "c": len(text.encode())}
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
        return text


def _parse_sort_keys(options: Mapping[str, str]) -> list[SortKey]:
    """Return the keys, or the whole line; a key without flags has those of the command."""
    command_flags = "".join({*"nhr"} & options.keys())
    keys = []
    for text in options.get("k", "1").split() or [""]:
        match = re.fullmatch(r"([1-9]\d?)([hnr]*)(?:,([1-9]\d?)([hnr]*))?", text)
        if match is None:
            raise UnsupportedFilterOptionError(text)
        flags = match[2] + (match[4] or "") or command_flags
        keys.append(SortKey(int(match[1]) - 1, int(match[3]) if match[3] else None, flags))
    return keys


def _sort(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    keys, separator = _parse_sort_keys(options), options.get("t") or None
    if "u" in options:
        line_by_keys = dict[tuple[float | str, ...], str]()
        for line in lines:
            line_by_keys.setdefault(
                tuple(key.extract_sort_value(line, separator) for key in keys), line
            )
        ordered = list(line_by_keys.values())
    else:
        ordered = sorted(lines, reverse="r" in options)
    for key in reversed(keys):
        ordered = sorted(
            ordered,
            key=functools.partial(key.extract_sort_value, separator=separator),
            reverse="r" in key.flags,
        )
    return ordered


def _uniq(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    groups = itertools.groupby(lines, str.casefold if "i" in options else None)
    runs = [[*run] for _, run in groups]
    if "d" in options:
        runs = [run for run in runs if len(run) > 1]
    if "u" in options:
        runs = [run for run in runs if len(run) == 1]
    return [f"{len(run):7} {run[0]}" if "c" in options else run[0] for run in runs]


def _awk(lines: list[str], options: Mapping[str, str], positional: list[str]) -> list[str]:
    """Print the columns of `{print $1,$3}`, after a `/pattern/` or `NR>1` if there is one."""
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


def _cut(lines: list[str], options: Mapping[str, str], _: list[str]) -> list[str]:
    delimiter = options.get("d") or "\t"
    if "c" in options:
        return ["".join(_select_positions(options["c"], line)) for line in lines]
    if "f" not in options:
        raise UnsupportedFilterOptionError("no list")
    rows = [line.split(delimiter) for line in lines]
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


def _grep(lines: list[str], options: Mapping[str, str], positional: list[str]) -> list[str]:
    if "e" not in options and not positional:
        raise UnsupportedFilterOptionError("no pattern")
    alternatives = _parse_grep_patterns(options["e"] if "e" in options else positional[0], options)
    inverted, only_matches = "v" in options, "o" in options
    hits = [
        n
        for n, line in enumerate(lines)
        if (not _find_longest_match(line, alternatives)) == inverted
    ]
    if "m" in options:
        hits = hits[: _parse_grep_count(options["m"])]
    if {"c", "q"} & options.keys():
        return [] if "q" in options else [str(len(hits))]
    contexts = [options.get(letter, options.get("C", "0")) for letter in "BA"]
    before, after = (0 if only_matches else _parse_grep_count(c) for c in contexts)
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


def _parse_grep_count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise UnsupportedFilterOptionError(text)
    return int(text)


_Alternatives = Sequence[Sequence[re.Pattern[str]]]


def _list_matches(line: str, alternatives: _Alternatives) -> list[str]:
    matches, position = [], 0
    while position <= len(line) and (span := _find_longest_match(line, alternatives, position)):
        start, end = span
        matches.append(line[start:end])
        position = max(end, start + 1)
    return [text for text in matches if text]


def _find_longest_match(
    line: str, alternatives: _Alternatives, position: int = 0
) -> tuple[int, int] | None:
    """Return start and end of the first and longest match, which has all pieces of an alternative in order."""
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
            spans.append((start or 0, end))
    return min(spans, key=lambda span: (span[0], -span[1]), default=None)


def _parse_grep_patterns(
    patterns: str, grep_options: Mapping[str, str]
) -> list[list[re.Pattern[str]]]:
    """Return the alternatives of patterns of grep, one on each line, each cut at `.*`."""
    flags = re.IGNORECASE if "i" in grep_options else 0
    syntax = next((letter for letter in "FPE" if letter in grep_options), "G")
    start, end = next((edge for letter, edge in _EDGES.items() if letter in grep_options), ("", ""))
    alternatives = []
    for pattern in patterns.split("\n"):
        if syntax == "F":
            texts = [[re.escape(pattern)]]
        else:
            expanded = _expand_groups(_swap_escapes(pattern) if syntax == "G" else pattern)
            texts = [
                _translate_alternative_to_python(text, syntax)
                for text in re.split(r"(?<!\\)\|", expanded)
            ]
        for pieces in texts:
            pieces[0] = start + pieces[0]
            pieces[-1] += end
            alternatives.append([re.compile(piece, flags) for piece in pieces])
    return alternatives


# What stands before and after a pattern of whole lines, and of whole words.
_EDGES = {"x": ("^", "$"), "w": (r"(?<!\w)", r"(?!\w)")}
_MOST_GROUPS = 2


def _swap_escapes(pattern: str) -> str:
    r"""Return a basic pattern as an extended one, where operators have no backslash.

    >>> _swap_escapes(r"a\|b+")
    'a|b\\+'
    """
    return re.sub(
        r"\\([|+?(){}])|\\.|([|+?(){}])",
        lambda m: m[1] or (f"\\{m[2]}" if m[2] else m[0]),
        pattern,
    )


def _expand_groups(pattern: str) -> str:
    """Return an extended pattern with its groups multiplied out.

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


_ATOM_AND_SIGN = re.compile(r"(\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.)([*+?]?)")


def _translate_alternative_to_python(text: str, syntax: str) -> list[str]:
    r"""Return an alternative of an extended pattern as pieces of a pattern of Python, cut at `.*`.

    >>> _translate_alternative_to_python(r"^a.*[[:digit:]]+ \(b\)", "G")
    ['^a', '[0-9]++\\ \\(b\\)']
    """
    pieces: list[list[list[str]]] = [[]]  # Each atom with its sign of repetition.
    atoms = _ATOM_AND_SIGN.findall(text)
    for number, (atom, sign) in enumerate(atoms, 1):
        if atom in {*"+?(){}"} or (atom == "*" and number > 1):
            raise UnsupportedFilterOptionError(text)
        if atom == "." and sign in {"*", "+"}:
            while pieces[-1] and pieces[-1][-1][1] in {"*", "?"}:  # `.*` takes it as well.
                pieces[-1].pop()
            if pieces[-1]:
                pieces[-1][-1][1] = ""
            pieces[-1] += [[".", ""]] * (sign == "+")
            pieces.append([])
        elif atom == "." or (atom, number) in {("^", 1), ("$", len(atoms))}:
            pieces[-1].append([atom, sign])
        else:
            pieces[-1].append([_translate_atom_to_python(atom, syntax), sign])
    return [_join_atoms_without_backtracking(piece) for piece in pieces]


def _join_atoms_without_backtracking(piece: Sequence[Sequence[str]]) -> str:
    """Return a piece whose repetitions take all they can and are never tried again shorter.

    So a search takes time in proportion to the square of the line at most. Raises
    UnsupportedFilterOptionError if what follows a repetition could take its characters as well.
    """
    text = ""
    for number, (atom, sign) in enumerate(piece, 1):
        for next_atom, next_sign in piece[number:] if sign else ():
            if _share_a_character(atom, next_atom):
                raise UnsupportedFilterOptionError(atom + sign)
            if next_sign not in {"*", "?"}:
                break
        text += f"{atom}{sign}+" if sign else atom
    return text


def _share_a_character(atom: str, next_atom: str) -> bool:
    """Return whether both take a character of ASCII; the end of a word is left by others."""
    following = r"\W" if next_atom == r"\b" else next_atom
    both = re.compile(f"(?={atom}){following}", re.IGNORECASE)
    return any(map(both.fullmatch, map(chr, range(128))))


def _translate_atom_to_python(atom: str, syntax: str) -> str:
    """Return a character, an escaped one or a set of characters as Python writes it."""
    is_escaped = atom[0] == "\\" and len(atom) == 2
    if is_escaped and atom[1] in ("wWsSbdD" if syntax == "P" else "wWsSb"):
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


_FILTERS: Mapping[
    str, tuple[str, Callable[[list[str], Mapping[str, str], list[str]], list[str]]]
] = {  # The options as getopt takes them: with a colon if they have a value.
    "grep": ("EFGPacinoqsvwxe:A:B:C:m:", _grep),
    "head": ("n:q", _head),
    "tail": ("n:qfF", _tail),
    "wc": ("lwc", _wc),
    "sort": ("nhruk:t:", _sort),
    "uniq": ("cdui", _uniq),
    "awk": ("F:", _awk),
    "cut": ("d:f:c:", _cut),
}
