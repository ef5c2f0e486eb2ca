"""The meters' own thread: one :class:`MachineSnapshot` a second, whatever a driver does.

Each source is read on a thread of its own, so one that hangs delays nobody: its last
reading is shown for a few seconds, then dropped until it answers again. Out: snapshots,
handed to ``on_snapshot`` on the meter thread (a window passes them on by a signal).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence

from moelauncher.core.errors import Cancelled
from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.meters.amd_sysfs import AmdSysfsMeter
from moelauncher.meters.backend_report import BackendReportMeter
from moelauncher.meters.nvml import NvmlMeter
from moelauncher.meters.ram import RamMeter
from moelauncher.meters.source import BACKEND_SOURCE, MeterSource, gpu_note, merge_gpus
from moelauncher.meters.windows_pdh import WindowsPdhMeter

_log = logging.getLogger(__name__)

#: A tick waits this long for sources before it shows what it has.
_PATIENCE_S = 0.5
#: A reading older than this is not shown any more.
_STALE_S = 5.0


def default_sources(devices: Callable[[], Sequence[BackendDevice]]) -> list[MeterSource]:
    """The sources for this system, the most trusted first. Opens nothing yet."""
    sources: list[MeterSource] = [NvmlMeter()]
    if sys.platform == "linux":
        sources.append(AmdSysfsMeter())
    elif sys.platform == "win32":
        sources.append(WindowsPdhMeter())
    sources.append(BackendReportMeter(devices))
    return sources


def read_machine(sources: Sequence[MeterSource]) -> MachineSnapshot:
    """One snapshot, now, on the caller's thread; the command line's way. Closes the sources."""
    answers: dict[str, list[GpuReading]] = {}
    for source in sources:
        try:
            answers[source.name] = source.read()
        except Exception as error:
            _log.warning("%s: %s", source.name, error)
        finally:
            source.close()
    return _snapshot(RamMeter(), answers, time.monotonic())


def _snapshot(
    ram_meter: RamMeter, answers: dict[str, list[GpuReading]], time_s: float
) -> MachineSnapshot:
    ram = ram_meter.read()
    gpus = merge_gpus(answers.values())
    return MachineSnapshot(
        time_s=time_s,
        ram_total_bytes=ram.total_bytes,
        ram_available_bytes=ram.available_bytes,
        own_ram_bytes=ram.own_ram_bytes,
        swap_used_bytes=ram.swap_used_bytes,
        cpu_utilisation=ram.cpu_utilisation,
        gpus=gpus,
        gpu_note=gpu_note(gpus, BACKEND_SOURCE in answers),
    )


class _SourceReader:
    """Reads one source on its own thread, once a request. All fields under ``_condition``."""

    def __init__(self, source: MeterSource, clock: Callable[[], float]) -> None:
        self.name = source.name
        self._source = source
        self._clock = clock
        self._condition = threading.Condition()
        self._wanted = 0
        self._done = 0
        self._ending = False
        self._readings: list[GpuReading] | None = None
        self._read_at_s = 0.0
        self._error = ""
        # A daemon: a driver call that never returns must not keep the program alive.
        self._thread = threading.Thread(target=self._run, name=f"meter-{self.name}", daemon=True)
        self._thread.start()

    def request(self) -> bool:
        """Ask for a reading; False while the one before still hangs (do not wait for it)."""
        with self._condition:
            if self._wanted > self._done:
                return False
            self._wanted += 1
            self._condition.notify_all()
            return True

    def answer(self, patience_s: float) -> list[GpuReading] | None:
        """The newest reading, waiting a little for it; None: failed, or too old to show."""
        with self._condition:
            self._condition.wait_for(lambda: self._done == self._wanted, max(0.0, patience_s))
            if self._clock() - self._read_at_s > _STALE_S:
                return None
            return self._readings

    def end(self) -> None:
        with self._condition:
            self._ending = True
            self._condition.notify_all()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.warning("%s does not answer; left behind", self.name)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._ending or self._wanted > self._done)
                if self._ending:
                    break
            readings = self._read()
            with self._condition:
                self._readings = readings
                self._read_at_s = self._clock()
                self._done = self._wanted
                self._condition.notify_all()
        self._source.close()

    def _read(self) -> list[GpuReading] | None:
        try:
            readings = self._source.read()
        except Cancelled:  # the program ends, and took away what the source asks
            return None
        except Exception as error:
            if str(error) != self._error:  # once a kind, not once a second
                self._error = str(error)
                _log.warning("%s: %s", self.name, error)
            return None
        self._error = ""
        return readings


class MeterThread:
    """Samples all ``sources`` every ``interval_s`` and hands out snapshots.

    ``on_snapshot`` is called on the meter thread and must return quickly. :meth:`start`
    once, :meth:`stop` once; nothing is opened before :meth:`start`.
    """

    def __init__(
        self,
        sources: Sequence[MeterSource],
        on_snapshot: Callable[[MachineSnapshot], None],
        interval_s: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._sources = tuple(sources)
        self._on_snapshot = on_snapshot
        self._interval_s = interval_s
        self._clock = clock
        self._patience_s = patience_s
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="meters", daemon=True)

    def start(self) -> None:
        """Begin; the first snapshot comes at once."""
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread and close the sources; no snapshot comes after this returns."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        readers = [_SourceReader(source, self._clock) for source in self._sources]
        ram = RamMeter()
        while not self._stopping:
            try:
                self._tick(readers, ram)
            except Exception:
                _log.exception("the meters missed a second")
            self._wake.wait(self._interval_s)
            self._wake.clear()
        for reader in readers:
            reader.end()
        for reader in readers:
            reader.join(self._patience_s)

    def _tick(self, readers: Sequence[_SourceReader], ram: RamMeter) -> None:
        asked = [reader.request() for reader in readers]
        until_s = time.monotonic() + self._patience_s
        answers: dict[str, list[GpuReading]] = {}
        for reader, fresh in zip(readers, asked, strict=True):
            readings = reader.answer(until_s - time.monotonic() if fresh else 0.0)
            if readings is not None:
                answers[reader.name] = readings
        snapshot = _snapshot(ram, answers, self._clock())
        if not self._stopping:
            self._on_snapshot(snapshot)
