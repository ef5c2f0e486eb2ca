"""The switch Apply live: a changed placement applies by itself once the slider was let go.

In: the placement pane's changes. Out: one signal when they have rested, and the moment of
the last of them, from which the time to the next token is counted. GUI thread.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.gui.memory.placement_pane import PlacementPane

#: How long after the last change it is applied.
REST_MS = 700


class LiveApply(QObject):
    """Watches the pane.

    Signals:
        due: the change has rested; the switch is on.
    """

    due = Signal()

    def __init__(self, pane: PlacementPane, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pane = pane
        self._waits = False
        self.changed_s: float | None = None
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._rested)
        for signal in (
            pane.stop_changed,
            pane.gpu_layers_changed,
            pane.options_changed,
            pane.auto_requested,
            pane.slider.sliderReleased,
        ):
            signal.connect(self._changed)
        pane.live_toggled.connect(self._toggled)

    @property
    def waits(self) -> bool:
        """Whether a change is to be applied as soon as that is possible."""
        return self._waits

    def taken(self) -> None:
        """The change is being applied (by whoever)."""
        self._waits = False
        self._rest.stop()

    def close(self) -> None:
        """Apply nothing any more."""
        self.taken()

    def _changed(self, *_: object) -> None:
        self.changed_s = time.monotonic()
        if self._pane.live:
            self._waits = False
            self._rest.start()

    def _rested(self) -> None:
        if self._pane.slider.isSliderDown():
            return  # its release begins the rest anew
        self._waits = True
        self.due.emit()

    def _toggled(self, on: bool) -> None:
        if not on:
            self.taken()
