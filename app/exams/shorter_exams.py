"""Smaller papers cut from a mock exam: a short one, one domain, what was missed."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping

from app.content.model import Domain, ExamBlueprint
from app.mastery.bank import apportion
from app.mastery.short_paper import cut, is_long, short_count, short_of

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
