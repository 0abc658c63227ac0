"""Numbered lists of questions as people keep them in a word processor.

Read is the text of such a list, or its Markdown, as pandoc writes it from a document:
a number before each question, a letter before each choice (or a bullet, or a box), and
the right choice in bold, underlined, with a star or a check mark, or named by a line
“Answer: B”, or in an answer key at the end.
"""

import dataclasses
import re

from app.exchange.formats.plain_answers import bare, kind_of, named_in
from app.exchange.items import Item, Kind, NotCarried, Option, Reading, Remark
from app.exchange.markup.texts import Losses, read_text

_BOLD = r"(?:\*\*|__)?"
_NUMBERED = re.compile(
    rf"{_BOLD}(?:question\s+)?(?P<number>\d{{1,4}})\s*\\?[.):]{_BOLD}\s+(?P<words>\S.*)",
    re.IGNORECASE,
)
_LETTERED = re.compile(
    rf"(?:[-+•]\s+)?(?P<mark>[*✓✔](?!\*)\s*)?(?P<bold>\*\*|__)?"
    rf"\(?(?P<letter>[A-Za-z])\\?[.)]{_BOLD}\s+(?P<words>\S.*)"
)
_BULLET = re.compile(
    r"(?:[-*+•]\s+(?:\\?\[(?P<box>[ xX✓]?)\\?\]\s+)?"
    r"|(?:[-*+•]\s+)?(?P<sign>[☐□☑☒✅])\s*)(?P<words>\S.*)"
)
# What a line is called that names the answer, or explains it, in some languages.
_ANSWERS = (
    r"(?:correct |right |richtige )?(?:answers?|key|antwort(?:en)?|lösung(?:en)?)"
    r"|(?:bonnes? )?r[ée]ponses?(?: correctes?)?|soluci[óo]n(?:es)?"
    r"|(?:respuestas?|respostas?)(?: corr[ei]c?tas?)?|rispost[ae](?: corrett[ae])?"
)
_REASONS = (
    "feedback|explanation|rationale|reason|explicaci[óo]n|explication|erklärung"
    "|begründung|spiegazione|explicação|justificaci[óo]n"
)
_ANSWER = re.compile(
    rf"{_BOLD}(?:{_ANSWERS}){_BOLD}\s*[:=]{_BOLD}\s*(?P<words>.+)", re.IGNORECASE
)
_WHY = re.compile(
    rf"{_BOLD}(?:{_REASONS}){_BOLD}\s*:{_BOLD}\s*(?P<words>.*)", re.IGNORECASE
)
# A line of another language that names a letter: “Svar: B”.
_LETTER = re.compile(
    r"[^\W\d]{2,20}(?: [^\W\d]{2,20})?\s*:"
    r"\s*\(?(?P<words>[A-Z](?:\s*[,;&+]\s*[A-Z])*)\)?\.?"
)
_KEY = re.compile(
    r"[#*_\s]*(?:answer key|answers|key|solutions)[:*_\s]*", re.IGNORECASE
)
_KEYED = re.compile(
    r"(\d{1,4})\s*\\?[.):-]?\s*\(?([A-Za-z](?:\s*[,;&+]\s*[A-Za-z])*)\b"
)
_EMPHASIS = re.compile(
    r"(\*\*|__)(?P<words>.+?)\1|\[(?P<lined>.+)\]\{\.(?:underline|mark)\}"
)
_BEHIND = re.compile(
    r"(?:\(\s?(?:correct|right)(?: answer)?\s?\)|[✓✔√])$", re.IGNORECASE
)
_TRUE = frozenset({"true", "t", "verdadero", "wahr", "richtig", "vrai", "vero"})
_FALSE = frozenset({"false", "f", "falso", "falsch", "faux"})
_HEADING = re.compile(r"#{1,6}\s")


@dataclasses.dataclass(slots=True)
class _Choice:
    lines: list[str]
    marked: bool  # by a sign that means nothing else
    bold: bool  # which may mean something else, where all of them are

    @property
    def words(self) -> str:
        """Its lines in one."""
        return " ".join(self.lines)


@dataclasses.dataclass(slots=True)
class _Draft:
    number: int
    line: int
    stem: list[str]
    choices: list[_Choice] = dataclasses.field(default_factory=list)
    answer: str = ""
    why: list[str] = dataclasses.field(default_factory=list)
    explained: bool = False

    @property
    def name(self) -> str:
        """Its first words, for a report."""
        return " ".join(self.stem)[:50] or "(nameless)"


class _Lists:
    """The lines of a text, taken in one after the other."""

    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.key: dict[int, str] = {}
        self._in_key = False
        self._apart = True  # whether an empty line was the last

    def take(self, number: int, line: str) -> None:
        """One line, from 1."""
        text = line.strip().replace("\N{NO-BREAK SPACE}", " ")
        if not text:
            self._apart = True
            return
        if self._in_key or _KEY.fullmatch(text):
            self._in_key = True
            self.key |= {int(n): letters for n, letters in _KEYED.findall(text)}
        elif not _HEADING.match(text):
            self._part(number, text)
        self._apart = False

    def _part(self, line: int, text: str) -> None:
        draft = self.drafts[-1] if self.drafts else None
        numbered = _NUMBERED.fullmatch(text)
        if numbered and self._begins(draft, int(numbered["number"])):
            words = _plain_stem(numbered["words"])
            self.drafts.append(_Draft(int(numbered["number"]), line, [words]))
        elif draft is None:
            self.drafts.append(_Draft(0, line, [text]))
        elif found := _ANSWER.fullmatch(text):
            draft.answer = found["words"].strip(" *_")
        elif draft.choices and (found := _LETTER.fullmatch(text)):
            draft.answer = found["words"]
        elif found := _WHY.fullmatch(text):
            draft.explained, draft.why = True, [found["words"]]
        elif choice := _choice_of(text, len(draft.choices)):
            draft.choices.append(choice)
        else:
            self._goes_on(draft, line, text)

    def _begins(self, draft: _Draft | None, number: int) -> bool:
        """Whether a number begins a question, and no list in the one above it."""
        if draft is None or draft.choices or draft.answer or self._apart:
            return True
        follows = number == draft.number + 1
        return follows and not any(map(_NUMBERED.match, draft.stem))

    def _goes_on(self, draft: _Draft, line: int, text: str) -> None:
        """A line without a sign of its own belongs to what stands above it."""
        if self._apart and (draft.choices or draft.answer) and not draft.explained:
            self.drafts.append(_Draft(0, line, [text]))
        elif draft.explained:
            draft.why.append(text)
        elif draft.choices and not draft.answer:
            draft.choices[-1].lines.append(text)
        elif not draft.answer:
            draft.stem.append("\n\n" + text if self._apart else text)


def read_lists(text: str) -> Reading:
    """Every question of the list; one whose right answer is not told is refused."""
    lists, items = _Lists(), list[Item]()
    refused: list[Remark] = []
    lost: list[Remark] = []
    for number, line in enumerate(text.split("\n"), 1):
        lists.take(number, line)
    for draft in lists.drafts:
        losses = Losses()
        if "![" in " ".join([*draft.stem, *(c.words for c in draft.choices)]):
            losses.add("a picture is left out")
        try:
            items.append(_item(draft, lists.key.get(draft.number, ""), losses))
        except NotCarried as error:
            refused.append(Remark(draft.name, draft.line, str(error)))
            continue
        lost += [Remark(draft.name, draft.line, what) for what in losses.found]
    return Reading(tuple(items), tuple(refused), tuple(lost))


def _plain_stem(words: str) -> str:
    """The words of a stem that is bold as a whole, as stems often are."""
    found = re.fullmatch(r"(\*\*|__)(.+)\1", words)
    if found and found[1] not in found[2]:
        return found[2]
    return words.removesuffix("**") if words.count("**") % 2 else words


def _choice_of(text: str, already: int) -> _Choice | None:
    """The choice in a line: its letter has to be the next one."""
    found = _LETTERED.fullmatch(text)
    if found and ord(found["letter"].lower()) - ord("a") == already:
        words, bold = _stripped(found["words"], begun=found["bold"])
        words, marked = _unmarked(words)
        return _Choice([words], marked or bool(found["mark"]), bold)
    bullet = _BULLET.fullmatch(text)
    if bullet is None:
        return None
    words, bold = _stripped(bullet["words"], begun=None)
    words, marked = _unmarked(words)
    ticked = (bullet["box"] or " ") != " " or (bullet["sign"] or "☐") not in "☐□"
    return _Choice([words], marked or ticked, bold)


def _unmarked(words: str) -> tuple[str, bool]:
    """The words of a choice without a sign behind them, and whether there was one."""
    bare_words = _BEHIND.sub("", words).rstrip()
    if bare_words.endswith("*") and bare_words.count("*") % 2:
        bare_words = bare_words[:-1].rstrip()
    return bare_words, bare_words != words


def _stripped(words: str, *, begun: str | None) -> tuple[str, bool]:
    """The words of a choice without what stresses all of them, and whether that was.

    `begun` is the sign of a stress that began before the letter.
    """
    if begun:
        return words.removesuffix(begun).removeprefix(begun).strip(), True
    found = _EMPHASIS.fullmatch(words)
    if found and "**" not in (found["words"] or ""):
        return (found["words"] or found["lined"]).strip(), True
    return words, False


def _item(draft: _Draft, key: str, losses: Losses) -> Item:
    """The question of a draft; `key` is what the answer key has for its number."""
    stem = read_text(" ".join(draft.stem), "markdown", losses)
    if not stem:
        raise NotCarried("it has no text")
    kind, options = _answers(draft, draft.answer or key, losses)
    why = read_text("\n".join(draft.why), "markdown", losses)
    return Item("", kind, stem, options, explanation=why, line=draft.line)


def _answers(
    draft: _Draft, answer: str, losses: Losses
) -> tuple[Kind, tuple[Option, ...]]:
    if not draft.choices:
        return _without_choices(answer, numbered=bool(draft.number))
    if len(draft.choices) == 1:
        raise NotCarried("it has one choice only")
    letters = {chr(ord("A") + n): c.words for n, c in enumerate(draft.choices)}
    by_mark = _marked(draft.choices)
    by_name = named_in(answer, letters) if answer else by_mark
    if not by_name:
        raise NotCarried("no choice is marked as right, and no line says “Answer: B”")
    if by_mark and by_mark != by_name:
        raise NotCarried(
            "the choice that is marked is not the one that its answer names"
        )
    options = tuple(
        Option(read_text(words, "markdown", losses), letter in by_name)
        for letter, words in letters.items()
    )
    return kind_of(options), options


def _without_choices(answer: str, *, numbered: bool) -> tuple[Kind, tuple[Option, ...]]:
    if not answer and not numbered:
        raise NotCarried("it has no number, choices or answer: a title, or a note?")
    if not answer:
        raise NotCarried(
            "it has neither choices nor an answer: write “Answer: …” below"
        )
    said = answer.strip(" .").casefold()
    if said in _TRUE | _FALSE:
        true = said in _TRUE
        return "true-false", (Option("True", true), Option("False", not true))
    return bare(answer)


def _marked(choices: list[_Choice]) -> frozenset[str]:
    """The letters of the choices that are marked; where all are bold, none is."""
    bold = not all(choice.bold for choice in choices)
    return frozenset(
        chr(ord("A") + n)
        for n, choice in enumerate(choices)
        if choice.marked or (bold and choice.bold)
    )
