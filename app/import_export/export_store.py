"""SQL: read cards and attempts for export.

`score` and `revision` were written with the answer; `current_score` and `current_revision` are
those after regrading.
"""

import base64
import dataclasses
import datetime as dt
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, Table, func, select
from sqlmodel import Session, col

from app.clock import from_milliseconds
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, REVISION, SCORE
from app.database.tables import TABLES, Learner
from app.import_export.anki.package_writer import AddedCardInfo, DatedEdit, ReviewWithDuration
from app.spaced_repetition.added_card_ids_and_faces import is_added_card_id
from app.spaced_repetition.card_rows import CARD_STATES
from app.spaced_repetition.review_log import drop_undone_rows, manual_edit_from_row, review_from_row

LOG = TABLES["review"]
SUSPENSION = TABLES["suspension"]
ADDED = TABLES["added_card"]
OWN = TABLES["own_card"]
PICTURE = TABLES["own_picture"]
OWN_TEXT = tuple(OWN.c[name] for name in ("deck", "front", "back", "guid", "ordinal", "tags"))
_EXPORTED_REVIEW_COLUMN_NAMES = (
    "id card rating voids retention recall milliseconds study_day at act until_day"
)
LOGGED = tuple(LOG.c[name] for name in _EXPORTED_REVIEW_COLUMN_NAMES.split())


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardText:
    """A card of the learner's own: its deck, and its faces as sanitized HTML.

    One from an Anki note has its GUID, its ordinal and the tags of the note.
    """

    deck: str
    front: str
    back: str
    guid: str = ""
    ordinal: int = 0
    tags: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CardStudyData:
    """The stored data of some cards of a learner, by card."""

    log_by_card: Mapping[str, list[ReviewWithDuration | DatedEdit]]
    suspended_card_ids: frozenset[str]
    added_info_by_card: Mapping[str, AddedCardInfo]
    due_day_by_added_card: Mapping[str, dt.date]
    own_text_by_card: Mapping[str, OwnCardText]


class AnkiOrigin(NamedTuple):
    """The Anki note that an own card came from, if it has a GUID, and its card of that note."""

    guid: str = ""
    ordinal: int = 0


class LearnerCards:
    """All cards of a learner except `excluded_card_ids`; data is read a few cards at a time."""

    def __init__(
        self, db: Session, learner_id: int, excluded_card_ids: Collection[str] = ()
    ) -> None:
        self._db = db
        self._learner_id = learner_id
        self._excluded = excluded_card_ids

    def list_card_ids(self) -> list[str]:
        """Return every card that was started, suspended or added, each once."""
        undo_row = LOG.alias()
        is_effective = (LOG.c.rating > 0) | ((LOG.c.act != "") & LOG.c.voids.is_(None))
        undone = select(undo_row.c.id).where(undo_row.c.voids == LOG.c.id).exists()
        started = (
            self._select_rows_of_learner(LOG, LOG.c.card).where(is_effective, ~undone).distinct()
        )
        suspended = self._select_rows_of_learner(SUSPENSION, SUSPENSION.c.card)
        added = self._select_rows_of_learner(ADDED, ADDED.c.card).where(ADDED.c.declined.is_(False))
        queries = (started.order_by(LOG.c.card), suspended, added.order_by(ADDED.c.id))
        id_groups = (self._db.scalars(query) for query in queries)
        card_ids = dict.fromkeys(itertools.chain.from_iterable(id_groups))
        return [card for card in card_ids if card not in self._excluded]

    def map_own_cards_to_anki_origins(self) -> dict[str, AnkiOrigin]:
        rows = self._db.execute(
            self._select_rows_of_learner(OWN, OWN.c.card, OWN.c.guid, OWN.c.ordinal)
        )
        return {row.card: AnkiOrigin(row.guid, row.ordinal) for row in rows}

    def find_first_review_day(self) -> dt.date | None:
        days = self._select_rows_of_learner(CARD_STATES, func.min(CARD_STATES.c.first_day))
        first = self._db.scalar(days.where(CARD_STATES.c.first_day != ""))
        return dt.date.fromisoformat(first) if first else None

    def read_picture(self, name: str) -> bytes | None:
        query = self._select_rows_of_learner(PICTURE, PICTURE.c.content).where(
            PICTURE.c.name == name
        )
        content = self._db.scalar(query)
        return base64.b64decode(content) if content else None

    def read_study_data(self, card_ids: Sequence[str]) -> CardStudyData:
        execute = self._db.execute
        order = (LOG.c.card, LOG.c.at, LOG.c.id)
        log = execute(self._select_rows_of_cards(card_ids, LOG, *LOGGED).order_by(*order))
        suspended = self._db.scalars(
            self._select_rows_of_cards(card_ids, SUSPENSION, SUSPENSION.c.card)
        )
        seeds = self._select_rows_of_cards(card_ids, ADDED, ADDED.c.card, ADDED.c.seed, ADDED.c.at)
        added = execute(seeds.where(ADDED.c.declined.is_(False)))
        due = execute(
            self._select_rows_of_cards(
                card_ids, CARD_STATES, CARD_STATES.c.card, CARD_STATES.c.due_day
            )
        )
        own = execute(self._select_rows_of_cards(card_ids, OWN, OWN.c.card, *OWN_TEXT))
        return CardStudyData(
            {
                card: [_convert_log_row(row) for row in drop_undone_rows(rows)]
                for card, rows in itertools.groupby(log, lambda row: str(row.card))
            },
            frozenset(suspended),
            {row.card: AddedCardInfo(row.seed, row.at) for row in added},
            {
                row.card: dt.date.fromisoformat(row.due_day)
                for row in due
                if is_added_card_id(row.card)
            },
            {row[0]: OwnCardText(*row[1:]) for row in own},
        )

    def _select_rows_of_cards(
        self, card_ids: Sequence[str], table: Table, *columns: ColumnElement[Any]
    ) -> Select[Any]:
        return self._select_rows_of_learner(table, *columns).where(table.c.card.in_(card_ids))

    def _select_rows_of_learner(self, table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
        return select(*columns).where(table.c.learner_id == self._learner_id)


def list_own_card_ids(db: Session, learner_id: int) -> frozenset[str]:
    query = select(OWN.c.card).where(OWN.c.learner_id == learner_id)
    return frozenset(db.connection().scalars(query))


def _convert_log_row(row: Row[Any]) -> ReviewWithDuration | DatedEdit:
    if row.rating:
        return ReviewWithDuration(review_from_row(row), row.milliseconds)
    return DatedEdit(
        manual_edit_from_row(row), from_milliseconds(row.at), dt.date.fromisoformat(row.study_day)
    )


_EXPORTED_ATTEMPT_COLUMN_NAMES = (
    "id learner_id item revision topic seed context sitting_id raw parsed score first certainty"
    " hints milliseconds study_day at"
)
_EXPORTED_ATTEMPT_COLUMNS = [
    *(ATTEMPT.c[name] for name in _EXPORTED_ATTEMPT_COLUMN_NAMES.split()),
    SCORE.label("current_score"),
    REVISION.label("current_revision"),
]
COLUMNS = [column.name for column in _EXPORTED_ATTEMPT_COLUMNS]


def iterate_attempt_rows(
    session: Session, course_name: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the attempts of a course, or all, in log order; `at` is in UTC."""
    query = select(*_EXPORTED_ATTEMPT_COLUMNS).select_from(GRADED_ATTEMPTS).order_by(ATTEMPT.c.id)
    if course_name is not None:
        course_learners = select(col(Learner.id)).where(col(Learner.course) == course_name)
        query = query.where(ATTEMPT.c.learner_id.in_(course_learners))
    rows = session.execute(query.execution_options(yield_per=1000))
    for row in rows.mappings():
        moment = dt.datetime.fromtimestamp(row["at"] / 1000, dt.UTC)
        yield {**row, "at": moment.isoformat(timespec="milliseconds")}
