"""Later starts of the program: what they were given is shown in the window that is open.

In: the ear of :mod:`~moelauncher.gui.single_instance`. Out: the window in front with a model
selected, or closed. GUI thread.
"""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from moelauncher import __version__
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.session import Session
from moelauncher.gui.single_instance import FirstInstance, LaterStart, socket_name

#: Where Qt looks for it, as every program does that is started on Wayland.
_TOKEN = "XDG_ACTIVATION_TOKEN"


class LaterStarts(QObject):
    """Listens from its making on. Call :meth:`close` in the end.

    Signals:
        shows: something is to be seen in the window now, so nothing may cover it.
    """

    shows = Signal()

    def __init__(self, window: MainWindow, session: Session, config: Path) -> None:
        """``config``: the folder whose window this is."""
        super().__init__(session)
        self._window = window
        self._session = session
        self._ear = FirstInstance(socket_name(config), self)
        self._ear.asked.connect(self._asked)

    def close(self) -> None:
        """Listen no longer."""
        self._ear.close()

    def _asked(self, start: LaterStart) -> None:
        if start.quits:
            # All of them: an open dialog would keep the program alive.
            QApplication.closeAllWindows()
            return
        self._come_to_front(start.activation_token)
        if start.models or start.demo:
            self.shows.emit()
        if start.models:
            self._session.library.add_paths(start.models)
        elif start.demo:
            self._session.library.sample.build()
        if start.version != __version__:
            self._tell_of_version(start.version)

    def _come_to_front(self, token: str) -> None:
        if self._window.isMinimized():
            self._window.showNormal()
        self._window.raise_()
        if token:
            os.environ[_TOKEN] = token
        self._window.activateWindow()
        # It is good for once, and is of no use to programs started from here.
        os.environ.pop(_TOKEN, None)

    def _tell_of_version(self, version: str) -> None:
        text = self.tr(
            "Version {other} was started, but this window is of {own}. Close it first to use the "
            "other one."
        )
        text = text.format(other=version, own=__version__)
        self.shows.emit()
        self._window.status.set_message(text, "warning")
