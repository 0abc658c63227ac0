"""What the bench reads from the database and writes into it."""

from app.authoring.store.learners import (
    AttemptLogExtent,
    CardLapses,
    FirstAttempt,
    FirstSitting,
    LearnerReport,
    SeenWording,
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
from app.authoring.store.regrades import NewScore, RegradableAttempt, add, answered, lock_answerers
