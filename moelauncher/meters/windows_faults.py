"""How often Windows had to read pages from the disk: its hard page faults, of all programs.

Windows counts a process's faults, but not which of them needed the disk; for the whole system it
does. What asks Windows is behind the small :class:`RawCounters` seam. One thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

#: Its raw value is no rate: the reads since the system was started.
PAGE_READS = r"\Memory\Page Reads/sec"


class RawCounters(Protocol):
    """What is asked of Windows."""

    def collect_raw(self) -> dict[str, int]:
        """Counter path to what it counted so far, all of one moment."""

    def close(self) -> None:
        """Give the query back."""


class PageReads:
    """Counts from its making on. Close it at the end."""

    def __init__(self, open_counters: Callable[[], RawCounters] | None = None) -> None:
        self._counters: RawCounters | None = None
        # Where this Windows refuses, the number stays unknown.
        with contextlib.suppress(OSError):
            self._counters = (open_counters or _open_windows)()

    def count(self) -> int | None:
        """Reads since the system was started; only differences mean something."""
        if self._counters is None:
            return None
        try:
            return self._counters.collect_raw().get(PAGE_READS)
        except OSError:
            return None

    def close(self) -> None:
        """Close the query, if it was opened."""
        counters, self._counters = self._counters, None
        if counters is not None:
            counters.close()


def _open_windows() -> RawCounters:
    from moelauncher.meters.windows_counters import WindowsCounters

    return WindowsCounters((PAGE_READS,))
