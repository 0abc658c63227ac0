"""Draw the questions of a mock exam by blueprint."""

import dataclasses
import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.markup.model import Domain, ExamBlueprint
from app.mastery.question_counts import apportion
from app.mastery.readiness import cut, is_long, short_count, short_of
from app.questions import types
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class PaperItem:
    """One question of a paper: the item, the wording, and the seed of its variant."""

    number: int
    item: str
    revision: str
    seed: int
    domain: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPaper:
    """The questions in the order asked; `missing` says what the bank lacks."""

    slots: tuple[PaperItem, ...]
    missing: Mapping[str, int]


def assemble_paper(
    blueprint: ExamBlueprint,
    domain_of: Mapping[str, str],
    questions: Iterable[Question],
    seen: Mapping[str, int],
    seed: int,
    before: Collection[str] = (),
) -> ExamPaper:
    """Draw a paper by blueprint: unseen items first, objectives evenly, none twice.

    `domain_of` maps an objective to its domain, `seen` an item to how often the
    learner met it; `before` are the items of the paper before this one, which come
    last. Of what is equally new, what is kept for exams comes first. The same
    arguments give the same paper. A domain whose bank is too small gives what it has,
    and `missing` counts the rest.
    """
    chance = random.Random(seed)  # noqa: S311 - a paper must be repeatable, not secret
    bank = drawable(questions, domain_of)
    chosen: list[tuple[str, Question]] = []
    missing: dict[str, int] = {}
    for domain, wanted in blueprint.domains.items():
        picked = _pick(bank.get(domain, []), wanted, (seen, before), chance)
        chosen += [(domain, question) for question in picked]
        if len(picked) < wanted:
            missing[domain] = wanted - len(picked)
    chance.shuffle(chosen)
    return ExamPaper(
        tuple(
            PaperItem(n, q.id, q.revision, chance.getrandbits(31), domain)
            for n, (domain, q) in enumerate(chosen, 1)
        ),
        missing,
    )


def drawable(
    questions: Iterable[Question], domain_of: Mapping[str, str]
) -> dict[str, list[Question]]:
    """What a paper may ask, by domain; each question once, where its first goal is."""
    bank: dict[str, list[Question]] = {}
    for question in sorted(questions, key=lambda q: q.id):
        home = question.home(domain_of)
        if home and question.drawable:
            bank.setdefault(home, []).append(question)
    return bank


def as_in_exam(
    questions: Sequence[Question],
    domain_of: Mapping[str, str],
    wanted: Mapping[str, int],
) -> Sequence[Question]:
    """The questions of the kinds that most exams have, single and multiple choice.

    A domain of which those cannot fill what is asked has all of its questions.
    """
    held = drawable((q for q in questions if types.type_of(q).of_exam), domain_of)
    every = drawable(questions, domain_of)
    lacking = {
        domain
        for domain, count in wanted.items()
        if len(held.get(domain, ())) < min(count, len(every.get(domain, ())))
    }
    return [q for q in questions if types.type_of(q).of_exam or q.home(domain_of) in lacking]


def _pick(
    candidates: Sequence[Question],
    wanted: int,
    met: tuple[Mapping[str, int], Collection[str]],
    chance: random.Random,
) -> list[Question]:
    """Take what was not asked just before and the least seen; then objectives in turn.

    Then what is kept for exams, then by chance.
    """
    seen, before = met
    order = {q.id: chance.random() for q in candidates}
    rest = list(candidates)
    taken: Counter[str] = Counter()
    picked: list[Question] = []
    while rest and len(picked) < wanted:
        best = min(
            rest,
            key=lambda q: (
                q.id in before,
                seen.get(q.id, 0),
                taken[q.objectives[0]],
                not q.reserved,
                order[q.id],
            ),
        )
        rest.remove(best)
        taken[best.objectives[0]] += 1
        picked.append(best)
    return picked


def minutes_for(blueprint: ExamBlueprint, paper: ExamPaper, factor: float) -> float:
    """The minutes for `paper`: the exam's pace, times the learner's time factor.

    A paper that the bank could not fill keeps the pace of the whole exam.
    """
    share = len(paper.slots) / blueprint.questions if blueprint.questions else 1.0
    return blueprint.minutes * min(share, 1.0) * factor


def is_over(deadline: dt.datetime, now: dt.datetime) -> bool:
    """Whether the time of a sitting is up; the deadline itself still counts."""
    return now > deadline


MISSED = "missed"

_CUT = re.compile(r"(?P<exam>[^~]+)~(?P<way>short|missed|domain-(?P<domain>[^~]+))")


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionPool:
    """What papers are cut from, by domain: all questions, and those missed."""

    all: Mapping[str, int]
    missed: Mapping[str, int]

    def missed_of(self, exam: ExamBlueprint) -> int:
        """How many of the missed an exam can ask; a paper may hold fewer."""
        return sum(n for domain, n in self.missed.items() if domain in exam.domains)


def whole_of(slug: str) -> str:
    """The exam that a paper was cut from, or the paper itself.

    >>> whole_of("nca~short"), whole_of("nca")
    ('nca', 'nca')
    """
    return slug.partition("~")[0]


def asks_missed(slug: str) -> bool:
    """Whether a paper asks only what was missed."""
    return slug.endswith(f"~{MISSED}")


def derived_exams(
    exam: ExamBlueprint, domains: Collection[Domain], bank: QuestionPool
) -> Iterator[ExamBlueprint]:
    """Every paper that can be cut from an exam now, at its pace."""
    if not is_long(exam):
        return
    count = short_count(exam)
    yield short_of(exam)
    for domain in domains:
        held = min(count, bank.all.get(domain.number, 0))
        if domain.number in exam.domains and held:
            way = f"domain-{domain.number}"
            yield cut(exam, way, f"{domain.title} only", {domain.number: held})
    missed = {d: n for d, n in bank.missed.items() if d in exam.domains and n}
    if sum(missed.values()) > exam.questions:
        missed = apportion(missed, exam.questions)
    if missed:
        yield cut(exam, MISSED, "Only what you missed", missed)


def named(slug: str, exams: Mapping[str, ExamBlueprint], titles: Mapping[str, str]) -> str:
    """What a paper is called, now or long after it was cut; `titles` are of domains."""
    if slug in exams:
        return exams[slug].title
    found = _CUT.fullmatch(slug)
    if found is None:
        return slug
    if found["domain"]:
        return f"{titles.get(found['domain'], 'One domain')} only"
    return "Short mock exam" if found["way"] == "short" else "Only what you missed"
