"""What the bench reads from the database and writes into it."""

from app.authoring.store.learners import (
    Extent,
    FirstAnswer,
    Forgotten,
    Paper,
    Said,
    Wording,
    bodies,
    extent,
    first_answers,
    forgotten,
    papers,
    regraded,
    reports,
    settle,
    sittings,
    wordings,
)
from app.authoring.store.regrades import Again, Answered, add, answered, hold
