"""Slots for requests and files, shared fairly between clients."""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import AsyncIterator

_HALF_LIFE = 5.0  # seconds
_FORGOTTEN = 0.01  # seconds of use that make no difference
_PATIENCE = 5.0  # seconds until a slow transfer gives way


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

    def may_hold_more(self, client: str) -> bool:
        """Whether only the slots of others keep a client from having one more."""
        return self._held[client] < self._of_one_client

    @contextlib.asynccontextmanager
    async def occupy(self, client: str, *, seconds: float | None = None) -> AsyncIterator[None]:
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
                name: seconds / 2 for name, seconds in self._used.items() if seconds > _FORGOTTEN
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
            first = min(free, key=lambda w: (held[w.client], self._used.get(w.client, 0.0)))
            self._waiting.remove(first)
            held[first.client] += 1
            if not first.admitted.done():
                first.admitted.set_result(None)


class Transfer:
    """A body that is being sent or received; `is_displaced` when it gave way."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self.begun = asyncio.get_running_loop().time()
        self.bytes = 0
        self.is_displaced = False

    def expire_at(self, moment: float) -> None:
        """End the transfer with TimeoutError at a moment of the event loop's clock."""
        if not self.is_displaced and not self._timeout.expired():
            self._timeout.reschedule(moment)

    def displace(self) -> None:
        """End the transfer with TimeoutError now."""
        self.expire_at(asyncio.get_running_loop().time())
        self.is_displaced = True


class TransferSlots:
    """Fair slots for files on their way: where clients wait, the slowest gives way.

    A transfer that has lasted for some seconds is ended for a client that has waited
    as long, unless that client waits for slots of its own. So clients that send or
    read as slowly as they may keep no slot from those who are quicker.
    """

    def __init__(self, total: int, of_one_client: int) -> None:
        self._slots = FairSlots(total, of_one_client)
        self._under_way: set[Transfer] = set()

    @contextlib.asynccontextmanager
    async def occupy(self, client: str, *, seconds: float) -> AsyncIterator[None]:
        """Wait for a slot, and hold it inside of the block.

        Raises TimeoutError when none was free for `seconds`.
        """
        async with contextlib.AsyncExitStack() as stack:
            helper = asyncio.ensure_future(self._displace_others(client))
            try:
                slot = self._slots.occupy(client, seconds=seconds)
                await stack.enter_async_context(slot)
            finally:
                helper.cancel()
            yield

    @contextlib.asynccontextmanager
    async def transfer(self, *, has_slot: bool = True) -> AsyncIterator[Transfer]:
        """A transfer that lasts as long as the block; it gives way if it has a slot.

        Raises TimeoutError where it expired or was displaced.
        """
        async with asyncio.timeout(None) as timeout:
            transfer = Transfer(timeout)
            if has_slot:
                self._under_way.add(transfer)
            try:
                yield transfer
            finally:
                self._under_way.discard(transfer)

    async def _displace_others(self, client: str) -> None:
        while True:
            await asyncio.sleep(_PATIENCE)
            if self._slots.may_hold_more(client):
                self._displace_slowest()

    def _displace_slowest(self) -> None:
        now = asyncio.get_running_loop().time()
        rates = {
            transfer: transfer.bytes / (now - transfer.begun)
            for transfer in self._under_way
            if now - transfer.begun >= _PATIENCE and not transfer.is_displaced
        }
        if rates:
            min(rates, key=rates.__getitem__).displace()
