"""Neutral items written as the Markdown of quiz.md and cards.md."""

import dataclasses
import re
from collections.abc import Iterable

from app.content.identity import slug
from app.exchange.items import BLANK, Item, ItemBlank, ItemOption, ItemPair, NumberRange, shown
from app.exchange.markup.escaping import code_span, escaped, line_escaped
from app.exchange.markup.hypertext import one_line
from app.questions.options import box_of

_LONGEST_ID = 48
_OPTION = re.compile(r"^- \[", re.MULTILINE)
_STRUCTURED = re.compile(r"(?:`{3}|\| |> |- |\d+\. |\$\$)")


def block(item: Item, name: str) -> str:
    """One item as Markdown under the id `name`: heading, comment, answers, alerts."""
    heading, rest = _heading(item)
    comment = "\n".join([f"<!-- q: {name}", *_metadata(item)])
    comment += "\n-->" if "\n" in comment else " -->"
    parts = [f"### {heading}\n{comment}", rest, *_apart(rest, _answers(item))]
    parts += [_alert("TIP", hint) for hint in item.hints]
    parts += [_alert("NOTE", item.explanation), _alert("CAUTION", item.mistake)]
    return "\n\n".join(p for p in parts if p) + "\n"


def headed(item: Item) -> Item:
    """The item with a first paragraph that can be a heading: its name, if need be."""
    if item.stem and not _STRUCTURED.match(item.stem):
        return item
    name = " ".join(item.name.split()) or "Question"
    stem = f"{line_escaped(escaped(name))}\n\n{item.stem}".strip()
    return dataclasses.replace(item, stem=stem)


def new_id(item: Item, taken: Iterable[str]) -> str:
    """An id from the item's name or its first words that nobody has used."""
    words = slug(item.name) or slug(item.stem) or "question"
    if len(words) > _LONGEST_ID:
        words = words[:_LONGEST_ID].rpartition("-")[0] or words[:_LONGEST_ID]
    used, found, count = set(taken), words, 1
    while found in used:
        count += 1
        found = f"{words}-{count}"
    return found


def _heading(item: Item) -> tuple[str, str]:
    """The first paragraph as heading and the rest below it."""
    first, _, rest = headed(item).stem.partition("\n\n")
    line = one_line(first)
    return re.sub(r"(?:(?<=\s)|^)(#+)$", r"\\\1", line), rest


def _metadata(item: Item) -> list[str]:
    """The lines of the comment below the id; what has its usual value is left out."""
    told = {"numeric", "short", "order", "match", "cloze", "card"}
    lone = item.kind == "multiple" and sum(o.right for o in item.options) == 1
    named = lone or (item.kind == "single" and _says_true_or_false(item))
    rows = (
        ("type", item.kind if item.kind in told or named else ""),
        ("objective", _listed(item.objectives)),
        ("source", _listed(item.sources)),
        ("tags", _listed(item.tags)),
        ("difficulty", str(item.difficulty) if item.difficulty != 3 else ""),
        ("level", item.level),
        ("use", item.use),
        ("partial", item.partial),
        ("shuffle", "" if item.shuffle or item.kind == "true-false" else "no"),
        ("case", "yes" if item.case else ""),
        ("reverse", "yes" if item.reverse else ""),
    )
    return [f"{key}: {value}" for key, value in rows if value]


def _says_true_or_false(item: Item) -> bool:
    return {o.text.strip(" .").lower() for o in item.options} == {"true", "false"}


def _listed(words: tuple[str, ...]) -> str:
    quoted = [w if re.fullmatch(r"[\w.][\w. /+-]*", w) else '"' + _unquoted(w) + '"' for w in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"[{', '.join(quoted)}]"


def _unquoted(word: str) -> str:
    return re.sub(r"[\"\\\s]+|--+>?", " ", word).strip()


def _answers(item: Item) -> list[str]:
    if item.kind == "order":
        steps = [_entry(f"{n}. ", s) for n, s in enumerate(item.steps, 1)]
        return ["\n".join(steps), "\n".join(map(_choice, item.options))]
    if item.kind == "match":
        return [_table(item.titles, item.pairs)]
    if item.kind == "cloze":
        return [_filled(item.text, item.blanks)]
    if item.kind == "card":
        return [item.text]
    written = _word if item.kind == "short" else _choice
    return ["\n".join(map(written, item.options))]


def _apart(stem: str, answers: list[str]) -> list[str]:
    """Options with stars below a stem that ends in a list: else they would join it."""
    lines = [line for line in stem.split("\n") if line and not line.startswith(" ")]
    if not answers or not lines or not lines[-1].startswith("- "):
        return answers
    return [_OPTION.sub("* [", answers[0]), *answers[1:]]


def _choice(option: ItemOption) -> str:
    box = "[x]" if option.right else box_of(option.credit)
    return _entry(f"- {box} ", option)


def _word(option: ItemOption) -> str:
    bare = dataclasses.replace(option, text=code_span(option.text))
    return _choice(bare)


def _entry(mark: str, option: ItemOption) -> str:
    text = code_span(_number(option.span)) if option.span is not None else one_line(option.text)
    lines = [mark + text]
    indent = "  " if mark.startswith("-") else " " * len(mark)
    said = option.feedback.split("\n") if option.feedback else ()
    lines += [f"{indent}> {line}".rstrip() for line in said]
    return "\n".join(lines)


def _number(span: NumberRange) -> str:
    """The range as it is authored: `140 GB ± 4.2`."""
    unit = f" {span.unit}" if span.unit else ""
    whole = span.center == int(span.center)
    if not span.tolerance and whole:
        return f"{shown(span.center)}{unit}"
    return f"{shown(span.center)}{unit} ± {shown(span.tolerance)}"


def _table(titles: tuple[str, str], pairs: tuple[ItemPair, ...]) -> str:
    why = any(p.why for p in pairs)
    left, right = titles[0] or "Item", titles[1] or "Match"
    rows = [[left, right, "Why"], ["---"] * 3]
    rows += [[one_line(p.left), one_line(p.right), one_line(p.why)] for p in pairs]
    kept = 3 if why else 2
    return "\n".join("| " + " | ".join(row[:kept]) + " |" for row in rows)


def _filled(text: str, blanks: tuple[ItemBlank, ...]) -> str:
    pieces = text.split(BLANK)
    out = pieces[0]
    for blank, piece in zip(blanks, pieces[1:], strict=False):
        hint = f" ?{escaped(blank.hint)}" if blank.hint else ""
        words = "|".join(map(escaped, blank.answers))
        wrong = "".join(f" ~ {escaped(word)}" for word in blank.wrong)
        out += f"[[{words}{wrong}{hint}]]{piece}"
    return out


def _alert(kind: str, text: str) -> str:
    if not text:
        return ""
    lines = [f"> [!{kind}]", *(f"> {line}".rstrip() for line in text.split("\n"))]
    return "\n".join(lines)
