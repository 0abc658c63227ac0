"""Neutral form of a question or card with its pictures, between two formats.

The annotations are the format of our JSON and CSV files.
"""

import base64
import binascii
import dataclasses
import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple
from urllib.parse import unquote

from pydantic import Field

from app.markup.images import detect_image_format
from app.markup.text import is_inside_its_folder, slugify

Kind = Literal[
    "single", "multiple", "true-false", "numeric", "short", "order", "match", "cloze", "card"
]


@dataclasses.dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers low..high around `center`, all in `unit` ("" for none)."""

    center: Annotated[float, Field(alias="centre")]  # its name in JSON and CSV files
    low: float
    high: float
    unit: str = ""

    @property
    def tolerance(self) -> float:
        """Half of the width; 0 if only the center itself is meant."""
        half_width = (self.high - self.low) / 2
        return 0.0 if half_width <= abs(self.center) * 1.5e-9 else half_width


@dataclasses.dataclass(frozen=True, slots=True)
class ItemOption:
    """A choice, an accepted answer, a number or a step, with its feedback.

    `text` is Markdown in choices and steps, plain text in short answers and empty in numeric ones,
    which have a `span`. `credit` is the partial credit (0..1) of an option that is not right.
    """

    text: str
    right: bool
    feedback: str = ""
    span: NumberRange | None = None
    credit: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def percent_weight(self) -> float:
        """Its worth in percent if only one answer is given."""
        return 100.0 if self.right else round(100 * self.credit, 5)


def build_scored_option(
    text: str,
    score: float,
    best_score: float,
    feedback: str = "",
    number_range: NumberRange | None = None,
) -> ItemOption:
    """Return an option worth `score` of `best_score`; a lower score is partial credit.

    >>> options = [build_scored_option("x", score, 100) for score in (100, 50, -10)]
    >>> [(option.right, option.credit) for option in options]
    [(True, 0.0), (False, 0.5), (False, 0.0)]
    """
    right = score >= best_score > 0
    credit = round(score / best_score, 7) if 0 < score < best_score else 0.0
    return ItemOption(text, right, feedback, number_range, credit)


@dataclasses.dataclass(frozen=True, slots=True)
class ItemPair:
    """A left and a right side; an empty `left` marks a distractor."""

    left: str
    right: str
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemBlank:
    """A gap: its answers, a hint, and `wrong` words to choose from."""

    answers: tuple[str, ...]
    hint: str = ""
    wrong: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ItemImage:
    """A picture that texts show by its `name`; `data` is Base64."""

    name: str
    data: str


class ComputedParameter(NamedTuple):
    """A parameter of a computed question, with the values that are drawn from."""

    name: str
    values: tuple[str, ...]


class NamedExpression(NamedTuple):
    name: str
    expression: str


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One question or card.

    `stem` is Markdown (the front of a card). `options` are choices, accepted and foreseen answers,
    or the distractors of an ordering question, whose `steps` are in the right order. `text` is the
    Markdown of a cloze with a `BLANK_CHARACTER` for each of its `blanks`, or the back of a card. `topic` is
    its source topic, `path` its file in a course, `line` its line in the file, from 1. `use` is
    “exam” for questions reserved for mock exams, `level` “deeper” for content beyond the exam.
    `lost` says what was lost in conversion, one sentence each. `params` and `lets` are those of an
    imported computed question, whose numeric options have a template as their `text`, and no
    `span`.
    """

    name: str
    kind: Kind
    stem: str
    options: tuple[ItemOption, ...] = ()
    steps: tuple[ItemOption, ...] = ()
    pairs: tuple[ItemPair, ...] = ()
    titles: tuple[str, str] = ("", "")
    text: str = ""
    blanks: tuple[ItemBlank, ...] = ()
    hints: tuple[str, ...] = ()
    explanation: str = ""
    mistake: str = ""
    partial: str = ""
    shuffle: bool = True
    case: bool = False
    reverse: bool = False
    difficulty: int = 3
    level: str = ""
    use: str = ""
    objectives: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    pictures: tuple[ItemImage, ...] = ()
    topic: str = ""
    line: int = 0
    lost: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    path: str = dataclasses.field(default="", compare=False)
    params: tuple[ComputedParameter, ...] = ()
    lets: tuple[NamedExpression, ...] = ()


BLANK_CHARACTER = "\ue0ff"  # private-use character that marks a gap in the text of a cloze


@dataclasses.dataclass(frozen=True, slots=True)
class ItemRemark:
    """A remark on a converted item: its name, its line, and a sentence.

    `path` is its file, empty if only one file was read.
    """

    item_name: str
    line_number: int
    sentence: str
    path: str = ""

    @property
    def path_and_line(self) -> str:
        """Its file and line; empty without a line."""
        if not self.line_number:
            return ""
        return f"{self.path}:{self.line_number}" if self.path else f"line {self.line_number}"

    def __str__(self) -> str:
        where = f"{self.path_and_line}: " if self.path_and_line else ""
        return f"{where}{self.item_name}: {self.sentence}"


@dataclasses.dataclass(frozen=True, slots=True)
class ImportResult:
    """The content of a file: items, refusals, and remarks on the whole file.

    Only course files have items that are not live.
    """

    items: tuple[Item, ...]
    refused_items: tuple[ItemRemark, ...] = ()
    not_live_items: tuple[Item, ...] = ()
    remarks_on_file: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[ItemRemark, ...]:
        return tuple(remark for item in self.items for remark in list_recorded_losses(item))


@dataclasses.dataclass(frozen=True, slots=True)
class CourseInfo:
    """The course that a file's items are from; the language is a language tag."""

    title: str
    language: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExportResult:
    """Items in another format, which were refused, and what was lost."""

    file_content: bytes
    written_item_count: int
    refused_items: tuple[ItemRemark, ...] = ()
    losses: tuple[ItemRemark, ...] = ()


class ItemSkippedError(ValueError):
    """One item cannot be converted; the message says why."""


def format_significant_digits(number: float) -> str:
    """Return a number with as many digits as needed, up to twelve.

    >>> format_significant_digits(1822.0), format_significant_digits(0.1 + 0.2), format_significant_digits(-3e15)
    ('1822', '0.3', '-3e+15')
    """
    text = f"{number:.12g}"
    return "0" if text == "-0" else text


def are_options_true_and_false(options: Iterable[ItemOption]) -> bool:
    """Return whether the choices are “true” and “false”, in any case and with a period."""
    return {option.text.strip(" .").lower() for option in options} == {"true", "false"}


def append_number_until_unused(wanted_name: str, used_names: Collection[str]) -> str:
    """Return the name, with a number behind it if it is used.

    >>> append_number_until_unused("kv-cache", {"kv-cache", "kv-cache-2"})
    'kv-cache-3'
    """
    candidates = itertools.chain(
        [wanted_name], (f"{wanted_name}-{count}" for count in itertools.count(2))
    )
    return next(candidate for candidate in candidates if candidate not in used_names)


def make_item_label(item: Item) -> str:
    text = item.stem.replace("\\\n", " ").split()
    return item.name or " ".join(text)[:50] or "(nameless)"


def list_recorded_losses(item: Item) -> tuple[ItemRemark, ...]:
    return tuple(
        ItemRemark(make_item_label(item), item.line, reason, item.path) for reason in item.lost
    )


_LARGEST_PICTURE = 2_000_000  # bytes
_PICTURE_FOLDER_NAME = "img"
_SHOWN_PICTURE = re.compile(r"(?<!\\)!\[((?:[^\[\]\\]|\\.)*)\]\(([^()\s]+)\)")
_DATA_URL = re.compile(r"data:image/[a-z+.-]{1,20};base64,", re.IGNORECASE)


class ImageCollector:
    """The pictures of one item being read, with the names they get.

    `find` returns the bytes for a URL in the file, or None.
    """

    def __init__(self, find_picture: Callable[[str], bytes | None] | None = None) -> None:
        self._find = find_picture
        self._taken: dict[str, ItemImage] = {}

    @property
    def pictures(self) -> tuple[ItemImage, ...]:
        return tuple(self._taken.values())

    def collect_and_name_image(self, url: str) -> str:
        """Return the name that a picture gets; "" if it cannot be imported."""
        content = _decode_data_url(url)
        if content is None and self._find is not None:
            content = self._find(url)
        name = make_image_name_or_empty(content or b"", unquote(url))
        if name and content:
            self._taken[name] = encode_image(name, content)
        return name


def encode_image(name: str, content: bytes) -> ItemImage:
    return ItemImage(name, base64.b64encode(content).decode())


def decode_image_or_empty(picture: ItemImage) -> bytes:
    """Return the bytes of a picture; empty if its Base64 is invalid."""
    try:
        return base64.b64decode(picture.data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def make_image_name_or_empty(content: bytes, url: str) -> str:
    """Return a unique name for a picture; "" if it is not a picture or too large.

    >>> make_image_name_or_empty(b"GIF89a and more", "Our Rack.png")
    'img/our-rack-4a589912.gif'
    """
    if not content or len(content) > _LARGEST_PICTURE:
        return ""
    ending = detect_image_format(content)
    if not ending:
        return ""
    digest = compute_image_digest(content)
    stem = "" if url.startswith("data:") else PurePosixPath(url).stem
    # A name given here before is given again, even if it became a file name in the meantime.
    slug = slugify(stem.removesuffix(f"-{digest}").removeprefix(f"{_PICTURE_FOLDER_NAME}-"))
    return f"{_PICTURE_FOLDER_NAME}/{slug[:40].strip('-') or 'picture'}-{digest}.{ending}"


def compute_image_digest(content: bytes) -> str:
    """Return eight hex digits that identify the content."""
    return hashlib.sha256(content).hexdigest()[:8]


def keep_url_inside_topic_folder_or_empty(url: str) -> str:
    """Return the name of a picture in a topic folder; "" for any other URL."""
    return url if is_inside_its_folder(url) else ""


def list_shown_picture_names(item: Item) -> tuple[str, ...]:
    names: dict[str, None] = {}

    def note(text: str) -> str:
        names.update((match[2], None) for match in _SHOWN_PICTURE.finditer(text))
        return text

    map_item_texts(item, note)
    return tuple(names)


def rename_or_drop_images(item: Item, new_name_by_old_name: Mapping[str, str]) -> Item:
    """Return the item with its pictures renamed; one without a new name becomes its alt text."""

    def replace(match: re.Match[str]) -> str:
        name = new_name_by_old_name.get(match[2], "")
        return f"![{match[1]}]({name})" if name else match[1]

    return map_item_texts(item, lambda text: _SHOWN_PICTURE.sub(replace, text))


def map_item_texts(
    item: Item, convert_text: Callable[[str], str], *, include_answers: bool = False
) -> Item:
    """Return the item with each of its Markdown texts changed.

    With `include_answers`, also the answers that are plain text.
    """
    plain = item.kind in {"short", "numeric"} and not include_answers

    def change_option(option: ItemOption) -> ItemOption:
        text = option.text if plain else convert_text(option.text)
        return dataclasses.replace(option, text=text, feedback=convert_text(option.feedback))

    return dataclasses.replace(
        item,
        stem=convert_text(item.stem),
        text=convert_text(item.text),
        explanation=convert_text(item.explanation),
        mistake=convert_text(item.mistake),
        hints=tuple(map(convert_text, item.hints)),
        options=tuple(map(change_option, item.options)),
        steps=tuple(map(change_option, item.steps)),
        pairs=tuple(
            ItemPair(convert_text(p.left), convert_text(p.right), convert_text(p.why))
            for p in item.pairs
        ),
    )


def _decode_data_url(url: str) -> bytes | None:
    match = _DATA_URL.match(url)
    if match is None or len(url) > 2 * _LARGEST_PICTURE:
        return None
    try:
        return base64.b64decode("".join(url[match.end() :].split()), validate=True)
    except (binascii.Error, ValueError):
        return None
