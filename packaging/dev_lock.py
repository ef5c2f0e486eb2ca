"""One at a time: two set-ups of one clone, or two builds of one wheel, wait for each other.

Standard library only. The system lets go of a lock when its process ends, however it ends, so a
lock file that lies about means nothing.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dev_console import say

_POLL_S = 0.5


@contextmanager
def alone(lock_file: Path, waiting_for: str) -> Iterator[None]:
    """Run the block while nobody else holds ``lock_file``; says once what it waits for."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a+b") as file:
        told = False
        while not _taken(file):
            if not told:
                say(f"      waiting for {waiting_for}")
                told = True
            time.sleep(_POLL_S)
        try:
            yield
        finally:
            _give_back(file)


if sys.platform == "win32":
    import msvcrt

    def _taken(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _give_back(file: IO[bytes]) -> None:
        file.seek(0)
        with contextlib.suppress(OSError):
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _taken(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _give_back(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
