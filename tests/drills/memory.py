"""A process with as much memory as a small container gives it."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory.limit_in_bytes")  # of version 2, and of version 1
_JOIN = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
_numbers = itertools.count()
_FEWER = 'ulimit -d "$0"; exec "$@"'


@contextlib.contextmanager
def limited_memory(size: int) -> Iterator[list[str]]:
    """The words before a command that run it with at most so many bytes of memory.

    Where this user may make a control group, the kernel kills the process beyond the
    limit, as it does in a container. Elsewhere `ulimit -d` bounds what it allocates,
    and an allocation beyond that fails.
    """
    group = _make_group(size)
    if group is None:
        yield ["sh", "-c", _FEWER, str(size // 1024)]
        return
    try:
        yield ["sh", "-c", _JOIN, str(group)]
    finally:
        group.rmdir()


def _make_group(size: int) -> Path | None:
    """A new control group within that of this process; None where there can be none."""
    for parent in _parents():
        group = parent / f"headroom-{os.getpid()}-{next(_numbers)}"
        try:
            group.mkdir()
        except OSError:
            continue
        for name in _LIMITS:
            if (group / name).exists():
                (group / name).write_text(str(size))
                return group
        group.rmdir()
    return None


def _parents() -> Iterator[Path]:
    """The control groups of this process that can bound memory."""
    own = Path("/proc/self/cgroup")  # there is none outside of Linux
    for line in own.read_text().splitlines() if own.exists() else ():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield _GROUPS / "memory" / path.lstrip("/")
        elif not controllers:
            yield _GROUPS / path.lstrip("/")
