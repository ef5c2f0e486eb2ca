"""Which model is selected: a row of the list becomes facts, a heading and something to plan.

In: the list's selected row. Out: the :class:`Selection`, moves of the session's state, and the
planner's model, once its header was read in a pool job. GUI thread only.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject

from moelauncher.core.errors import LauncherError, SettingsRefused
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.session_state import Selection, SessionEvent, SessionState
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library.library import Library
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.standing import Standing


class SelectionDesk(QObject):
    """Follows the list's selection."""

    def __init__(
        self,
        window: MainWindow,
        jobs: JobRunner,
        library: Library,
        planner: Planner,
        standing: Standing,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._jobs = jobs
        self._library = library
        self._planner = planner
        self._standing = standing
        self.selection = Selection.NONE
        self.entry: CatalogEntry | None = None
        window.model_list.entry_selected.connect(self._select)
        planner.refused.connect(self._refused)

    def _select(self, entry: object) -> None:
        self.entry = entry if isinstance(entry, CatalogEntry) else None
        if self._standing.state() is SessionState.FAILED:
            # Why the other one failed; "this file" would now mean the wrong one.
            self._window.status.clear_message()
        self._jobs.cancel("facts")
        if self.entry is None:
            self._selected(Selection.NONE, None)
        elif not self.entry.offered:
            self._selected(Selection.PROBLEM, None)
        else:
            path = self.entry.path
            # Until the facts are there, nothing can be launched.
            self._selected(Selection.NONE, None)
            self._jobs.start(
                "facts",
                lambda report, cancelled: load_facts(path),
                lambda facts: self._selected(Selection.LOADABLE, facts),
                self._unreadable,
            )

    def _selected(self, selection: Selection, facts: object) -> None:
        self.selection = selection
        self._standing.move(SessionEvent.SELECT)
        known = facts if isinstance(facts, ModelFacts) else None
        if known is not None:
            self._window.heading.set_facts(known)
        elif self.entry is not None:
            self._window.heading.set_text(
                self.entry.name, self.entry.problem or self.entry.description
            )
        else:
            self._window.heading.set_facts(None)
        broken = selection is Selection.PROBLEM
        self._planner.select(known, self.tr("This file cannot be loaded.") if broken else "")
        self._standing.show()

    def _unreadable(self, error: LauncherError) -> None:
        """The file changed since it was listed."""
        if self.entry is not None:
            entry = replace(self.entry, problem=error.message, hint=error.hint)
            self._window.model_list.upsert(entry)
        self._window.status.set_message(error.sentence, "error")

    def _refused(self, error: LauncherError) -> None:
        """llama.cpp itself does not take the file, or not as it is set."""
        if self.entry is not None and not isinstance(error, SettingsRefused):
            self._library.refuse(self.entry.path, error.message)
        self._window.status.set_message(error.sentence, "warning")
