"""Cards in the database: the log of reviews, the memory made of it, the queue."""

from app.cards.store.log import (
    CardRecord,
    GradeSubmission,
    find,
    find_rating,
    newest,
    record,
    suspend,
    suspended,
    undo,
    unseen,
)
from app.flashcards.store.added_cards import AddedCardDetails, kept
from app.flashcards.store.planned import (
    ExamGoal,
    TodaysCardPlan,
    look_planned,
    planned_of,
    upcoming_planned,
)
from app.flashcards.store.queue import (
    QueueQuery,
    ReviewQueue,
    look,
    new_cards,
    next_due,
    next_new,
    note_of,
    standings,
    standings_of,
    strays_of,
    unseen_by_topic,
    upcoming,
)
