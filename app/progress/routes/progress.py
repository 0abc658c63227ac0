"""GET what is known, and from what."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.progress.routes.picture import CurrentPicture
from app.progress.week import week
from app.web.keeping import keep
from app.web.render import page

router = APIRouter()


@router.get("/progress")
def progress(request: Request, picture: CurrentPicture) -> HTMLResponse:
    keep(request, picture.until, strangers=True)
    return page(
        request,
        "progress/index.html",
        learner=picture.learner,
        domains=picture.domains,
        ahead=picture.ahead,
        chance=picture.chance,
        firsts=sum(d.evidence.answers for d in picture.domains),
        known=len(picture.record.known),
        cards=len(picture.library.cards),
        week=week(picture.begun, frozenset(picture.library.cards), picture.day),
    )
