"""A file that cannot be understood is moved aside, never overwritten, and its new name told.

In: its path. Out: where it lies now, or a sentence that says so. One writer a file.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

#: What SQLite keeps beside a database; the log may hold what the file lacks.
_BESIDE_DATABASE = ("-wal", "-shm")


def move_aside(path: Path) -> Path:
    """Rename the file, with what SQLite keeps beside it; its new path. Raises OSError."""
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.broken-{number}")
        if not aside.exists():
            break
        number += 1
    path.replace(aside)
    for ending in _BESIDE_DATABASE:
        with contextlib.suppress(OSError):
            path.with_name(path.name + ending).replace(aside.with_name(aside.name + ending))
    return aside


def set_aside(path: Path, *, moved: str, stays: str) -> str:
    """Move the file aside where the system lets it; the sentence that tells of it.

    Both sentences name a ``{path}``: ``moved`` where it lies now, ``stays`` where it still is.
    """
    try:
        return moved.format(path=move_aside(path))
    except OSError:
        return stays.format(path=path)
