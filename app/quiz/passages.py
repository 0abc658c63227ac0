"""Find the sentence of a page that answers a question."""

import collections
import dataclasses
import itertools
import math
import re
from urllib.parse import quote

from app.markup.model import Topic
from app.markup.scripts import BOUNDARY, ENDS, UNSPACED_ENDS, mark_letter_boundaries

_WORD = re.compile(r"[^\W_]{2,}")
_SENTENCE_END = re.compile(rf"(?<=[{ENDS};:])\s+|(?<=[{UNSPACED_ENDS}])|\n(?=[^\W\d_a-z]|“)")
_BEFORE_A_STOP = re.compile(r"\s+(?=[,.;:!?)])")
_PLAIN_WORD = re.compile("[\\w,.'\u2019%/-]+")
_MOST_WORDS = 6  # that a browser has to find on the page
_LEAST_WORDS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a page, and the anchor of its section."""

    anchor: str
    text: str

    @property
    def fragment(self) -> str:
        """The end of a URL: a browser marks the sentence, or else goes to its section."""
        text = self.text
        if text.endswith(";"):  # the row of a table: a browser finds only text within one cell
            text = max(text.rstrip(";").split(", "), key=len)
        # A formula reads differently on the page.
        words = list(itertools.takewhile(_PLAIN_WORD.fullmatch, text.split()[:_MOST_WORDS]))
        if len(words) < _LEAST_WORDS:
            return f"#{self.anchor}"
        # A hyphen has a meaning of its own in a text fragment.
        return f"#{self.anchor}:~:text={quote(' '.join(words), safe='').replace('-', '%2D')}"


def find_passage(topic: Topic, stem: str, answer: str) -> Passage | None:
    """Return the sentence that shares the rarest words with a question; None if none does.

    The words of the right `answer` and its explanation count twice as much as those of the stem.
    """
    passages = [
        Passage(section.anchor, _BEFORE_A_STOP.sub("", " ".join(sentence.split())))
        for section in topic.sections
        if section.anchor
        for sentence in _SENTENCE_END.split(section.plain)
    ]
    words = [_distinct_words(passage.text) for passage in passages]
    sentences_with = collections.Counter(word for sentence in words for word in sentence)
    weights = dict.fromkeys(_distinct_words(stem), 1) | dict.fromkeys(_distinct_words(answer), 2)
    best, found = 0.0, None
    for passage, sentence in zip(passages, words, strict=True):
        shared = sentence & weights.keys()
        rarity = sum(weights[w] * math.log(len(words) / sentences_with[w]) for w in shared)
        score = rarity / math.sqrt(8 + len(sentence))  # a long sentence has more words by chance
        if score > best:
            best, found = score, passage
    return found


def _distinct_words(text: str) -> frozenset[str]:
    """Return the words of a text without the endings of plurals, or pairs of letters."""
    parted = mark_letter_boundaries(text.lower()).split(BOUNDARY)
    pairs = (a + b for a, b in itertools.pairwise(filter(None, parted)) if len(a + b) == 2)
    words = (word.rstrip("s") for part in parted for word in _WORD.findall(part))
    return frozenset((*words, *pairs))
