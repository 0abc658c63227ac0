"""Cards in the database: the log of reviews, the memory made of it, the queue."""

from app.cards.store.log import (
    CardRecord,
    GradeSubmission,
    find_rating,
    last_undoable,
    load_card,
    record_review,
    set_suspended,
    suspended,
    undo_review,
    unseen,
)
from app.flashcards.store.added_cards import AddedCardDetails, kept
from app.flashcards.store.planned import (
    ExamGoal,
    TodaysCardPlan,
    cached_day_plan,
    look_planned,
    upcoming_planned,
)
from app.flashcards.store.queue import (
    QueueQuery,
    ReviewQueue,
    load_queue,
    new_cards,
    next_due,
    next_new,
    note_of,
    orphaned_cards,
    standings,
    standings_of,
    unseen_by_topic,
    upcoming,
)
