"""The engine's events, brought to the window's thread by a clock.

The engine wakes the bridge from its own thread; the bridge then drains it at most thirty
times a second while events come. So painting costs the same at 5 and at 250 tokens a
second, and a token never drives a repaint.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from moelauncher.core.engine_protocol import Engine, EngineEvent

#: About 30 frames a second.
FRAME_MS = 33
#: After this many empty frames the clock stops until the engine wakes it again.
_IDLE_FRAMES = 15


class EngineBridge(QObject):
    """Owns an engine for the window.

    Signals:
        events(list): the :class:`EngineEvent` values of one frame, oldest first.
    """

    events = Signal(list)
    _woken = Signal()

    def __init__(
        self, make_engine: Callable[[Callable[[], None]], Engine], parent: QObject | None = None
    ) -> None:
        """``make_engine(notify)`` builds the engine; ``notify`` may be called on any thread."""
        super().__init__(parent)
        self._idle_frames = 0
        self._closed = False
        self._clock = QTimer(self)
        self._clock.setInterval(FRAME_MS)
        self._clock.setTimerType(Qt.TimerType.PreciseTimer)
        self._clock.timeout.connect(self._drain)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)
        self.engine = make_engine(self._woken.emit)

    def close(self) -> None:
        """Stop the clock and end the engine's thread."""
        self._closed = True
        self._clock.stop()
        self._woken.disconnect(self._on_woken)
        self.engine.close()

    @Slot()
    def _on_woken(self) -> None:
        # A call that was queued before the end still comes.
        if not self._closed and not self._clock.isActive():
            self._idle_frames = 0
            self._clock.start()
            self._drain()

    @Slot()
    def _drain(self) -> None:
        batch: list[EngineEvent] = self.engine.drain()
        if batch:
            self._idle_frames = 0
            self.events.emit(batch)
            return
        self._idle_frames += 1
        if self._idle_frames >= _IDLE_FRAMES:
            self._clock.stop()
