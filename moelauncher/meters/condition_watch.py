"""Watches the machine while a child process is measured: load, disk, swap, battery, GPUs.

In: the meters' sources, the child's process id. Out: :class:`Conditions`. What comes and goes
(throttling, spilled memory, free RAM) is looked at twice a second by a thread of its own; the
caller's thread begins and ends it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence

import psutil

from moelauncher.core.machine import GpuReading
from moelauncher.core.speed.conditions import Conditions
from moelauncher.meters.power_profile import power_profile
from moelauncher.meters.process_counters import ProcessCounters, read_counters
from moelauncher.meters.sleep_clock import asleep_s
from moelauncher.meters.source import MeterSource, merge_gpus
from moelauncher.meters.windows_faults import PageReads

_BASELINE_S = 0.7
_LOOK_EVERY_S = 0.5


class MachineWatch:
    """A ``ConditionWatch`` of this machine. Close it at the end."""

    def __init__(self, sources: Sequence[MeterSource], page_reads: PageReads | None = None) -> None:
        """``page_reads`` stands in where a process's own faults are not told; None: on Windows
        the system's, elsewhere nothing."""
        if page_reads is None and sys.platform == "win32":
            page_reads = PageReads()
        self._sources = tuple(sources)
        self._page_reads = page_reads
        self._spilled_before: int | None = None
        self._held_before: int | None = None
        self._look: _Look | None = None

    def baseline(self) -> Conditions:
        """See ``ConditionWatch``; sleeps a moment to see the processor's load."""
        gpus = self._gpus()
        self._spilled_before = _spilled(gpus)
        self._held_before = _held(gpus)
        finish = self.begin(0)
        time.sleep(_BASELINE_S)
        return finish()

    def begin(self, pid: int) -> Callable[[], Conditions]:
        """See ``ConditionWatch``."""
        self._stop()
        before = _Moment(pid, self._page_reads)
        self._look = look = _Look(self._gpus, pid)

        def finish() -> Conditions:
            look.stop()
            after = _Moment(pid, self._page_reads)
            spilled = look.spilled_bytes
            if spilled is not None and self._spilled_before is not None:
                spilled = max(0, spilled - self._spilled_before)
            others = tuple(look.others.items())
            if not others and self._held_before:
                # The driver names nobody: what was held before anything of ours was loaded.
                others = (("", self._held_before),)
            own, then = after.process, before.process
            return Conditions(
                others_cpu=_others_cpu(before, after),
                ram_free_bytes=look.ram_free_bytes,
                read_bytes=_grown(then.read_bytes, own.read_bytes),
                major_faults=_grown(before.major_faults, after.major_faults),
                swapped_bytes=_grown(before.swap_bytes, after.swap_bytes),
                on_battery=look.on_battery,
                power_profile=power_profile(),
                throttled=tuple(look.throttled),
                spilled_bytes=spilled,
                gpu_others=others,
                slept_s=max(0.0, after.asleep_s - before.asleep_s),
            )

        return finish

    def close(self) -> None:
        """Give the drivers back."""
        self._stop()
        for source in self._sources:
            source.close()
        if self._page_reads is not None:
            self._page_reads.close()

    def _stop(self) -> None:
        """A run that ended in an error never asked for its conditions."""
        if self._look is not None:
            self._look.stop()

    def _gpus(self) -> tuple[GpuReading, ...]:
        readings = []
        for source in self._sources:
            # A driver that does not answer is no reason to end a measurement.
            with contextlib.suppress(Exception):
                readings.append(source.read())
        return merge_gpus(readings)


class _Look:
    """Looks again and again until it is stopped; then its values are final."""

    def __init__(self, gpus: Callable[[], Sequence[GpuReading]], pid: int) -> None:
        self.throttled: dict[str, None] = {}
        self.spilled_bytes: int | None = None
        self.others: dict[str, int] = {}
        self.ram_free_bytes: int | None = None
        self.on_battery: bool | None = None
        self._gpus = gpus
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="condition-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after a last look. Safe to call twice."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            self._see()
        self._see()

    def _see(self) -> None:
        gpus = self._gpus()
        self.throttled |= dict.fromkeys(reason for gpu in gpus for reason in gpu.throttle_reasons)
        spilled = _spilled(gpus)
        if spilled is not None:
            self.spilled_bytes = max(spilled, self.spilled_bytes or 0)
        for gpu in gpus:
            for holder in gpu.holders:
                if holder.used_bytes and holder.pid != self._pid:
                    most = max(holder.used_bytes, self.others.get(holder.name, 0))
                    self.others[holder.name] = most
        free = int(psutil.virtual_memory().available)
        self.ram_free_bytes = (
            free if self.ram_free_bytes is None else min(free, self.ram_free_bytes)
        )
        if not self.on_battery:
            self.on_battery = _on_battery()


class _Moment:
    """Counters at one moment; None where the system does not tell."""

    def __init__(self, pid: int, page_reads: PageReads | None) -> None:
        self.asleep_s = asleep_s()
        cpu = psutil.cpu_times()
        # Guests are counted in user time already.
        self.cpu_all_s = sum(cpu[:8]) if sys.platform == "linux" else sum(cpu)
        self.cpu_idle_s = cpu.idle + getattr(cpu, "iowait", 0.0)
        self.swap_bytes: int | None = None
        with contextlib.suppress(psutil.Error, OSError, RuntimeError):
            self.swap_bytes = int(psutil.swap_memory().used)
        self.process = read_counters(pid) if pid else ProcessCounters()
        self.major_faults = self.process.major_faults
        if self.major_faults is None and page_reads is not None:
            self.major_faults = page_reads.count()


def _others_cpu(before: _Moment, after: _Moment) -> float | None:
    spent = after.cpu_all_s - before.cpu_all_s
    if spent <= 0.05:
        return None
    busy = spent - (after.cpu_idle_s - before.cpu_idle_s)
    others = busy - (after.process.cpu_s - before.process.cpu_s)
    return min(1.0, max(0.0, others / spent))


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _on_battery() -> bool | None:
    with contextlib.suppress(Exception):  # drivers of laptops raise all kinds of things
        battery = psutil.sensors_battery()
        return None if battery is None else not battery.power_plugged
    return None


def _spilled(gpus: Sequence[GpuReading]) -> int | None:
    known = [gpu.shared_bytes for gpu in gpus if gpu.shared_bytes is not None]
    return sum(known) if known else None


def _held(gpus: Sequence[GpuReading]) -> int | None:
    """VRAM in use; an integrated GPU's is main memory."""
    known = [gpu.used_bytes for gpu in gpus if gpu.used_bytes is not None and not gpu.shares_ram]
    return sum(known) if known else None
