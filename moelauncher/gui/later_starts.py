"""Later starts of the program: what they were given is shown in the window that is open.

In: the ear of :mod:`~moelauncher.gui.single_instance`. Out: the window in front, models selected.
GUI thread.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from moelauncher import __version__
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.session import Session
from moelauncher.gui.single_instance import FirstInstance, socket_name


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
        self._ear.other_version.connect(self._tell_of_version)

    def close(self) -> None:
        """Listen no longer."""
        self._ear.close()

    def _asked(self, models: list[Path], demo: bool) -> None:
        if self._window.isMinimized():
            self._window.showNormal()
        self._window.raise_()
        self._window.activateWindow()
        if models or demo:
            self.shows.emit()
        if models:
            self._session.library.add_paths(models)
        elif demo:
            self._session.library.sample.build()

    def _tell_of_version(self, version: str) -> None:
        text = self.tr(
            "Version {other} was started, but this window is of {own}. Close it first to use the "
            "other one."
        )
        text = text.format(other=version, own=__version__)
        self.shows.emit()
        self._window.status.set_message(text, "warning")
