"""W38, W87, W94: what every topic needs besides its text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.content.identity import SLUG, slug
from app.content.model import Flashcard, Topic
from app.content.parsed import ParsedFile
from app.content.problems import ContentProblem, make_problem
from app.content.rules.coverage import counting
from app.questions.model import Question

_LEAST_QUESTIONS = 5


def check_topics(
    topics: Mapping[str, Topic],
    readings: Mapping[str, ParsedFile],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> list[ContentProblem]:
    """Report topics without exam box, memory hook, cards or five questions.

    `questions` and `cards` are those of authors: drafts are named, and not counted.
    """
    found: list[ContentProblem] = []
    for topic in topics.values():
        reading = readings[topic.place.path]
        found += _unsaid(topic)
        lacking = []
        boxes = [kind for kind, _ in reading.alerts]
        if "IMPORTANT" not in boxes:
            lacking.append("exam box ([!IMPORTANT])")
        if "TIP" not in boxes:
            lacking.append("memory hook ([!TIP])")
        carded = (c for c in cards.values() if not c.is_reverse)
        drafts = [] if topic.cards else _drafts(topic, carded, "card")
        if not topic.cards and not drafts:
            lacking.append("cards")
        if lacking:
            message = f"“{topic.title}” has no {', no '.join(lacking)}."
            found.append(_lack(topic, message))
        if drafts:
            message = f"“{topic.title}” has no cards that are live."
            found.append(_lack(topic, message, drafts))
        found += _hooks(topic, reading)
        found += _unasked(topic, readings, questions.values())
        found += _unaddressed(topic)
    return found


def _hooks(topic: Topic, reading: ParsedFile) -> Iterator[ContentProblem]:
    hooks = [line for kind, line in reading.alerts if kind == "TIP"]
    if len(hooks) > 1:
        message = f"“{topic.title}” has {len(hooks)} memory hooks ([!TIP])."
        hint = f"Keep it or the one on line {hooks[0]}; the other can be a [!NOTE]."
        yield make_problem((topic.place.path, hooks[1], 1), "W87", message, hint)


def _unasked(
    topic: Topic, readings: Mapping[str, ParsedFile], questions: Iterable[Question]
) -> Iterator[ContentProblem]:
    count = len(topic.questions)
    if count >= _LEAST_QUESTIONS:
        return
    drafts = _drafts(topic, questions, "question")
    live = f" that {'is' if count == 1 else 'are'} live" if drafts else ""
    questions_ = f"{count} question{'s' * (count != 1)}"
    message = f"“{topic.title}” has {questions_}{live}, not five."
    if f"topics/{topic.slug}/quiz.md" not in readings:
        asked = f"{count or 'no'} question{'s' * (count != 1)} on its page"
        message = f"“{topic.title}” has no quiz.md, and {asked}."
    yield _lack(topic, message, drafts)


def _drafts(topic: Topic, items: Iterable[Question | Flashcard], what: str) -> list[str]:
    """The items of a topic that would count if they were live, by file in words."""
    own = [i for i in items if i.topic == topic.slug and i.status != "live"]
    return [
        f"{count} {what}{'s' * (count != 1)} of {path}"
        for path, count in Counter(i.place.path for i in own).items()
    ]


def _unaddressed(topic: Topic) -> Iterator[ContentProblem]:
    if not SLUG.match(topic.slug):
        message = f"The folder “{topic.slug}” makes a poor address."
        hint = "Rename it in lower-case letters, digits and hyphens"
        hint += f": {slug(topic.slug)}." if slug(topic.slug) else "."
        yield make_problem((f"topics/{topic.slug}", 1, 1), "W94", message, hint)


def _unsaid(topic: Topic) -> Iterator[ContentProblem]:
    for name, value in (("summary", topic.summary), ("reviewed", topic.reviewed)):
        if not value:
            message = f"The page has no “{name}” in its front matter."
            hint = f"Write a line “{name}: …”."
            yield make_problem((topic.place.path, 1, 1), "W38", message, hint)


def _lack(topic: Topic, message: str, drafts: Sequence[str] = ()) -> ContentProblem:
    hint = counting(drafts) if drafts else "Add what is missing."
    return make_problem((topic.place.path, 1, 1), "W87", message, hint)
