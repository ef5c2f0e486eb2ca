"""Says on the first screen when a GPU that is there is not used, and how to mend that.

In: the build's devices and notes, and meter snapshots. Out: :attr:`advice`, emitted once,
when all three are known. The window's thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.machine_check import unused_gpu


class GpuAdvice(QObject):
    """Collects what is known at the start.

    Signals:
        advice: a sentence or two, where there is something to mend.
    """

    advice = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._devices: Sequence[BackendDevice] | None = None
        self._notes: Sequence[str] | None = None
        self._told = False

    def set_devices(self, devices: Sequence[BackendDevice]) -> None:
        """What llama.cpp can compute on."""
        self._devices = devices

    def set_notes(self, notes: Sequence[str]) -> None:
        """What the build had to leave out, as sentences."""
        self._notes = notes

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """What the drivers see."""
        if self._told or self._devices is None or self._notes is None:
            return
        self._told = True
        parts = list(self._notes)
        verdict = unused_gpu(snapshot, self._devices)
        if verdict is not None:
            parts.append(f"{verdict.subject}: {verdict.text} {verdict.advice}".strip())
        if parts:
            self.advice.emit(" ".join(parts))
