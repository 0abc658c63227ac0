"""A learner's cards on their way out to Anki."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.content.library import Library, LiveLibrary
from app.db.engine import DbSession
from app.exchange import store
from app.exchange.decks import Course, pack, write_luggage
from app.learners.current import CurrentLearner, zone_of
from app.web.clock import Now
from app.web.shelf import CurrentLibrary

router = APIRouter(prefix="/settings", include_in_schema=False)


@router.get("/cards.apkg")
def take_cards(
    request: Request,
    library: CurrentLibrary,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
) -> Response:
    """Every card that the learner has begun or added, with all of its grades."""
    luggage = pack(_course(request, library), store.studied(db, learner.id))
    day = learner.study_day(now).isoformat()
    return Response(
        write_luggage(luggage, now, zone_of(learner.zone)),
        media_type="application/octet-stream",
        headers={
            "content-disposition": f'attachment; filename="headroom-{day}.apkg"',
            "cache-control": "no-store",
        },
    )


def _course(request: Request, library: Library) -> Course:
    live: LiveLibrary = request.app.state.library
    return Course(library, live.folder)
