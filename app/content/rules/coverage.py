"""E70, E71, W73: what serves an objective, what fills an exam, and what would. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from app.content.identity import did_you_mean
from app.content.model import Flashcard, Topic
from app.content.problems import ContentProblem, make_problem
from app.content.rules.bank import ParsedCourse
from app.questions.model import Question

_NAMED = 3  # drafts that are named, of those that there are


def check_coverage(
    bank: ParsedCourse, questions: Iterable[Question], cards: Iterable[Flashcard]
) -> list[ContentProblem]:
    """Whether the bank can fill its exams and serves every objective.

    `questions` and `cards` are those of authors: what is not live does not count, but
    is named where it would.
    """
    asked = list(questions)
    pages = [r.topic for r in bank.readings.values() if r.topic]
    learned = [c for c in cards if not c.is_reverse]
    return [*_blueprints(bank, asked), *_uncovered(bank, pages, asked, learned)]


def counting(drafts: Sequence[str]) -> str:
    """The remedy where drafts hold what is missing; `drafts` names them in words."""
    named = ", ".join(drafts[:_NAMED])
    more = f" and {len(drafts) - _NAMED} more" if len(drafts) > _NAMED else ""
    return f"Drafts would count: {named}{more}. Finish them, and take their line “status” out."


def _uncovered(
    bank: ParsedCourse,
    pages: Sequence[Topic],
    questions: Sequence[Question],
    cards: Sequence[Flashcard],
) -> Iterable[ContentProblem]:
    """W73: each objective has a page, questions and cards that learners see."""
    register = bank.readings.get("syllabus.toml")
    lines = dict(register.entries) if register else {}
    classes: dict[str, Sequence[Topic | Question | Flashcard]] = {
        "page": pages,
        "questions": questions,
        "cards": cards,
    }
    for number in sorted(bank.objectives()):
        serving = {
            name: [item for item in items if number in item.objectives]
            for name, items in classes.items()
        }
        lacking = [
            name for name, items in serving.items() if all(item.status != "live" for item in items)
        ]
        if not lacking:
            continue
        message = f"Objective {number} has no {' and no '.join(lacking)}"
        files = [item.place.path for name in lacking for item in serving[name]]
        drafts = [*dict.fromkeys(files)]
        hint = "Write a topic for it, or add its number to one that is live."
        if drafts:
            message += " that learners see"
            hint = counting(drafts)
            absent = [name for name in lacking if not serving[name]]
            hint += f" Beside it, write {' and '.join(absent)}." if absent else ""
        place = ("syllabus.toml", lines.get(number, 1), 1)
        yield make_problem(place, "W73", f"{message}.", hint)


def _blueprints(bank: ParsedCourse, questions: Iterable[Question]) -> Iterable[ContentProblem]:
    """E70, E71: an exam asks of domains that exist no more than they have."""
    domain_of = {o.number: o.domain for d in bank.syllabus.domains for o in d.objectives}
    drawn = [(q.home(domain_of), q) for q in questions if q.drawable]
    held = Counter(domain for domain, q in drawn if q.status == "live")
    drafts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for domain, question in drawn:
        if question.status != "live":
            drafts[domain][question.place.path] += 1
    domains = {d.number for d in bank.syllabus.domains}
    for path, reading in bank.readings.items():
        lines = dict(reading.entries)
        for number, wanted in reading.exam.domains.items() if reading.exam else ():
            place = (path, lines.get(number, 1), 1)
            if number not in domains:
                message = f"“{number}” is not a domain of syllabus.toml."
                yield make_problem(place, "E70", message, did_you_mean(number, domains))
            elif held[number] < wanted:
                counts = (number, wanted, held[number])
                yield make_problem(place, "E71", *_unfilled(counts, drafts[number]))


def _unfilled(counts: tuple[str, int, int], drafts: Counter[str]) -> tuple[str, str]:
    """What is said where a domain has too few; `counts`: it, what is asked, is held."""
    number, wanted, held = counts
    message = f"The exam asks {wanted} questions of domain {number}, "
    message += f"the course has {held}"
    if drafts:
        return f"{message} that are live.", _filling(drafts, wanted - held)
    return f"{message}.", "Write more questions, or ask fewer."


def _filling(drafts: Counter[str], lacking: int) -> str:
    """The remedy where drafts would count, and how many are written beside them."""
    hint = counting([f"{count} of {path}" for path, count in drafts.items()])
    rest = lacking - drafts.total()
    return f"{hint} Write {rest} more beside them, or ask fewer." if rest > 0 else hint
