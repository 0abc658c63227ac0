"""What the exchange reads from the database and writes into it."""

from app.exchange.store.arrivals import (
    ImportCounts,
    ImportedCard,
    ImportedReview,
    expect_room,
    import_cards,
    slices_of,
    stored_size,
)
from app.exchange.store.attempts import COLUMNS, attempts
from app.exchange.store.held import LearnerCards, OwnCardText, StudiedCards, own_names
from app.exchange.store.imports import (
    CANCELLED,
    DONE,
    FAILED,
    FULL,
    STOPPED,
    ImportBatch,
    advance_import,
    begin_import,
    cancel_import,
    end_import,
    is_running,
    read_import,
)
from app.exchange.store.pictures import (
    TOO_MANY,
    Sizes,
    drop_beyond_room,
    drop_pictures,
    measure_pictures,
)
from app.exchange.store.removal import (
    brought,
    held_cards,
    remove_grades,
    remove_own,
    slices_of_deck,
    slices_with_grades,
)
