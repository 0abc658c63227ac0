"""A fair share of the app: few requests of one client are worked on at a time."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator


class ClientSlots:
    """Up to `most` requests of one client are in the app; its others wait in order.

    A page costs tens of milliseconds, so that a client with a hundred connections
    would otherwise get almost all of the server. How many can wait is bounded by the
    number of connections of a client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # An entry lives as long as a request that holds it.
        self._by_client: weakref.WeakValueDictionary[str, asyncio.Semaphore] = (
            weakref.WeakValueDictionary()
        )

    @contextlib.asynccontextmanager
    async def occupy(self, client: str) -> AsyncIterator[None]:
        """Wait for a free slot of this client, and hold it inside of the block."""
        slots = self._by_client.setdefault(client, asyncio.Semaphore(self._most))
        async with slots:
            yield
