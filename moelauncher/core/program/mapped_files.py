"""Whether the files of a model are still what they were when it was loaded.

A mapped file that is cut short or overwritten, or whose drive goes away, ends every program that
reads from it. In: paths. Out: how they stood, and later what became of them. It looks at the
disk, which may take its time: not for the window's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


@dataclass(frozen=True)
class MappedFile:
    """A file as it stood. None: it could not be looked at."""

    path: Path
    size_bytes: int | None
    mtime_ns: int | None


class FileFate(Enum):
    """What became of a file since."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"


def as_they_stand(paths: Iterable[Path]) -> tuple[MappedFile, ...]:
    """The files as they are now. Raises nothing."""
    return tuple(_as_it_stands(path) for path in paths)


def fate_of(files: Sequence[MappedFile]) -> tuple[Path, FileFate]:
    """What became of them, told by the first that is another one; ``files`` is not empty.

    Raises nothing: what cannot be looked at any more is gone.
    """
    for then, now in zip(files, as_they_stand(file.path for file in files), strict=True):
        if now.size_bytes is None:
            return now.path, FileFate.GONE
        if now != then:
            return now.path, FileFate.CHANGED
    return files[0].path, FileFate.UNCHANGED


def as_json(files: Iterable[MappedFile]) -> list[list[object]]:
    """For the marker of a running program; :func:`from_json` reads it."""
    return [[str(file.path), file.size_bytes, file.mtime_ns] for file in files]


def from_json(value: object) -> tuple[MappedFile, ...]:
    """What :func:`as_json` made; what makes no sense in it is left away."""
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, list) and len(item) == 3 and isinstance(item[0], str):
            size_bytes, mtime_ns = (one if type(one) is int else None for one in item[1:])
            found.append(MappedFile(Path(item[0]), size_bytes, mtime_ns))
    return tuple(found)


def _as_it_stands(path: Path) -> MappedFile:
    try:
        status = path.stat()
    except OSError:
        return MappedFile(path, None, None)
    return MappedFile(path, status.st_size, status.st_mtime_ns)
