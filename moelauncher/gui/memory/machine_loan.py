"""The whole machine for a measurement: what is loaded leaves memory, and comes back afterwards.

In: who wants it, and where the session stands. Out: a call once the memory is free; the wishes
to unload and to load. GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject

from moelauncher.core.session_state import BUSY_STATES, SessionState
from moelauncher.gui.memory.load_desk import LoadedModel


@dataclass(frozen=True)
class Lender:
    """The session, as far as the loan needs it."""

    state: Callable[[], SessionState]
    loaded: Callable[[], LoadedModel | None]
    unload: Callable[[], None]
    #: Load that model by the plan that it was loaded by before.
    load: Callable[[LoadedModel], None]
    #: Apply the setting in view to the loaded model, where it is the one in view.
    apply: Callable[[], None]


class MachineLoan(QObject):
    """Lends the machine to one borrower at a time."""

    def __init__(self, lender: Lender, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lender = lender
        self._when_free: Callable[[], None] | None = None
        self._gone: LoadedModel | None = None
        self._apply_when_ready = False

    def take(self, when_free: Callable[[], None]) -> None:
        """Unload what is loaded, and call once it is gone."""
        self._gone = None
        self._apply_when_ready = False
        self._when_free = when_free
        self.state_changed()

    def give_back(self) -> None:
        """Load what was loaded before, as it was, whatever is in view by now."""
        gone, self._gone = self._gone, None
        if gone is not None:
            self._lender.load(gone)

    def apply(self) -> None:
        """Apply the setting in view to what is loaded; to what comes back, once it is there."""
        if self._lender.state() is SessionState.READY:
            self._lender.apply()
        else:
            self._apply_when_ready = self._lender.state() in BUSY_STATES

    def state_changed(self, _: object = None) -> None:
        """The session stands somewhere else."""
        if self._lender.state() in BUSY_STATES:
            return
        if self._apply_when_ready:
            self._apply_when_ready = False
            if self._lender.state() is SessionState.READY:
                self._lender.apply()
        elif self._when_free is not None:
            self._free()

    def _free(self) -> None:
        loaded = self._lender.loaded()
        if loaded is not None:
            self._gone = loaded
            self._lender.unload()
            return
        when_free, self._when_free = self._when_free, None
        if when_free is not None:
            when_free()
