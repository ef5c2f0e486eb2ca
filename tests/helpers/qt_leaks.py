"""Finds the QThreads, pool jobs and QTimers that a test of the window left running."""

from __future__ import annotations

import gc

from PySide6.QtCore import QCoreApplication, QDeadlineTimer, QEvent, QThread, QThreadPool, QTimer
from shiboken6 import Shiboken

_GRACE_MS = 30_000
"""What was told to end may need this long on a busy machine."""


class QtWatch:
    """Remembers what runs now; :meth:`left_behind` names what came and stayed. GUI thread.

    What is alive now is taken out of Python's garbage collection for good, so that the collection
    in :meth:`left_behind` walks what came since, and not the modules and results of a whole run.
    """

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()
        # Held as objects, so that no new one can take an old one's id.
        self._before: list[object] = [*_active_timers(), *_running_threads()]

    def left_behind(self) -> list[str]:
        """One entry for each timer, thread and pool that is still active after the grace."""
        known = {id(thing) for thing in self._before}
        _finish_deletions()
        found = []
        if not QThreadPool.globalInstance().waitForDone(_GRACE_MS):
            found.append("the global QThreadPool is still working")
        for thread in _running_threads():
            if id(thread) not in known and not thread.wait(QDeadlineTimer(_GRACE_MS)):
                found.append(f"QThread {thread.objectName() or type(thread).__name__} still runs")
        for timer in _active_timers():
            if id(timer) not in known:
                found.append(_describe_timer(timer))
        return found


def _finish_deletions() -> None:
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    QCoreApplication.processEvents()


def _active_timers() -> list[QTimer]:
    return [timer for timer in _living(QTimer) if timer.isActive()]


def _running_threads() -> list[QThread]:
    gui_thread = QThread.currentThread()
    return [
        thread for thread in _living(QThread) if thread is not gui_thread and thread.isRunning()
    ]


def _living(kind: type) -> list:
    # type(), not isinstance(): a wrapper may answer for its __class__ in its own way.
    return [thing for thing in Shiboken.getAllValidWrappers() if issubclass(type(thing), kind)]


def _describe_timer(timer: QTimer) -> str:
    chain = []
    owner = timer.parent()
    while owner is not None:
        chain.append(owner.objectName() or type(owner).__name__)
        owner = owner.parent()
    name = timer.objectName() or "QTimer"
    return (
        f"{name} every {timer.interval()} ms is still active, owned by {' < '.join(chain) or '-'}"
    )
