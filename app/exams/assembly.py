"""Assemble the paper of a mock exam by its blueprint."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.content.course_facts import (
    apportion_by_weight,
    can_exam_be_shortened,
    count_short_exam_questions,
    derive_exam_with_domain_counts,
    make_short_exam,
)
from app.markup.model import Domain, ExamBlueprint
from app.questions import types
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class PaperItem:
    """One question of a paper: the question, its revision, and the seed of its variant."""

    question_number: int
    question_id: str
    revision: str
    seed: int
    domain_number: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPaper:
    """The questions in order, and how many the bank lacks in each domain."""

    items: tuple[PaperItem, ...]
    missing_by_domain: Mapping[str, int]


def assemble_paper(
    blueprint: ExamBlueprint,
    domain_by_objective: Mapping[str, str],
    questions: Iterable[Question],
    times_seen_by_question: Mapping[str, int],
    seed: int,
    previous_question_ids: Collection[str] = (),
) -> ExamPaper:
    """Draw a paper by blueprint: unseen questions first, objectives evenly, none twice.

    `domain_by_objective` maps an objective to its domain, `times_seen_by_question` a question to
    how often the learner saw it. `previous_question_ids` are those of the previous paper, which come
    last. Among equally new questions, those reserved for exams come first. The same arguments give
    the same paper. A domain with too few questions gives all it has, and `missing` counts the rest.
    """
    rng = random.Random(seed)  # noqa: S311 - a paper must be repeatable, not secret
    questions_by_domain = list_drawable_questions_by_domain(questions, domain_by_objective)
    chosen: list[tuple[str, Question]] = []
    missing: dict[str, int] = {}
    for domain, wanted_count in blueprint.question_count_by_domain.items():
        candidates = questions_by_domain.get(domain, [])
        picked = _pick_questions(
            candidates, wanted_count, times_seen_by_question, previous_question_ids, rng
        )
        chosen += [(domain, question) for question in picked]
        if len(picked) < wanted_count:
            missing[domain] = wanted_count - len(picked)
    rng.shuffle(chosen)
    return ExamPaper(
        tuple(
            PaperItem(n, q.id, q.revision, rng.getrandbits(31), domain)
            for n, (domain, q) in enumerate(chosen, 1)
        ),
        missing,
    )


def list_drawable_questions_by_domain(
    questions: Iterable[Question], domain_by_objective: Mapping[str, str]
) -> dict[str, list[Question]]:
    """Return the questions that a paper can include, by the domain of their first objective."""
    questions_by_domain: dict[str, list[Question]] = {}
    for question in sorted(questions, key=lambda q: q.id):
        domain = question.find_domain(domain_by_objective)
        if domain and question.may_be_asked_in_exams:
            questions_by_domain.setdefault(domain, []).append(question)
    return questions_by_domain


def keep_choice_questions(questions: Iterable[Question]) -> list[Question]:
    """Return the questions of the types in most exams: single and multiple choice."""
    return [q for q in questions if types.question_type_of(q).is_in_real_exam]


def _pick_questions(
    candidates: Sequence[Question],
    count: int,
    times_seen_by_question: Mapping[str, int],
    previous_question_ids: Collection[str],
    rng: random.Random,
) -> list[Question]:
    """Choose questions not in the previous paper, least seen first, then objectives in turn.

    Ties go to questions reserved for exams, then to chance.
    """
    tie_breaker = {q.id: rng.random() for q in candidates}
    remaining = list(candidates)
    objective_counts: Counter[str] = Counter()
    picked: list[Question] = []
    while remaining and len(picked) < count:
        best = min(
            remaining,
            key=lambda q: (
                q.id in previous_question_ids,
                times_seen_by_question.get(q.id, 0),
                objective_counts[q.objectives[0]],
                not q.is_reserved_for_exams,
                tie_breaker[q.id],
            ),
        )
        remaining.remove(best)
        objective_counts[best.objectives[0]] += 1
        picked.append(best)
    return picked


def compute_exam_minutes(blueprint: ExamBlueprint, paper: ExamPaper, time_factor: float) -> float:
    """Return the minutes for `paper`: the exam's pace, times the time limit factor.

    A paper that the bank could not fill has the pace of the full exam.
    """
    share = len(paper.items) / blueprint.question_count if blueprint.question_count else 1.0
    return blueprint.minutes * min(share, 1.0) * time_factor


MISSED_EXAM = "missed"

_SHORTENED_EXAM_SLUG = re.compile(r"(?P<exam>[^~]+)~(?P<way>short|missed|domain-(?P<domain>[^~]+))")


@dataclasses.dataclass(frozen=True, slots=True)
class DomainQuestionCounts:
    """The questions for papers by domain: all, and those missed."""

    total_by_domain: Mapping[str, int]
    missed_by_domain: Mapping[str, int]

    def count_missed_for(self, exam: ExamBlueprint) -> int:
        """Return how many missed questions an exam can include; a paper may hold fewer."""
        return sum(
            n
            for domain, n in self.missed_by_domain.items()
            if domain in exam.question_count_by_domain
        )


def strip_derived_exam_suffix(slug: str) -> str:
    """Return the full exam that a paper was derived from, or the paper itself.

    >>> strip_derived_exam_suffix("nca~short"), strip_derived_exam_suffix("nca")
    ('nca', 'nca')
    """
    return slug.partition("~")[0]


def is_exam_of_missed_questions(slug: str) -> bool:
    """Return whether a paper consists of missed questions only."""
    return slug.endswith(f"~{MISSED_EXAM}")


def yield_exams_derived_from(
    exam: ExamBlueprint, domains: Collection[Domain], counts: DomainQuestionCounts
) -> Iterator[ExamBlueprint]:
    """Yield every paper that can be derived from an exam now, at its pace."""
    if not can_exam_be_shortened(exam):
        return
    short_count = count_short_exam_questions(exam)
    yield make_short_exam(exam)
    for domain in domains:
        question_count = min(short_count, counts.total_by_domain.get(domain.number, 0))
        if domain.number in exam.question_count_by_domain and question_count:
            slug_suffix = f"domain-{domain.number}"
            yield derive_exam_with_domain_counts(
                exam, slug_suffix, f"{domain.title} only", {domain.number: question_count}
            )
    missed = {
        d: n for d, n in counts.missed_by_domain.items() if d in exam.question_count_by_domain and n
    }
    if sum(missed.values()) > exam.question_count:
        missed = apportion_by_weight(missed, exam.question_count)
    if missed:
        yield derive_exam_with_domain_counts(exam, MISSED_EXAM, "Only what you missed", missed)


def find_exam_title(
    slug: str, exams: Mapping[str, ExamBlueprint], titles_by_domain: Mapping[str, str]
) -> str:
    """Return the title of a paper, current or old; `titles_by_domain` are those of domains."""
    if slug in exams:
        return exams[slug].title
    match = _SHORTENED_EXAM_SLUG.fullmatch(slug)
    if match is None:
        return slug
    if match["domain"]:
        return f"{titles_by_domain.get(match['domain'], 'One domain')} only"
    return "Short mock exam" if match["way"] == "short" else "Only what you missed"
