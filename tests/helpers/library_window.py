"""The model list with its library, without engine and window: for tests of what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytestqt.qtbot import QtBot

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.paths import app_paths
from moelauncher.core.program.settings import MODEL_FOLDERS, Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library.library import Library
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.services import Services


def _not_asked(*_: object) -> None:
    raise AssertionError("the library asked for an engine")


class LibraryWindow:
    """A pane and its library under ``basedir``. Close it in every test."""

    def __init__(self, qtbot: QtBot, basedir: Path, folders: Sequence[Path]) -> None:
        self._qtbot = qtbot
        paths = app_paths(basedir)
        self.settings = Settings.load(paths.settings_file)
        self.settings.set(MODEL_FOLDERS, tuple(str(folder) for folder in folders))
        self.services = Services(
            paths=paths,
            settings=self.settings,
            state=StateFile(paths.window_file),
            make_engine=_not_asked,  # type: ignore[arg-type]
            dry_run=_not_asked,  # type: ignore[arg-type]
            tune=_not_asked,  # type: ignore[arg-type]
        )
        self.pane = ModelListPane()
        qtbot.addWidget(self.pane)
        self.jobs = JobRunner()
        self.library = Library(self.pane, self.services, self.jobs)
        self.messages: list[str] = []
        self.library.message.connect(lambda text, _level: self.messages.append(text))

    def wait(self, condition: Callable[[], bool]) -> None:
        """Let the window live until ``condition`` holds."""
        self._qtbot.waitUntil(condition)

    def scan(self) -> None:
        """Look at all sources, and wait for the end."""
        self.library.refresh()
        self.wait(self.pane.refresh_button.isEnabled)

    def entries(self) -> dict[str, CatalogEntry]:
        """What is listed, by file name."""
        return {entry.path.name: entry for entry in self.pane.entries()}

    def close(self) -> None:
        """End everything that goes on in the background."""
        self.library.close()
        self.jobs.close()
        self.library.deleteLater()
        self.jobs.deleteLater()
        self._qtbot.wait(1)
