"""What a process has used so far: processor time, bytes from the disk, page faults.

In: a process id. Out: :class:`ProcessCounters`. Any thread; some milliseconds at most.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

#: Field of /proc/PID/stat behind the name in brackets (proc(5) counts from the start: 12).
_MAJOR_FAULTS = 9


@dataclass(frozen=True)
class ProcessCounters:
    """None: the system does not tell. ``major_faults`` are pages that had to come from a disk."""

    cpu_s: float = 0.0
    read_bytes: int | None = None
    major_faults: int | None = None


def read_counters(pid: int) -> ProcessCounters:
    """Of process ``pid``; what is not told stays empty, also where it is gone."""
    cpu_s, read_bytes = 0.0, None
    with contextlib.suppress(psutil.Error, OSError, AttributeError):
        process = psutil.Process(pid)
        times = process.cpu_times()
        cpu_s = times.user + times.system
        read_bytes = int(process.io_counters().read_bytes)
    return ProcessCounters(cpu_s, read_bytes, _major_faults(pid))


def _major_faults(pid: int) -> int | None:
    """Windows counts all faults together, which says nothing of the disk (windows_faults.py)."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[_MAJOR_FAULTS])
    return None
