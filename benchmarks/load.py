"""A small HTTP load: keep-alive connections over plain sockets, one event loop."""

import asyncio
import dataclasses
import time
from collections.abc import Callable

from app.settings import Settings

_RATES = [name for name in Settings.model_fields if name.startswith("rate_")]
UNLIMITED = {
    **{f"HEADROOM_{name.upper()}": "off" for name in _RATES},
    "HEADROOM_CLIENT_REQUESTS": "1000",
}
"""A server to be measured refuses nobody: the load comes from one address."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What one load saw: answers per second, the 99th percentile, statuses."""

    per_second: float
    p99: float
    statuses: dict[int, int]


def measure(port: int, request: Callable[[], bytes], seconds: float, connections: int) -> Result:
    """Send what `request()` makes over `connections` for `seconds`."""
    return asyncio.run(_measure(port, request, seconds, connections))


async def _measure(
    port: int, request: Callable[[], bytes], seconds: float, connections: int
) -> Result:
    times: list[float] = []
    statuses: dict[int, int] = {}
    end = time.perf_counter() + seconds
    begun = time.perf_counter()
    await asyncio.gather(
        *(_client(port, request, end, times, statuses) for _ in range(connections))
    )
    elapsed = time.perf_counter() - begun
    times.sort()
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))] if times else 0.0
    return Result(len(times) / elapsed, p99, statuses)


async def _client(
    port: int,
    request: Callable[[], bytes],
    end: float,
    times: list[float],
    statuses: dict[int, int],
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (begun := time.perf_counter()) < end:
        writer.write(request())
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = _length(head)
        if length:
            await reader.readexactly(length)
        times.append(time.perf_counter() - begun)
        statuses[status] = statuses.get(status, 0) + 1
    writer.close()


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    if at < 0:
        return 0
    return int(lower[at + 15 : lower.index(b"\r\n", at)])
