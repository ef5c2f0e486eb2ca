"""Downloads by other programs, seen while they go on: rows that are not whole are looked at again.

GUI thread; every look at the disk is a pool job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.file_growth import FileGrowth
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.gui.jobs import JobRunner

LOOK_MS = 2000
_MOST_FILES = 256
#: A file that was not written to for this long is no download any more.
_IDLE_S = 600.0


@dataclass(frozen=True)
class _Look:
    """What one look at one file found; ``entry`` None: it is gone."""

    path: Path
    entry: CatalogEntry | None
    #: It has not changed for long: a scan will see it when it does.
    idle: bool = False


class GrowingFiles(QObject):
    """Looks at unfinished files every two seconds while there are any.

    Signals:
        changed(object): a CatalogEntry that is to be shown from now on.
        gone(object): a path that is no longer there.
    """

    changed = Signal(object)
    gone = Signal(object)

    def __init__(self, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._growth = FileGrowth()
        self._entries: dict[Path, CatalogEntry] = {}
        self._clock = QTimer(self)
        self._clock.setInterval(LOOK_MS)
        self._clock.timeout.connect(self.look)

    def watch(self, entries: Sequence[CatalogEntry]) -> None:
        """Watch those of ``entries`` that may still be on their way."""
        unfinished = [entry for entry in entries if _may_grow(entry)][:_MOST_FILES]
        self._entries = {entry.path: entry for entry in unfinished}
        self._growth.keep_only(self._entries)
        if self._entries and not self._clock.isActive():
            self._clock.start()
        elif not self._entries:
            self._clock.stop()

    def look(self) -> None:
        """Look once, now."""
        if self._jobs.busy("growth"):
            return
        entries, growth = list(self._entries.values()), self._growth
        self._jobs.start(
            "growth",
            lambda report, cancelled: _look_at(entries, growth, cancelled),
            self._looked,
            _ignore,
        )

    def close(self) -> None:
        """No more looks."""
        self._clock.stop()
        self._jobs.cancel("growth")

    def _looked(self, looks: object) -> None:
        assert isinstance(looks, list)
        for look in looks:
            assert isinstance(look, _Look)
            if look.path not in self._entries:
                continue
            if look.entry is None:
                del self._entries[look.path]
                self.gone.emit(look.path)
                continue
            known = self._entries[look.path]
            if look.idle or not _may_grow(look.entry):
                del self._entries[look.path]
            else:
                self._entries[look.path] = look.entry
            if look.entry != known:
                self.changed.emit(look.entry)
        if not self._entries:
            self._clock.stop()


def _may_grow(entry: CatalogEntry) -> bool:
    if len(entry.files) != 1:
        return False
    return entry.role in ("download", "unknown") or bool(entry.problem)


def _look_at(
    entries: Sequence[CatalogEntry], growth: FileGrowth, cancelled: Callable[[], bool]
) -> list[_Look]:
    looks = []
    for entry in entries:
        if cancelled():
            break
        try:
            info = entry.path.stat()
        except (OSError, ValueError):
            looks.append(_Look(entry.path, entry if entry.path.is_symlink() else None, idle=True))
            continue
        grows = growth.look(entry.path, info.st_size, time.monotonic())
        idle = not grows and time.time() - info.st_mtime > _IDLE_S
        found = entry
        if grows:
            found = _downloading(entry, info.st_size)
        elif _is_gguf(entry.path) and (
            info.st_size != entry.size_bytes or entry.role == "download"
        ):
            # It stands still now, or grew between the scan and the first look.
            found = entry_of(entry.path)
        looks.append(_Look(entry.path, found, idle))
    return looks


def _downloading(entry: CatalogEntry, size_bytes: int) -> CatalogEntry:
    expected = None
    if _is_gguf(entry.path):
        try:
            header = read_header(entry.path)
        except LauncherError:
            header = None
        if header is not None and not header.missing_bytes:
            return entry_of(entry.path)
        expected = None if header is None else size_bytes + header.missing_bytes
    here = format_bytes(size_bytes)
    if expected is None:
        text = tr("Still downloading: {here} so far.").format(here=here)
    else:
        text = tr("Still downloading: {here} of {size}.").format(
            here=here, size=format_bytes(expected)
        )
    return replace(
        entry,
        role="download",
        size_bytes=size_bytes,
        problem=text,
        hint=tr("It is listed as a model when it is whole."),
    )


def _is_gguf(path: Path) -> bool:
    return path.suffix.lower() == ".gguf"


def _ignore(error: LauncherError) -> None:
    """The next look comes soon."""
