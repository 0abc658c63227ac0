"""Rules for the topics of a course among each other, and for its cards."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from app.content.identity import normalize_text
from app.content.model import Flashcard, Topic
from app.content.problems import ContentProblem, make_problem
from app.content.rules.bank import ParsedCourse


def check_order(bank: ParsedCourse, pages: Mapping[str, Topic]) -> list[ContentProblem]:
    """W36, W37, E39: each topic once in the order, with a title of its own."""
    return [
        *_ordered(bank, pages),
        *_titled(pages),
        *(p for slug in pages for p in _circling(slug, pages, bank)),
    ]


def _ordered(bank: ParsedCourse, pages: Mapping[str, Topic]) -> Iterator[ContentProblem]:
    register = bank.readings.get("syllabus.toml")
    order = bank.syllabus.topics
    if register is None or not order:
        return
    lines = {m.value: (m.line, m.column) for m in register.mentions}
    for topic, count in Counter(order).items():
        if count > 1:
            message = f"“{topic}” stands {count} times in the order."
            place = ("syllabus.toml", *lines.get(topic, (1, 1)))
            yield make_problem(place, "W36", message, "Keep one of them.")
    moved = set(bank.renamed().values())  # which the order is told to name
    for topic in pages:
        if topic not in {*order, *moved} and pages[topic].status == "live":
            message = f"The topic “{topic}” is not in the order of the syllabus."
            hint = f'Write "{topic}" into order; until then it stands at the end.'
            yield make_problem((pages[topic].place.path, 1, 1), "W36", message, hint)


def _titled(pages: Mapping[str, Topic]) -> Iterator[ContentProblem]:
    first: dict[str, Topic] = {}
    for page in pages.values():
        other = first.setdefault(normalize_text(page.title), page)
        if other is not page:
            message = f"“{page.title}” is the title of {other.place.path} as well."
            hint = "Give one of them another: lists show nothing but the title."
            yield make_problem((page.place.path, 1, 1), "W37", message, hint)


def _circling(
    slug: str, pages: Mapping[str, Topic], bank: ParsedCourse
) -> Iterator[ContentProblem]:
    """E39: what a topic asks to be read before does not ask for the topic itself."""
    page = pages[slug]
    mentions = bank.readings[page.place.path].mentions
    for wanted in page.requires:
        way = _way(wanted, slug, pages)
        if not way:
            continue
        at = [(m.line, m.column) for m in mentions if m.value == wanted]
        detour = " → ".join((slug, *way))
        message = f"“{slug}” is to be read before itself: {detour}."
        hint = "Take one of these requirements away."
        yield make_problem((page.place.path, *(at or [(1, 1)])[0]), "E39", message, hint)


def _way(start: str, end: str, pages: Mapping[str, Topic]) -> tuple[str, ...]:
    """The shortest way from one topic to another along what they require."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == end:
            return way
        for step in pages[way[-1]].requires if way[-1] in pages else ():
            if step not in seen:
                seen.add(step)
                ways.append((*way, step))
    return ()


def check_drafts(bank: ParsedCourse, pages: Mapping[str, Topic]) -> Iterator[ContentProblem]:
    """E61: what learners read does not lead to what they cannot open."""
    hidden = {slug: p.status for slug, p in pages.items() if p.status != "live"}
    for page in pages.values():
        for mention in bank.readings[page.place.path].mentions if hidden else ():
            slug = mention.value.removeprefix("/concepts/").partition("#")[0]
            known = mention.kind in {"page", "topic"} and slug in hidden
            if known and page.status == "live":
                message = f"“{slug}” is no live page (status: {hidden[slug]})."
                hint = "Make it live, or leave the link out until it is."
                place = (page.place.path, mention.line, mention.column)
                yield make_problem(place, "E61", message, hint)


def check_fronts(cards: Mapping[str, Flashcard]) -> Iterable[ContentProblem]:
    """W35: no two cards ask the same; a reverse asks what its card answers."""
    first: dict[str, Flashcard] = {}
    for card in cards.values():
        if card.is_reverse:
            continue
        front = normalize_text(card.front.plain)
        other = first.setdefault(front, card)
        if front and other is not card:
            where = f"{other.place.path}:{other.place.line}"
            message = f"The card asks the same as “{other.id}” in {where}."
            place = (card.place.path, card.place.line, 1)
            yield make_problem(place, "W35", message, "Ask for something else.", card.id)
