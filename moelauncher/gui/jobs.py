"""Short work off the window's thread, its answer back on it.

``JobRunner.start`` runs a callable in a thread of its pool and calls ``done`` or ``failed`` on
the window's thread. Jobs in one *lane* replace each other: only the newest one's answer
arrives, so a slow answer about a model that is no longer selected is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal, Slot

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.translate import tr
from moelauncher.gui.job_threads import JobThreads

_log = logging.getLogger(__name__)

#: So long the end of the program waits for jobs that were told to end.
CLOSE_LIMIT_S = 4.0

Report = Callable[[object], None]
Work = Callable[[Report, Callable[[], bool]], object]


@dataclass
class _Running:
    lane: str
    done: Callable[[object], None]
    failed: Callable[[LauncherError], None]
    reported: Callable[[object], None] | None
    cancelled: bool = False
    dropped: bool = False
    #: The runner is closed: nothing is told to it any more.
    abandoned: bool = False


class _Job:
    def __init__(self, runner: JobRunner, number: int, work: Work, running: _Running) -> None:
        self._runner = runner
        self._number = number
        self._work = work
        self._running = running

    def run(self) -> None:
        try:
            value = self._work(self._report, lambda: self._running.cancelled)
        except Cancelled:
            self._end(None, None, True)
        except LauncherError as error:
            self._end(None, error, False)
        except Exception as error:
            _log.exception("a job failed")
            self._end(None, _unexpected(error), False)
        else:
            self._end(value, None, False)

    def _report(self, value: object) -> None:
        if not self._running.abandoned:
            self._runner._reported.emit(self._number, value)

    def _end(self, value: object, error: LauncherError | None, cancelled: bool) -> None:
        if not self._running.abandoned:
            self._runner._ended.emit(self._number, value, error, cancelled)


def _unexpected(error: Exception) -> LauncherError:
    return LauncherError(
        tr("Something went wrong inside the program: {error}").format(error=error),
        tr("The log has the details."),
        repr(error),
    )


class JobRunner(QObject):
    """A thread pool whose answers arrive on the window's thread.

    ``work(report, cancelled)`` runs in the pool: it may call ``report(value)`` any number
    of times and should look at ``cancelled()``; raise
    :class:`~moelauncher.core.errors.Cancelled` to end without an answer.
    """

    _ended = Signal(int, object, object, bool)
    _reported = Signal(int, object)

    def __init__(self, parent: QObject | None = None, threads: int = 3) -> None:
        super().__init__(parent)
        self._threads = JobThreads(threads)
        self._running: dict[int, _Running] = {}
        self._number = 0
        self._closed = False
        self._ended.connect(self._on_ended)
        self._reported.connect(self._on_reported)

    def start(
        self,
        lane: str,
        work: Work,
        done: Callable[[object], None],
        failed: Callable[[LauncherError], None],
        reported: Callable[[object], None] | None = None,
    ) -> None:
        """Run ``work``; what still runs in ``lane`` is cancelled and its answer dropped.

        Nothing is begun once the runner is closed: a timer may still ring at the program's end.
        """
        if self._closed:
            return
        self.cancel(lane)
        self._number += 1
        running = _Running(lane, done, failed, reported)
        self._running[self._number] = running
        self._threads.start(lane, _Job(self, self._number, work, running).run)

    def cancel(self, lane: str) -> None:
        """Ask the lane's jobs to end and drop their answers."""
        for running in self._running.values():
            if running.lane == lane:
                running.cancelled = running.dropped = True

    def busy(self, lane: str) -> bool:
        """Whether a job of the lane still runs and its answer is wanted."""
        return any(r.lane == lane and not r.dropped for r in self._running.values())

    def close(self) -> None:
        """Cancel everything and wait until it ended, but not for what hangs in the system: a
        drive or a server that does not answer is left behind."""
        self._closed = True
        for running in self._running.values():
            running.cancelled = running.dropped = running.abandoned = True
        for name in self._threads.close(CLOSE_LIMIT_S):
            _log.warning("%s does not end and is left behind", name)

    @Slot(int, object, object, bool)
    def _on_ended(self, number: int, value: object, error: object, cancelled: bool) -> None:
        running = self._running.pop(number, None)
        if running is None or running.dropped or cancelled:
            return
        if isinstance(error, LauncherError):
            running.failed(error)
        else:
            running.done(value)

    @Slot(int, object)
    def _on_reported(self, number: int, value: object) -> None:
        running = self._running.get(number)
        if running is not None and not running.dropped and running.reported is not None:
            running.reported(value)
