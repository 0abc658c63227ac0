"""What depends on the script of a text: direction, words without spaces, ends of sentences."""

import re

# Languages that are written from right to left, unless their tag names another script.
_RIGHT_TO_LEFT = frozenset(["ar", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"])
_RIGHT_TO_LEFT_SCRIPTS = frozenset(["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"])
# Thai and Lao, Burmese, Khmer, Japanese and Chinese, which have no spaces between words,
# and Korean, whose words have endings.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_LETTER = re.compile(_UNSPACED)
_LETTERS_OF_A_WORD = 2  # on average, in Chinese and Japanese
BOUNDARY = "\u200b"
"""Written between letters that may be the ends of words; it is never seen."""
ENDS = ".!?\u06d4\u061f\u0964\u3002\uff01\uff1f"
"""Signs that end a sentence, in several scripts. Behind the last three stands no space."""
UNSPACED_ENDS = ENDS[-3:]


def text_direction(tag: str) -> str:
    """Return “rtl” or “ltr”, by the script of a language tag, or of its language.

    >>> [text_direction(tag) for tag in ("ar", "he-IL", "de", "ku-Arab", "ks-Deva-IN")]
    ['rtl', 'rtl', 'ltr', 'rtl', 'ltr']
    """
    language, *rest = tag.split("-")
    script = next((part for part in rest if len(part) == 4), "")
    right = script in _RIGHT_TO_LEFT_SCRIPTS if script else language in _RIGHT_TO_LEFT
    return "rtl" if right else "ltr"


def mark_letter_boundaries(text: str) -> str:
    """Return the text with a boundary before and behind each letter that may be a word.

    >>> mark_letter_boundaries("GPU 缓存").replace(BOUNDARY, "|")
    'GPU |缓||存|'
    """
    return _LETTER.sub(rf"{BOUNDARY}\g<0>{BOUNDARY}", text) if not text.isascii() else text


def is_unspaced(letter: str) -> bool:
    """Return whether a letter belongs to a script without spaces; False for ""."""
    return bool(_LETTER.match(letter))


def count_words(text: str) -> int:
    """Count the words of a text; two letters are one where no spaces part them.

    >>> count_words("two words"), count_words("键值缓存"), count_words("GPU 缓存")
    (2, 2, 2)
    """
    if text.isascii():
        return len(text.split())
    letters = len(_LETTER.findall(text))
    return len(_LETTER.sub(" ", text).split()) + -(-letters // _LETTERS_OF_A_WORD)
