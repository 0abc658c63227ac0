"""Which questions a sitting asks: rules that a seed repeats."""

import dataclasses
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from app.content.model import ExamBlueprint
from app.questions import kinds
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
    held = drawable((q for q in questions if kinds.type_of(q).of_exam), domain_of)
    every = drawable(questions, domain_of)
    lacking = {
        domain
        for domain, count in wanted.items()
        if len(held.get(domain, ())) < min(count, len(every.get(domain, ())))
    }
    return [q for q in questions if kinds.type_of(q).of_exam or q.home(domain_of) in lacking]


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
