"""Tells a download that goes on from a file that was cut short: by looking twice.

In: a file's size at several times. Out: whether it grows. Pure; one thread; the caller looks at
the disk and at the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: A download that stands still for this long is said to stand still.
STILL_AFTER_S = 30.0


@dataclass
class _Seen:
    size_bytes: int
    grew_s: float | None  # when it last grew; None: it was never seen to grow


class FileGrowth:
    """Remembers the size of every file that is watched."""

    def __init__(self) -> None:
        self._seen: dict[Path, _Seen] = {}

    def look(self, path: Path, size_bytes: int, now_s: float) -> bool:
        """Note a size; True where the file grew at this look, or not long before."""
        seen = self._seen.get(path)
        if seen is None:
            self._seen[path] = _Seen(size_bytes, None)
            return False
        if size_bytes > seen.size_bytes:
            seen.grew_s = now_s
        seen.size_bytes = size_bytes
        return seen.grew_s is not None and now_s - seen.grew_s < STILL_AFTER_S

    def keep_only(self, paths: Iterable[Path]) -> None:
        """Forget every file but these."""
        kept = set(paths)
        self._seen = {path: seen for path, seen in self._seen.items() if path in kept}
