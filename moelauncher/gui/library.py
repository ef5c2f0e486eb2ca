"""The model list's other half: it scans folders in the pool and keeps what the user added.

GUI thread; every look at the disk is a pool job. Sources are folders and single files that
the user added (settings), the program's own models, and other programs' caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog

from moelauncher.core import settings as keys
from moelauncher.core.catalog import CatalogEntry, default_model_folders, entry_of, scan
from moelauncher.core.errors import LauncherError
from moelauncher.core.header_cache import HeaderCache
from moelauncher.core.sample_model import build_sample_model, sample_model_path
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.model_list_pane import ModelListPane
from moelauncher.gui.services import Services

#: Rows come in bundles, so that a fast disk does not flood the window's thread.
_BUNDLE_S = 0.05
#: A folder that changes is looked at again when it has been quiet for this long.
_QUIET_MS = 1000
_WATCHED_FOLDERS = 256

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
        self._watcher = QFileSystemWatcher(self)
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(_QUIET_MS)
        self._watcher.directoryChanged.connect(lambda _: self._quiet.start())
        self._quiet.timeout.connect(self.refresh)
        pane.refresh_requested.connect(self.refresh)
        pane.add_folder_requested.connect(self._choose_folder)
        pane.add_file_requested.connect(self._choose_file)
        pane.demo_requested.connect(self.select_sample)
        pane.demo_cancel_requested.connect(self.cancel_sample)
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
            lambda report, cancelled: _first_model(first, cancelled),
            self._found_added,
            self._complain,
        )
        self.refresh()

    def remove_source(self, source: object) -> None:
        """No longer list this folder or file; nothing on the disk is touched."""
        self._keep([path for path in self._user_sources() if path != source])
        self.refresh()

    def refresh(self) -> None:
        """Look at all sources again."""
        self._pane.set_scanning(True)
        self._seen = set()
        sources = self._sources()
        folder = self._services.paths.headers_folder
        self._jobs.start(
            "scan",
            lambda report, cancelled: _scan(sources, folder, report, cancelled),
            self._scanned,
            self._complain,
            self._found,
        )

    def select_sample(self) -> None:
        """Select the sample model, built first where it is missing."""
        folder = self._services.paths.sample_folder
        self._jobs.start(
            "sample",
            lambda report, cancelled: entry_of(
                build_sample_model(folder, progress=_every_percent(report), cancelled=cancelled)
            ),
            self._sample_built,
            self._sample_failed,
            self._sample_progressed,
        )

    def cancel_sample(self) -> None:
        """Stop building; what was written is removed."""
        self._jobs.cancel("sample")
        self._pane.set_demo_progress(None)

    # What the jobs find

    def _found(self, bundle: object) -> None:
        assert isinstance(bundle, list)
        for entry in bundle:
            self._seen.add(entry.path)
            self._pane.upsert(entry)
        self._select_wanted()

    def _scanned(self, _: object) -> None:
        for entry in self._pane.entries():
            if entry.path not in self._seen:
                self._pane.remove(entry.path)
        self._pane.set_scanning(False)
        self._select_wanted()
        self._watch()

    def _found_added(self, entry: object) -> None:
        if not isinstance(entry, CatalogEntry):
            self.message.emit(self.tr("There is no GGUF file in that folder."), "warning")
            return
        self._seen.add(entry.path)
        self._pane.upsert(entry)
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

    def _sample_built(self, entry: object) -> None:
        assert isinstance(entry, CatalogEntry)
        self._pane.set_demo_progress(None)
        self._found_added(entry)

    def _sample_progressed(self, fraction: object) -> None:
        assert isinstance(fraction, float)
        self._pane.set_demo_progress(fraction)

    def _sample_failed(self, error: LauncherError) -> None:
        self._pane.set_demo_progress(None)
        self.message.emit(error.sentence, "error")

    def _select_wanted(self) -> None:
        if self._wanted is not None and self._pane.select_path(self._wanted):
            self._wanted = None

    def _remember_selected(self, entry: object) -> None:
        if isinstance(entry, CatalogEntry):
            self._services.state.set(_SELECTED, str(entry.path))

    def _complain(self, error: LauncherError) -> None:
        self._pane.set_scanning(False)
        self.message.emit(error.sentence, "error")

    # Sources

    def _user_sources(self) -> list[Path]:
        return [Path(text) for text in self._services.settings.get(keys.MODEL_FOLDERS)]

    def _sources(self) -> list[Path]:
        paths = self._services.paths
        sources = self._user_sources()
        if paths.models.is_dir():
            sources.append(paths.models)
        sample = sample_model_path(paths.sample_folder)
        if sample.is_file():
            sources.append(sample)
        if self._services.settings.get(keys.HF_CACHE):
            sources += default_model_folders()
        return sources

    def _keep(self, sources: Sequence[Path]) -> None:
        unique = tuple(dict.fromkeys(str(path) for path in sources))
        self._services.settings.set(keys.MODEL_FOLDERS, unique)
        try:
            self._services.settings.save()
        except LauncherError as error:
            self.message.emit(error.sentence, "warning")
        self._pane.set_sources(self._user_sources())

    def _watch(self) -> None:
        folders = {str(entry.path.parent) for entry in self._pane.entries()}
        folders |= {str(path) for path in self._user_sources() if path.is_dir()}
        watched = set(self._watcher.directories())
        if watched - folders:
            self._watcher.removePaths(sorted(watched - folders))
        fresh = sorted(folders - watched)[: max(0, _WATCHED_FOLDERS - len(watched & folders))]
        if fresh:
            self._watcher.addPaths(fresh)

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


def _first_model(path: Path, cancelled: Callable[[], bool]) -> CatalogEntry | None:
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        return entry_of(path)
    found = None
    for entry in scan([path], cancelled=cancelled):
        if entry.offered:
            return entry
        found = found or entry
    return found


def _scan(
    sources: Sequence[Path], cache_folder: Path, report: Report, cancelled: Callable[[], bool]
) -> None:
    bundle: list[CatalogEntry] = []
    told_s = 0.0
    for entry in scan(sources, cache=HeaderCache(cache_folder), cancelled=cancelled):
        bundle.append(entry)
        if time.monotonic() - told_s >= _BUNDLE_S:
            report(bundle)
            bundle = []
            told_s = time.monotonic()
    report(bundle)


def _every_percent(report: Report) -> Callable[[float], None]:
    told = -1.0

    def progress(fraction: float) -> None:
        nonlocal told
        if fraction - told >= 0.01 or fraction >= 1.0:
            told = fraction
            report(fraction)

    return progress
