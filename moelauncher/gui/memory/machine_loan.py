"""The whole machine for a measurement: what is loaded leaves memory, and comes back afterwards.

In: who wants it. Out: a call once the memory is free; the wishes to unload and to launch.
GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from moelauncher.core.session_state import BUSY_STATES, SessionState


class MachineLoan(QObject):
    """Lends the machine to one borrower at a time."""

    def __init__(
        self,
        state: Callable[[], SessionState],
        is_loaded: Callable[[], bool],
        *,
        unload: Callable[[], None],
        launch: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._state = state
        self._is_loaded = is_loaded
        self._unload = unload
        self._launch = launch
        self._when_free: Callable[[], None] | None = None
        self._load_again = False

    def take(self, when_free: Callable[[], None]) -> None:
        """Unload what is loaded, and call once it is gone."""
        self._load_again = False
        self._when_free = when_free
        self.state_changed()

    def give_back(self) -> None:
        """Load what is in view where something was loaded before, or is by now."""
        if self._state() is SessionState.READY or self._load_again:
            self._load_again = False
            self._launch()

    def state_changed(self, _: object = None) -> None:
        """The session stands somewhere else."""
        if self._when_free is None or self._state() in BUSY_STATES:
            return
        if self._is_loaded():
            self._load_again = True
            self._unload()
            return
        when_free, self._when_free = self._when_free, None
        when_free()
