"""Which wordings of a question are one: what learners answer is the same. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.questions.model import Question
from app.quiz.store import QUESTION

# What a learner has to answer; reasons, hints, sources and difficulty are beside it.
_ASKED = ("type", "stem", "answer", "partial", "computed")
_BESIDE = frozenset({"feedback", "why", "pinned", "html"})
Stands = Mapping[tuple[str, str], str]  # (item, revision) to the one it counts as


def content_digest(question: Question) -> str:
    """A digest of stem, options and key, and of nothing else."""
    whole = QUESTION.dump_python(question, mode="json")
    asked = _bare({name: whole[name] for name in _ASKED})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def matter_of_body(body: str, revision: str) -> str:
    """That of a kept wording; one that can no longer be read is like no other."""
    try:
        return content_digest(QUESTION.validate_json(body))
    except ValueError:
        return revision


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _bare(v) for n, v in value.items() if n not in _BESIDE}
    return [_bare(v) for v in value] if isinstance(value, list) else value


def canonical_revisions(
    questions: Mapping[str, Question],
    known: Iterable[tuple[str, str, str]],
) -> Stands:
    """The revision as which each answered one counts: the newest of the same matter.

    `known` are (item, revision, matter), the oldest first.
    """
    found: dict[tuple[str, str], str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for item, revision, what in known:
        groups.setdefault((item, what), []).append(revision)
    for question in questions.values():
        groups.setdefault((question.id, content_digest(question)), []).append(question.revision)
    for (item, _), revisions in groups.items():
        for revision in revisions:
            found[item, revision] = revisions[-1]
    # The wording of now counts as itself, whatever the one that was kept says.
    for question in questions.values():
        found[question.id, question.revision] = question.revision
    return found
