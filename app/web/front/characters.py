"""The character that no text may hold: it is refused before anything is done.

PostgreSQL cannot keep NUL, file systems end a name at it, and no browser sends it.
"""

from fastapi import HTTPException
from starlette.types import Message, Receive

FORM = b"application/x-www-form-urlencoded"
_SIGNS = (b"\0", b"%00")
_MESSAGE = (
    "A text that was sent holds the character NUL, which no text may hold. "
    "Remove it, then send the text again."
)


def refuse_null(path: str, query: bytes) -> None:
    """Raise where an address names NUL: 404 in its path, 422 in its query."""
    if "\0" in path:
        raise HTTPException(404)
    _look_into(query)


def without_null(receive: Receive, kind: bytes) -> Receive:
    """`receive`, refusing forms of this content type that hold NUL.

    Files come in other forms and may hold anything.
    """
    if not kind.lower().startswith(FORM):
        return receive
    end = b""

    async def looked_into() -> Message:
        nonlocal end
        message = await receive()
        body = end + message.get("body", b"")
        _look_into(body)
        end = body[-2:]  # "%0" may end one piece and "0" begin the next
        return message

    return looked_into


def _look_into(sent: bytes) -> None:
    if any(sign in sent for sign in _SIGNS):
        raise HTTPException(422, _MESSAGE)
