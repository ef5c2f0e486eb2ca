"""Tells when something changes in folders, without ever looking at them on the window's thread.

Adding a folder to Qt's watcher touches it, and a network drive that is gone lets that wait for
minutes: so the watcher lives in a thread of its own. GUI thread only, but for the inner part.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QThread, Signal, Slot

from moelauncher.gui.job_threads import LEFT_BEHIND

#: Each takes a handle of the system; the folders beyond are looked at on demand.
MOST_FOLDERS = 1024

#: Threads that did not end; held for the rest of the program's life.
_HANGING: list[QThread] = []


class _Watcher(QObject):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._watcher: QFileSystemWatcher | None = None

    @Slot(list, object)
    def watch(self, folders: list[str], looked_at_ns: int) -> None:
        """Watch these folders and no others; say at once what changed before that began."""
        if self._watcher is None:
            self._watcher = QFileSystemWatcher(self)
            self._watcher.directoryChanged.connect(self.changed)
        wanted = set(folders)
        watched = set(self._watcher.directories())
        if watched - wanted:
            self._watcher.removePaths(sorted(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(sorted(wanted - watched))
            if any(_changed_ns(folder) >= looked_at_ns for folder in wanted - watched):
                self.changed.emit()


class FolderWatch(QObject):
    """Watches folders. Call :meth:`close` in the end.

    Signals:
        changed: something was added to, or taken from, a watched folder.
    """

    changed = Signal()
    _wanted = Signal(list, object)  # an int of nanoseconds has no room in Qt's own

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = QThread(self)
        self._thread.setObjectName("folder watch")
        self._inner = _Watcher()
        self._inner.moveToThread(self._thread)
        self._wanted.connect(self._inner.watch)
        self._inner.changed.connect(self.changed)
        # Deleted where it lives: its watcher must not end on another thread.
        self._thread.finished.connect(self._inner.deleteLater)
        self._thread.start(QThread.Priority.LowPriority)

    def watch(self, folders: Iterable[str], looked_at_ns: int) -> None:
        """Watch these folders and no others, as soon as the thread gets to it.

        ``looked_at_ns`` (:func:`time.time_ns`) is when the look at them began: what changed
        between then and the watch would else be told by nobody.
        """
        if self._thread.isRunning():
            self._wanted.emit(sorted(folders)[:MOST_FOLDERS], looked_at_ns)

    def close(self) -> None:
        """End the thread. A folder that hangs is waited for only a short while."""
        self._thread.quit()
        if not self._thread.wait(2000):
            # Qt ends the program when a thread's object goes while the thread runs.
            LEFT_BEHIND.append(self._thread.objectName())
            self._thread.setParent(None)
            _HANGING.append(self._thread)


def _changed_ns(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:  # gone, or not for us: the next look says so
        return 0
