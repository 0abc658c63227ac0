"""Slots for requests that are worked on at a time, shared fairly between clients."""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import AsyncIterator

_HALF_LIFE = 5.0  # seconds
_FORGOTTEN = 0.01  # seconds of use that make no difference


@dataclasses.dataclass(eq=False, slots=True)
class _Waiter:
    """A request that waits; `admitted` is done when it has a slot."""

    client: str
    admitted: "asyncio.Future[None]"


class FairSlots:
    """`total` slots in all, at most `of_one_client` for each client.

    A free slot goes to the client that holds the fewest, and of those to the one that
    has held slots for the shortest time lately. So a client with a hundred connections
    waits for itself, and for others who ask less.
    """

    def __init__(self, total: int, of_one_client: int) -> None:
        self._total = total
        self._of_one_client = of_one_client
        self._held: collections.Counter[str] = collections.Counter()
        # Seconds for which each client has held slots; halved every few seconds.
        self._used: dict[str, float] = {}
        self._halved_at = 0.0
        self._waiting: list[_Waiter] = []

    @contextlib.asynccontextmanager
    async def occupy(
        self, client: str, *, seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Wait for a slot, and hold it inside of the block.

        Raises TimeoutError when none was free for `seconds`.
        """
        loop = asyncio.get_running_loop()
        waiter = _Waiter(client, loop.create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            async with asyncio.timeout(seconds):
                await waiter.admitted
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # admitted at the moment at which it gave up
                self._release(client)
            raise
        begun = loop.time()
        try:
            yield
        finally:
            self._note_use(client, begun, loop.time())
            self._release(client)

    def _note_use(self, client: str, begun: float, now: float) -> None:
        if now - self._halved_at > _HALF_LIFE:
            self._halved_at = now
            self._used = {
                name: seconds / 2
                for name, seconds in self._used.items()
                if seconds > _FORGOTTEN
            }
        self._used[client] = self._used.get(client, 0.0) + now - begun

    def _release(self, client: str) -> None:
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        self._admit()

    def _admit(self) -> None:
        held = self._held
        while self._waiting and held.total() < self._total:
            free = [w for w in self._waiting if held[w.client] < self._of_one_client]
            if not free:
                return
            first = min(
                free, key=lambda w: (held[w.client], self._used.get(w.client, 0.0))
            )
            self._waiting.remove(first)
            held[first.client] += 1
            if not first.admitted.done():
                first.admitted.set_result(None)
