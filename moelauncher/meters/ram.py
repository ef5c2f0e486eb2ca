"""Main memory, swap and CPU load, through psutil.

Out: a :class:`RamReading`. Calls take well under a millisecond.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class RamReading:
    """Main memory at one moment; ``cpu_utilisation`` (0 to 1) is since the reading before."""

    total_bytes: int
    available_bytes: int
    own_ram_bytes: int  # see MachineSnapshot
    swap_used_bytes: int | None
    cpu_utilisation: float | None


@dataclass(frozen=True)
class CpuFacts:
    """What the processor is. ``physical_cores`` is None where the system does not tell."""

    logical_cores: int
    physical_cores: int | None


class RamMeter:
    """Reads main memory and this process. One thread at a time."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        psutil.cpu_percent(interval=None)  # the first call only starts the measuring
        self._first = True

    def read(self) -> RamReading:
        """The memory now. Never raises for what the system does not tell (None instead)."""
        memory = psutil.virtual_memory()
        try:
            swap: int | None = psutil.swap_memory().used
        except (OSError, RuntimeError):  # containers without /proc/vmstat, disabled counters
            swap = None
        cpu = psutil.cpu_percent(interval=None) / 100
        first, self._first = self._first, False
        return RamReading(
            total_bytes=memory.total,
            available_bytes=memory.available,
            own_ram_bytes=_own_bytes(self._process),
            swap_used_bytes=swap,
            cpu_utilisation=None if first else min(1.0, max(0.0, cpu)),
        )


#: Private and shared memory, without the pages of mapped files ("RssFile").
_RSS_PARTS = re.compile(r"^(?:RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)


def _own_bytes(process: psutil.Process, status: Path = Path("/proc/self/status")) -> int:
    """What the system's available memory grows by when this process ends.

    Linux counts mapped file pages as available all along; Windows does so only once they
    have left the working set, so there the whole of it counts.
    """
    try:
        parts = _RSS_PARTS.findall(status.read_text(encoding="ascii", errors="replace"))
    except OSError:
        parts = []
    if parts:
        return sum(int(part) for part in parts) * 1024
    return int(process.memory_info().rss)


def cpu_facts() -> CpuFacts:
    """Cores of this machine."""
    return CpuFacts(psutil.cpu_count() or 1, psutil.cpu_count(logical=False))


def process_name(pid: int) -> str:
    """The program behind a process number, or ``"pid 123"`` where it cannot be known."""
    try:
        return str(psutil.Process(pid).name()) or f"pid {pid}"
    except (psutil.Error, OSError):
        return f"pid {pid}"


def available_ram_bytes() -> int:
    """Main memory that can be had without swapping, now. Any thread."""
    return int(psutil.virtual_memory().available)
