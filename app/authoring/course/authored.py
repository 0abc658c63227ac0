"""The course as authors see it: with what is not live."""

from typing import Annotated

from fastapi import Depends

from app.content.live.library import Library
from app.web.course import CurrentLibrary


async def read_authored(library: CurrentLibrary) -> Library:
    """The course of the request with its drafts; `async`: it is only looked up."""
    return library.as_authored()


AuthoredLibrary = Annotated[Library, Depends(read_authored)]
