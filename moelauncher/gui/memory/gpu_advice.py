"""Says on the first screen when a GPU that is there is not used, and how to mend that.

In: who sees which GPU, and meter snapshots. Out: :attr:`advice`, emitted once, when both are
known. The window's thread.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.program.doctor_facts import GpuSightings
from moelauncher.core.program.gpu_check import unused_gpu


class GpuAdvice(QObject):
    """Collects what is known at the start.

    Signals:
        advice: a sentence or two, where there is something to mend.
        seen: the snapshot and the sightings (once), whatever they say.
    """

    advice = Signal(str)
    seen = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sightings: GpuSightings | None = None
        self._told = False

    def set_sightings(self, sightings: GpuSightings) -> None:
        """What llama.cpp, the bus and Vulkan see."""
        self._sightings = sightings

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """What the meters see."""
        if self._told or self._sightings is None:
            return
        self._told = True
        self.seen.emit(snapshot, self._sightings)
        parts = list(self._sightings.build.notes)
        verdict = unused_gpu(snapshot, self._sightings)
        if verdict is not None:
            parts.append(f"{verdict.subject}: {verdict.text} {verdict.advice}".strip())
        if parts:
            self.advice.emit(" ".join(parts))
