"""Words and slugs: scripts and languages, ids, content hashes, similarity of texts."""

import difflib
import hashlib
import itertools
import re
import unicodedata
import zlib
from collections.abc import Iterable

# Languages that are written from right to left, unless their tag names another script.
_RIGHT_TO_LEFT = frozenset(["ar", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"])
_RIGHT_TO_LEFT_SCRIPTS = frozenset(["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"])
# Thai and Lao, Burmese, Khmer, Japanese and Chinese, which have no spaces between words,
# and Korean, whose words have endings.
_UNSPACED_LETTER_CLASS = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_UNSPACED_LETTER = re.compile(_UNSPACED_LETTER_CLASS)
_LETTERS_OF_A_WORD = 2  # on average, in Chinese and Japanese
BOUNDARY = "\u200b"
"""Written between letters that may be the ends of words; invisible."""
ENDS = ".!?\u06d4\u061f\u0964\u3002\uff01\uff1f"
"""Punctuation that ends a sentence, in several scripts. No space follows the last three."""
UNSPACED_ENDS = ENDS[-3:]


def text_direction(language_tag: str) -> str:
    """Return “rtl” or “ltr”, by the script of a language tag, or of its language.

    >>> [text_direction(tag) for tag in ("ar", "he-IL", "de", "ku-Arab", "ks-Deva-IN")]
    ['rtl', 'rtl', 'ltr', 'rtl', 'ltr']
    """
    language, *rest = language_tag.split("-")
    script = next((part for part in rest if len(part) == 4), "")
    is_right_to_left = script in _RIGHT_TO_LEFT_SCRIPTS if script else language in _RIGHT_TO_LEFT
    return "rtl" if is_right_to_left else "ltr"


def add_boundaries_in_unspaced_scripts(text: str) -> str:
    """Return the text with a boundary before and after each letter that may be a word.

    >>> add_boundaries_in_unspaced_scripts("GPU 缓存").replace(BOUNDARY, "|")
    'GPU |缓||存|'
    """
    return _UNSPACED_LETTER.sub(rf"{BOUNDARY}\g<0>{BOUNDARY}", text) if not text.isascii() else text


def is_of_unspaced_script(letter: str) -> bool:
    """Return whether a letter belongs to a script without spaces; False for ""."""
    return bool(_UNSPACED_LETTER.match(letter))


def count_words(text: str) -> int:
    """Count the words of a text; in scripts without spaces two letters count as one word.

    >>> count_words("two words"), count_words("键值缓存"), count_words("GPU 缓存")
    (2, 2, 2)
    """
    if text.isascii():
        return len(text.split())
    letters = len(_UNSPACED_LETTER.findall(text))
    return len(_UNSPACED_LETTER.sub(" ", text).split()) + -(-letters // _LETTERS_OF_A_WORD)


_KEY_CONSONANTS = "bcdfghjklmnpqrstvwxz"  # No vowels, so that a key never spells a word.
MOST_SAMPLES = 12  # Maximum word pairs in a sketch of a text.
_LONGEST_WORD = 80  # The comparison takes time quadratic in this length.
LARGEST_SAMPLE = 0xFFFFFF
_LOW_BITS = LARGEST_SAMPLE.__and__
_WORD_OR_SIGN = re.compile(r"[^\W_]+(?:[.,]\d+)*|[<>=+\-−×/%]")
_SLUG_PART = "[a-z0-9\u00aa-\U0010ffff]+"
SLUG_LIKE = f"{_SLUG_PART}(?:-{_SLUG_PART})*"
"""Pattern of what may be a slug in a text; `is_slug` says whether it is one."""
LONGEST_ID = 80


def slugify(text: str) -> str:
    """Return the anchor form of a heading: lower case, words joined by hyphens.

    Letters, marks and digits of every script stay. Signs that are not ASCII are dropped.

    >>> slugify("KV cache, per token"), slugify("Łódź\u2019s №\u00a02"), slugify("発酵・パン")
    ('kv-cache-per-token', 'łódźs-no-2', '発酵パン')
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    letters = (c for c in plain if c.isascii() or unicodedata.category(c)[0] in "LMN")
    return "-".join(re.findall(_SLUG_PART, "".join(letters)))


def is_slug(text: str) -> bool:
    """Return whether a text can stand in an address, as the slug of a topic or an id.

    >>> [is_slug(text) for text in ("kv-cache", "хлеб", "KV", "a--b", "a_b", "")]
    [True, True, False, False, False, False]
    """
    return bool(text) and slugify(text) == text


def reduce_to_words(text: str) -> str:
    """Reduce text to its words, so that only wording is compared."""
    return " ".join(_WORD_OR_SIGN.findall(text.lower()))


def hash_to_four_letters(*parts: str) -> str:
    """Return a key of four letters for an option: stable, and unrelated to its content."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:6])
    letters = ""
    for _ in range(4):
        number, rest = divmod(number, len(_KEY_CONSONANTS))
        letters += _KEY_CONSONANTS[rest]
    return letters


def content_hash(text: str) -> str:
    """Hash an item's content, ignoring white space."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


# Revisions of questions were made from the names that these classes and fields had at
# first. Others would give each question with a drawing or with drawn numbers a new one.
_HASHED_NAMES = {
    "QuestionParameters(possible_values_by_name=": "Computed(params=",
    ", named_expressions=": ", lets=",
    "SvgFigure(inner_markup=": "Drawing(markup=",
    ", clickable_regions=": ", areas=",
    "RegionBox(": "Area(",
    ", why_unclickable_by_region=": ", blurred=",
    ", smallest_font_size=": ", text=",
    ", uses_diagram_classes=": ", meant=",
    ", last_line=": ", line=",
}


def repr_for_content_hash(value: object) -> str:
    """Return the text of a value that content hashes are made from."""
    text = repr(value)
    for name, hashed in _HASHED_NAMES.items():
        text = text.replace(name, hashed)
    return text


def hash_words(text: str) -> str:
    """Hash the words of a text; empty if it has none."""
    return content_hash(reduce_to_words(text) or text)[:8] if text.strip() else ""


def bottom_k_sketch(text: str) -> tuple[int, ...]:
    """Return the bottom-k sketch of a text's word pairs, for `estimate_jaccard_similarity`."""
    words = (
        " ".join(_WORD_OR_SIGN.findall(add_boundaries_in_unspaced_scripts(text.lower())))
        .encode()
        .split()
    )
    pairs = map(b" ".join, itertools.pairwise(words))
    hashes = map(zlib.crc32, itertools.chain(words, pairs))
    return tuple(sorted(set(map(_LOW_BITS, hashes)))[:MOST_SAMPLES])


def estimate_jaccard_similarity(
    first_sketch: tuple[int, ...], second_sketch: tuple[int, ...]
) -> float:
    """Estimate the Jaccard similarity of two sketched texts, 0 to 1."""
    if not first_sketch or not second_sketch:
        return 1.0 if first_sketch == second_sketch else 0.0
    union = sorted({*first_sketch, *second_sketch})[:MOST_SAMPLES]
    common = set(first_sketch) & set(second_sketch)
    return sum(value in common for value in union) / len(union)


def shorten_with_ellipsis(text: str, max_length: int = 200) -> str:
    """Return a text for a hint; one longer than `max_length` is cut and ends with “…”.

    >>> shorten_with_ellipsis("two ways out", 5)
    'two w…'
    """
    return text if len(text) <= max_length else f"{text[:max_length]}…"


def find_closest_word_or_empty(
    word: str, vocabulary: Iterable[str], min_similarity: float = 0.6
) -> str:
    """Return the known word closest to `word`, or "" if none is similar by at least `min_similarity`."""
    if len(word) > _LONGEST_WORD:
        return ""
    known_words = list(vocabulary)
    same_ignoring_case = [
        candidate for candidate in known_words if candidate.casefold() == word.casefold()
    ]
    ascii_word = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    matches = (
        same_ignoring_case
        or difflib.get_close_matches(word, known_words, n=1, cutoff=min_similarity)
        or difflib.get_close_matches(ascii_word, known_words, n=1, cutoff=min_similarity)
    )
    return matches[0] if matches else ""


def write_hint_for_unknown_word(
    word: str, vocabulary: Iterable[str], min_similarity: float = 0.6
) -> str:
    """Return a hint for an unknown word: the closest known one, or all of them."""
    known_words = sorted(set(vocabulary))
    closest = find_closest_word_or_empty(word, known_words, min_similarity)
    if closest:
        return f"Did you mean “{closest}”?"
    return f"Known: {', '.join(known_words)}." if 0 < len(known_words) <= 24 else ""


def is_inside_its_folder(relative_path: str) -> bool:
    """Return whether a file name stays within its folder.

    >>> is_inside_its_folder("img/board.png"), is_inside_its_folder("../board.png")
    (True, False)
    """
    return not re.search(r"[\\:]|(?:^|/)(?:\.|/|$)", relative_path)


def is_isbn(text: str) -> bool:
    """Return whether a text is an ISBN of 10 or 13 digits; hyphens and spaces are ignored.

    Source: ISBN Users' Manual, International ISBN Agency: the check digit.

    >>> is_isbn("978-0-306-40615-7"), is_isbn("0-306-40615-2"), is_isbn("978-0")
    (True, True, False)
    """
    digits = re.sub(r"[- ]", "", text)
    if re.fullmatch(r"[0-9]{13}", digits):
        return sum(int(d) * (1, 3)[n % 2] for n, d in enumerate(digits)) % 10 == 0
    if re.fullmatch(r"[0-9]{9}[0-9Xx]", digits):
        values = [10 if d in "Xx" else int(d) for d in digits]
        return sum(v * (10 - n) for n, v in enumerate(values)) % 11 == 0
    return False


# ISO 639-1. BCP 47 requires the two-letter code for languages that have one:
# https://www.loc.gov/standards/iso639-2/php/English_list.php
_LANGUAGE_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu
cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he
hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko
kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd
ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty
ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_LANGUAGE_TAG = re.compile(
    r"(?P<code>[a-z]{2,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|\d{3}))?",
    re.IGNORECASE | re.ASCII,
)


def canonicalize_language_tag_or_empty(language_tag: str) -> str:
    """Return a language tag in canonical case; empty if it is not a language tag.

    >>> [canonicalize_language_tag_or_empty(word) for word in ("de", "PT-br", "zh-hant-TW", "German", "jp")]
    ['de', 'pt-BR', 'zh-Hant-TW', '', '']
    """
    match = _LANGUAGE_TAG.fullmatch(language_tag)
    if match is None:
        return ""
    code = match["code"].lower()
    if (
        len(code) == 2 and code not in _LANGUAGE_CODES.split()
    ):  # This is a country code, such as “jp”, and not a language.
        return ""
    parts = code, (match["script"] or "").title(), (match["region"] or "").upper()
    return "-".join(part for part in parts if part)


def same_language(first_tag: str, second_tag: str) -> bool:
    """Return whether two tags name the same language, ignoring region.

    >>> same_language("en-GB", "en"), same_language("de", "en")
    (True, False)
    """
    return first_tag.partition("-")[0] == second_tag.partition("-")[0]
