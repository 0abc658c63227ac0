"""How many write transactions are open while something else happens."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from sqlmodel import Session


class Turns:
    """Counts the write transactions of an app: those begun, and those open now."""

    def __init__(self) -> None:
        self.begun = 0
        self.open = 0


def count_open(app: FastAPI) -> Turns:
    """Count the write transactions of `app` from now on."""
    turns, turn = Turns(), app.state.open_write_session

    @contextlib.asynccontextmanager
    async def counted() -> AsyncIterator[Session]:
        async with turn() as session:
            turns.begun += 1
            turns.open += 1
            try:
                yield session
            finally:
                turns.open -= 1

    app.state.open_write_session = counted
    return turns
