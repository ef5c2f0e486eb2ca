"""Frees the GPU after some minutes without a message. GUI thread only."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.session_state import SessionState


class IdleUnload(QObject):
    """Watches the session's state; nothing happens while it does anything but wait.

    Signals:
        idle: a model has been loaded and unused for as long as the setting says.
    """

    idle = Signal()

    def __init__(self, minutes: Callable[[], int], parent: QObject | None = None) -> None:
        """``minutes`` is asked each time the waiting begins; 0: never."""
        super().__init__(parent)
        self._minutes = minutes
        self.clock = QTimer(self)
        self.clock.setSingleShot(True)
        self.clock.timeout.connect(self.idle)

    def state_changed(self, state: SessionState) -> None:
        """The session stands in ``state`` now."""
        minutes = self._minutes()
        if state is SessionState.READY and minutes > 0:
            self.clock.start(minutes * 60_000)
        else:
            self.clock.stop()
