"""The model list's other half: it scans folders in the pool and keeps what the user added.

GUI thread; every look at the disk is a pool job. Sources are folders and single files that
the user added (settings), the program's own models, and other programs' caches.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.library_settings import (
    hidden_models,
    hide_model,
    show_hidden_models,
    skipped_sources,
    switch_source,
)
from moelauncher.core.library.model_folders import source_labels
from moelauncher.core.library.sample_model import sample_model_path
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.path_text import path_as_text, path_of_text
from moelauncher.core.program import settings as keys
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library.folder_watch import FolderWatch
from moelauncher.gui.library.growing_files import GrowingFiles
from moelauncher.gui.library.library_scan import Remembered, Scanned, first_model, scan_sources
from moelauncher.gui.library.model_actions import ModelActions
from moelauncher.gui.library.model_list_menus import SourceRow
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.library.sample_builder import SampleBuilder
from moelauncher.gui.library.verdicts import Verdicts
from moelauncher.gui.services import Services

_log = logging.getLogger(__name__)

#: A folder that changes is looked at again when it has been quiet for this long.
_QUIET_MS = 1000
#: Coming back to the window looks again where the last look is older than this.
_STALE_MS = 60_000
#: From here on rows come in at once: one by one they would each move all others.
_LARGE_BUNDLE = 40

_SELECTED = "selected_model"


class Library(QObject):
    """Keeps the model list true.

    Signals:
        message: text, level; one sentence for the status line.
    """

    message = Signal(str, str)

    def __init__(
        self,
        pane: ModelListPane,
        services: Services,
        jobs: JobRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._pane = pane
        self._services = services
        self._jobs = jobs
        self._wanted: Path | None = None  # to be selected as soon as it is listed
        self._seen: set[Path] = set()
        self._looked = False  # whether a scan was begun in this run
        # A pool of its own: a drive that hangs holds up nothing but the list.
        self._scan_jobs = JobRunner(self)
        self.actions = ModelActions(pane.window(), jobs, self)
        self._verdicts = Verdicts(self._scan_jobs, self)
        self._growing = GrowingFiles(self._scan_jobs, self)
        self._watch = FolderWatch(self)
        self._quiet = _single_shot(self, _QUIET_MS)
        self._fresh = _single_shot(self, _STALE_MS)
        self._watch.changed.connect(self._quiet.start)
        self._quiet.timeout.connect(self._look_again)
        self._application = QGuiApplication.instance()
        assert isinstance(self._application, QGuiApplication)
        self._application.applicationStateChanged.connect(self._application_state)
        self._verdicts.judged.connect(self._judged)
        self._growing.changed.connect(self._grew)
        self._growing.gone.connect(self._forget)
        self.actions.message.connect(self.message)
        self.actions.trashed.connect(lambda entry: self._forget(entry.path))
        menus = pane.menus
        menus.source_switched.connect(self.switch_source)
        menus.show_hidden.connect(self.show_hidden)
        menus.hide.connect(self.hide)
        menus.reveal.connect(self.actions.reveal)
        menus.copy_path.connect(self.actions.copy_path)
        menus.trash.connect(self.actions.trash)
        pane.refresh_requested.connect(lambda: self.refresh())
        pane.add_folder_requested.connect(self._choose_folder)
        pane.add_file_requested.connect(self._choose_file)
        self.sample = SampleBuilder(pane, services.paths.sample_folder, jobs, self)
        self.sample.built.connect(self._found_added)
        self.sample.message.connect(self.message)
        pane.remove_requested.connect(self.remove_source)
        pane.entry_selected.connect(self._remember_selected)
        pane.set_sources(self._user_sources())
        stored = services.state.get(_SELECTED)
        if isinstance(stored, str) and stored:
            self._wanted = Path(stored)

    # What the user adds

    def add_paths(self, paths: Sequence[Path]) -> None:
        """Add files and folders (a drop, the command line) and select the first model."""
        added = []
        for path in paths:
            problem = _not_addable(path)
            if problem:
                self.message.emit(problem, "warning")
                continue
            added.append(_absolute(path))
        if not added:
            return
        self._keep([*self._user_sources(), *added])
        first = added[0]
        self._jobs.start(
            "add",
            lambda report, cancelled: first_model(first, cancelled),
            self._found_added,
            self._complain,
        )
        self.refresh()

    def remove_source(self, source: object) -> None:
        """No longer list this folder or file; nothing on the disk is touched."""
        self._keep([path for path in self._user_sources() if path != source])
        self.refresh()

    def refresh(self, *, quietly: bool = False) -> None:
        """Look at all sources again; ``quietly``: without saying so."""
        self._quiet.stop()
        self._pane.set_scanning(not quietly)
        self._seen = set()
        first, self._looked = not self._looked, True
        settings, paths = self._services.settings, self._services.paths
        places = [*self._user_sources(), paths.models, sample_model_path(paths.sample_folder)]
        added = frozenset(self._user_sources())
        skip = skipped_sources(settings)
        self._scan_jobs.start(
            "scan",
            lambda report, cancelled: scan_sources(
                places, added, skip, paths.headers_folder, report, cancelled, first=first
            ),
            self._scanned,
            self._complain,
            self._found,
        )

    @property
    def is_scanning(self) -> bool:
        """Whether rows may still come in."""
        return self._scan_jobs.busy("scan")

    def switch_source(self, key: str, on: bool) -> None:
        """List a program's models from now on, or no longer."""
        switch_source(self._services.settings, key, on)
        self._save_settings()
        self.refresh()

    def hide(self, entry: object) -> None:
        """Take a model from the list; its file stays, and can be listed again."""
        if not isinstance(entry, CatalogEntry):
            return
        if entry.path in self._user_sources():
            self.remove_source(entry.path)
            return
        hide_model(self._services.settings, entry.path)
        self._save_settings()
        self._forget(entry.path)
        self._tell_menus()

    def show_hidden(self) -> None:
        """List again what was taken from the list."""
        show_hidden_models(self._services.settings)
        self._save_settings()
        self._tell_menus()
        self.refresh()

    def set_machine(self, machine: Machine, context: ContextSettings) -> None:
        """The machine and the context that rows are judged by."""
        self._verdicts.set_machine(machine, context)

    def show_model(self, path: Path) -> None:
        """Select the model at ``path`` as soon as a scan finds it."""
        self._wanted = path
        self.refresh(quietly=True)

    def refuse(self, path: Path, text: str) -> None:
        """llama.cpp itself does not take the file at ``path``."""
        self._verdicts.refuse(path, text)

    def close(self) -> None:
        """End what goes on in the background."""
        self._quiet.stop()
        self._fresh.stop()
        assert isinstance(self._application, QGuiApplication)
        self._application.applicationStateChanged.disconnect(self._application_state)
        self._growing.close()
        self._verdicts.close()
        self._watch.close()
        self._scan_jobs.close()

    # What the jobs find

    def _found(self, bundle: object) -> None:
        rows = bundle.rows if isinstance(bundle, Remembered) else bundle
        assert isinstance(rows, list)
        hidden = hidden_models(self._services.settings)
        shown = [row for row in rows if row.entry.path not in hidden]
        if not isinstance(bundle, Remembered):
            self._seen.update(row.entry.path for row in shown)
        if len(shown) < _LARGE_BUNDLE:
            for row in shown:
                self._pane.upsert(row.entry)
        else:
            self._pane.merge(shown)
        self._select_wanted()

    def _scanned(self, found: object) -> None:
        assert isinstance(found, Scanned)
        gone = [entry.path for entry in self._pane.entries() if entry.path not in self._seen]
        if len(gone) < _LARGE_BUNDLE:
            for path in gone:
                self._pane.remove(path)
        else:
            kept = [entry for entry in self._pane.entries() if entry.path in self._seen]
            self._pane.set_entries(kept)
        self._pane.set_scanning(False)
        self._select_wanted()
        self._tell_menus(found)
        self._watch.watch(found.folders, found.began_ns)
        self._entries_changed()
        self._fresh.start()

    def _entries_changed(self) -> None:
        entries = self._pane.entries()
        self._verdicts.set_entries(entries)
        self._growing.watch(entries)

    def _judged(self, verdicts: object) -> None:
        assert isinstance(verdicts, list)
        for path, text, level in verdicts:
            self._pane.set_verdict(path, text, level)

    def _grew(self, entry: object) -> None:
        assert isinstance(entry, CatalogEntry)
        self._pane.upsert(entry)
        if entry.offered:
            self.message.emit(self.tr("{name} is complete.").format(name=entry.name), "info")
            self._entries_changed()
            # Its projector, and its other parts, are looked for by a scan.
            self._quiet.start()

    def _forget(self, path: object) -> None:
        assert isinstance(path, Path)
        self._seen.discard(path)
        self._pane.remove(path)

    def _application_state(self, state: Qt.ApplicationState) -> None:
        stale = not self._fresh.isActive() and not self.is_scanning
        if state == Qt.ApplicationState.ApplicationActive and stale:
            self._fresh.start()
            self._quiet.start()

    def _look_again(self) -> None:
        if self.is_scanning:
            # A long look is not thrown away for a change that it may have seen.
            self._quiet.start()
        else:
            self.refresh(quietly=True)

    def _found_added(self, entry: object) -> None:
        if not isinstance(entry, CatalogEntry):
            self.message.emit(self.tr("There is no GGUF file in that folder."), "warning")
            return
        self._seen.add(entry.path)
        self._pane.upsert(entry)
        self._entries_changed()
        self._wanted = entry.path
        self._select_wanted()
        if entry.problem:
            self.message.emit(f"{entry.name}: {entry.problem} {entry.hint}".strip(), "warning")
        elif entry.role != "chat":
            self.message.emit(
                self.tr("{name} is no chat model ({role}), so it is not listed.").format(
                    name=entry.name, role=entry.role
                ),
                "warning",
            )

    def _select_wanted(self) -> None:
        if self._wanted is not None and self._pane.select_path(self._wanted):
            self._wanted = None

    def _remember_selected(self, entry: object) -> None:
        if isinstance(entry, CatalogEntry):
            _log.info("selected %s", entry.path)
            self._services.state.set(_SELECTED, str(entry.path))

    def _complain(self, error: LauncherError) -> None:
        self._pane.set_scanning(False)
        self.message.emit(error.sentence, "error")

    # Sources

    def _user_sources(self) -> list[Path]:
        return [path_of_text(text) for text in self._services.settings.get(keys.MODEL_FOLDERS)]

    def _keep(self, sources: Sequence[Path]) -> None:
        unique = tuple(dict.fromkeys(path_as_text(path) for path in sources))
        self._services.settings.set(keys.MODEL_FOLDERS, unique)
        self._save_settings()
        self._pane.set_sources(self._user_sources())

    def _save_settings(self) -> None:
        try:
            self._services.settings.save()
        except LauncherError as error:
            self.message.emit(error.sentence, "warning")

    def _tell_menus(self, found: Scanned | None = None) -> None:
        settings = self._services.settings
        self._pane.menus.set_hidden_count(len(hidden_models(settings)))
        if found is None:
            return
        skipped = skipped_sources(settings)
        self._pane.menus.set_programs(
            [
                SourceRow(key, label, key not in skipped, found.programs.get(key, ()))
                for key, label in source_labels().items()
                if key in found.programs
            ]
        )

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self._pane, self.tr("A folder with GGUF files, at any depth")
        )
        if chosen:
            self.add_paths([Path(chosen)])

    def _choose_file(self) -> None:
        chosen, _ = QFileDialog.getOpenFileNames(
            self._pane, self.tr("GGUF models"), "", self.tr("GGUF models (*.gguf)")
        )
        if chosen:
            self.add_paths([Path(name) for name in chosen])


def _absolute(path: Path) -> Path:
    # Not resolve(): the user's own name for it is the one to show.
    return path.expanduser().absolute()


def _not_addable(path: Path) -> str:
    name = display_name(path.name)
    try:
        if path.is_dir() or path.suffix.lower() == ".gguf":
            return ""
    except OSError:
        return ""
    return tr("{name} is no GGUF file: drop a .gguf model or a folder.").format(name=name)


def _single_shot(parent: QObject, interval_ms: int) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    return timer
