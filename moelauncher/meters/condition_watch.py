"""Watches the machine while a child process is measured: load, disk, swap, battery, GPUs.

In: the meters' sources, the child's process id. Out: :class:`Conditions`. The caller's
thread; a reading costs some milliseconds.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from moelauncher.core.conditions import Conditions
from moelauncher.core.machine import GpuReading
from moelauncher.meters.source import MeterSource, merge_gpus

_BASELINE_S = 0.7
_PROFILE = Path("/sys/firmware/acpi/platform_profile")


class MachineWatch:
    """A ``ConditionWatch`` of this machine. Close it at the end."""

    def __init__(self, sources: Sequence[MeterSource]) -> None:
        self._sources = tuple(sources)
        self._spilled_before: int | None = None

    def baseline(self) -> Conditions:
        """See ``ConditionWatch``; sleeps a moment to see the processor's load."""
        self._spilled_before = _spilled(self._gpus())
        finish = self.begin(0)
        time.sleep(_BASELINE_S)
        return finish()

    def begin(self, pid: int) -> Callable[[], Conditions]:
        """See ``ConditionWatch``."""
        before = _Moment(pid)

        def finish() -> Conditions:
            after = _Moment(pid)
            gpus = self._gpus()
            spilled = _spilled(gpus)
            if spilled is not None and self._spilled_before is not None:
                spilled = max(0, spilled - self._spilled_before)
            return Conditions(
                others_cpu=_others_cpu(before, after),
                ram_free_bytes=int(psutil.virtual_memory().available),
                read_bytes=_grown(before.read_bytes, after.read_bytes),
                swapped_bytes=_grown(before.swap_bytes, after.swap_bytes),
                on_battery=_on_battery(),
                power_profile=_power_profile(),
                throttled=tuple(
                    dict.fromkeys(reason for gpu in gpus for reason in gpu.throttle_reasons)
                ),
                spilled_bytes=spilled,
                gpu_others=tuple(
                    (holder.name, holder.used_bytes)
                    for gpu in gpus
                    for holder in gpu.holders
                    if holder.used_bytes and holder.pid != pid
                ),
                slept_s=max(0.0, (after.wall_s - before.wall_s) - (after.awake_s - before.awake_s)),
            )

        return finish

    def close(self) -> None:
        """Give the drivers back."""
        for source in self._sources:
            source.close()

    def _gpus(self) -> tuple[GpuReading, ...]:
        readings = []
        for source in self._sources:
            # A driver that does not answer is no reason to end a measurement.
            with contextlib.suppress(Exception):
                readings.append(source.read())
        return merge_gpus(readings)


class _Moment:
    """Counters at one moment; None where the system does not tell."""

    def __init__(self, pid: int) -> None:
        self.wall_s = time.time()
        self.awake_s = _awake_s()
        cpu = psutil.cpu_times()
        idle = cpu.idle + getattr(cpu, "iowait", 0.0)
        # Guests are counted in user time already.
        self.cpu_all_s = sum(cpu[:8]) if sys.platform == "linux" else sum(cpu)
        self.cpu_idle_s = idle
        self.own_s = 0.0
        self.read_bytes: int | None = None
        self.swap_bytes: int | None = None
        with contextlib.suppress(psutil.Error, OSError, RuntimeError):
            self.swap_bytes = int(psutil.swap_memory().used)
        if not pid:
            return
        with contextlib.suppress(psutil.Error, OSError, AttributeError):
            process = psutil.Process(pid)
            times = process.cpu_times()
            self.own_s = times.user + times.system
            self.read_bytes = int(process.io_counters().read_bytes)


def _awake_s() -> float:
    """A clock that stands still while the computer sleeps."""
    return time.monotonic()


def _others_cpu(before: _Moment, after: _Moment) -> float | None:
    spent = after.cpu_all_s - before.cpu_all_s
    if spent <= 0.05:
        return None
    busy = spent - (after.cpu_idle_s - before.cpu_idle_s)
    others = busy - (after.own_s - before.own_s)
    return min(1.0, max(0.0, others / spent))


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _on_battery() -> bool | None:
    with contextlib.suppress(Exception):  # drivers of laptops raise all kinds of things
        battery = psutil.sensors_battery()
        return None if battery is None else not battery.power_plugged
    return None


def _power_profile() -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _PROFILE.read_text(encoding="utf-8").strip()
    return ""


def _spilled(gpus: Sequence[GpuReading]) -> int | None:
    known = [gpu.shared_bytes for gpu in gpus if gpu.shared_bytes is not None]
    return sum(known) if known else None
