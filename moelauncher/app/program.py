"""The running program: the window, the session and the rooms, wired; what begins when, and ends.

What is slow to import (pyqtgraph, llama.cpp) comes after the first paint.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QCoreApplication,
    QObject,
    QTimer,
    Signal,
)
from PySide6.QtWidgets import QApplication

from moelauncher.app.rooms import Rooms
from moelauncher.commands.examination import see_gpus_at_start
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.log_file import LogSetup
from moelauncher.core.memory.default_gpus import default_gpus
from moelauncher.core.paths import app_paths
from moelauncher.core.program import settings as keys
from moelauncher.core.program.doctor_facts import GpuSightings
from moelauncher.core.program.own_program import start_program
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.sleep_source import NoSleepSource, SleepSource
from moelauncher.core.program.window_state import StateFile
from moelauncher.core.session_state import SessionState
from moelauncher.engine.dry_run import InstalledBuild, describe_build
from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.gpu_advice import GpuAdvice
from moelauncher.gui.memory.safer_start import SaferStart
from moelauncher.gui.program.last_run import LastRun
from moelauncher.gui.program.program_desk import ProgramDesk
from moelauncher.gui.session import Session
from moelauncher.gui.theme import apply_theme
from moelauncher.meters.meter_thread import MeterThread

if TYPE_CHECKING:
    from moelauncher.gui.later_starts import LaterStarts

_log = logging.getLogger(__name__)

#: The plot's library takes half a second to import: what is to be read comes first.
PLOT_AFTER_MS = 150
#: It also waits for the list's first rows to be all there, but no more often than this.
PLOT_WAITS = 14


class Program(QObject):
    """The running program. ``window`` is shown; :meth:`close` ends everything.

    Signals:
        snapshot: a MachineSnapshot from the meter thread, on the window's thread.
    """

    snapshot = Signal(object)

    def __init__(self, app: QApplication, arguments: argparse.Namespace) -> None:
        super().__init__()
        self.app = app
        self._closed = False
        self._told_to_end = False
        self._devices_seen = False
        self._last_run: LastRun | None = None
        self._later_starts: LaterStarts | None = None
        self._paths = app_paths(arguments.basedir)
        self._plot_waits = 0
        self._plot_later = QTimer(self, singleShot=True, interval=PLOT_AFTER_MS)
        self._plot_later.timeout.connect(self._build_plot)
        self._log = LogSetup(self._paths.log_file)
        self._settings = Settings.load(self._paths.settings_file)
        self._state = StateFile(self._paths.window_file)
        apply_theme(app, self._settings.get(keys.THEME))
        self._rooms = Rooms(self._paths, self._settings, self._state)
        self.window = MainWindow(ModelListPane(), ChatPane())
        services = self._rooms.services()
        self.session = Session(self.window, services, self)
        self._meters = MeterThread(self._rooms.snapshot_sources(), self.snapshot.emit)
        self._jobs = JobRunner(self)
        self.snapshot.connect(self.session.on_snapshot)
        self.snapshot.connect(self._rooms.watch.heard)
        self.session.outcome.accounts.compared.connect(self._rooms.compared)
        self._advice = GpuAdvice(self)
        self.snapshot.connect(self._advice.on_snapshot)
        self.desk = ProgramDesk(self.window, self.session, services, self)
        self.session.sleep.restart_requested.connect(self._start_anew)
        self._advice.seen.connect(self.desk.gpus_seen)
        self._advice.advice.connect(self._tell_of_gpu)
        self.window.closing.connect(self.close)
        stored = self._state.get("window")
        if isinstance(stored, dict):
            self.window.restore(stored)
        self.window.watch_drops()
        self._arguments = arguments
        notes = [note for note in (*self._settings.notes, self._log.problem) if note]
        for note in notes:
            _log.warning("%s", note)
        if notes:
            # In one: the status line holds one message.
            self.window.status.set_message(" ".join(notes), "warning")

    def start(self) -> None:
        """Show the window; everything slow begins after its first paint."""
        self.window.show()
        QTimer.singleShot(0, self, self._after_first_paint)

    def watch_run(self) -> None:
        """Tell how the run before ended, and leave word in case this one ends badly."""
        self._last_run = LastRun(self.session, self._paths.logs, self._jobs)
        self._last_run.tell(self._tell_of_last_run)

    def _tell_of_last_run(self, news: str) -> None:
        before = self._last_run.before if self._last_run is not None else None
        if before is None:
            return
        _log.warning("%s", news)
        safer = SaferStart(self.session, self.window.status, before)
        offer = safer.offer if safer.offered else ""
        self.window.status.set_message(news, "warning", offer, safer.take)

    def end_soon(self) -> None:
        """Close the window as its frame's button does. From a signal, so anywhere in Python."""
        self._told_to_end = True
        # By the event loop: it may be the middle of a paint.
        QTimer.singleShot(0, self.window, self.window.close)

    def close(self) -> None:
        """Save, end threads and the child process. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._plot_later.stop()
        self._state.set("window", self.window.state())
        if self._later_starts is not None:
            self._later_starts.close()
        # First the child: a meter, a job or the engine may be waiting for its answer.
        self._rooms.child.close()
        self._meters.stop()
        # A long chat may be written to the disk now; nobody has to watch that.
        self.window.hide()
        self.desk.close()
        self.session.close()
        self._jobs.close()
        self._state.save()
        if self._last_run is not None:
            self._last_run.close()
        self._log.close()

    # Wiring

    def _start_anew(self) -> None:
        """Start the program again and end this one without freeing a GPU that is gone, which
        its driver may answer with the end of the process."""
        self.session.chat.close()
        self.session.planner.save()
        self._state.set("window", self.window.state())
        self._state.save()
        if self._later_starts is not None:
            self._later_starts.close()
        if self._last_run is not None:
            self._last_run.close()
        given = self._arguments.basedir
        start_program([] if given is None else ["--basedir", str(given)])
        # The child process sees its pipes close, and ends too.
        os._exit(0)

    def _after_first_paint(self) -> None:
        if self._closed:
            return
        # Here, not at the top: the network's classes are of no use to the first paint.
        from moelauncher.gui.later_starts import LaterStarts

        self._later_starts = LaterStarts(self.window, self.session, self._paths.config)
        self._later_starts.shows.connect(self.desk.welcome.put_away)
        self.session.sleep.listen(_sleep_source())
        self._meters.start()
        self._jobs.start(
            "devices",
            lambda report, cancelled: list(self._rooms.watch.devices()),
            self._devices_known,
            self._no_build,
        )
        self._jobs.start(
            "build",
            lambda report, cancelled: describe_build(self._rooms.child),
            self._build_known,
            _note,
        )
        self._jobs.start(
            "gpus",
            lambda report, cancelled: see_gpus_at_start(self._rooms.child),
            self._gpus_seen,
            _note,
        )
        self.session.chat.start()
        self.session.library.refresh()
        self.desk.start(has_wish=self._arguments.model is not None or self._arguments.demo)
        if self._arguments.model is not None:
            self.session.library.add_paths([self._arguments.model])
        elif self._arguments.demo:
            self.session.library.sample.build()
        # On this thread: pyqtgraph's import touches every Qt class, and PySide makes those at
        # first use, which two threads at once do not survive.
        self._plot_later.start()
        if self._arguments.screenshot is not None:
            from moelauncher.gui.screenshot import Screenshot

            Screenshot(self.window, self._is_settled, self._arguments.screenshot)

    def _is_settled(self) -> bool:
        """Whether all that the arguments asked for is to be seen."""
        wants_model = self._arguments.model is not None or self._arguments.demo
        return self._devices_seen and (
            self.session.state is SessionState.SELECTED if wants_model else True
        )

    def _build_plot(self) -> None:
        self._plot_waits += 1
        if self.session.library.is_scanning and self._plot_waits < PLOT_WAITS:
            self._plot_later.start()
            return
        # Told to end meanwhile: the window needs no plots for its last moment.
        with contextlib.suppress(Cancelled):
            self.window.speed.build_plot(lambda: self._told_to_end)

    def _devices_known(self, devices: object) -> None:
        assert isinstance(devices, list)
        self._devices_seen = True
        self.desk.set_devices(devices)
        self.session.machine.set_devices(devices)
        self.session.known.set_devices(devices)
        gpus = default_gpus(devices)
        backends = sorted({gpu.backend for gpu in gpus})
        self.session.set_build(
            " + ".join(backends) or QCoreApplication.translate("app", "CPU only")
        )

    def _build_known(self, build: object) -> None:
        assert isinstance(build, InstalledBuild)
        _log.info("llama.cpp build: %s", build)
        if isinstance(build, InstalledBuild):
            self.session.known.set_build(build.version)

    def _no_build(self, error: LauncherError) -> None:
        self.window.status.set_message(error.sentence, "error")

    def _gpus_seen(self, sightings: object) -> None:
        assert isinstance(sightings, GpuSightings)
        self._advice.set_sightings(sightings)

    def _tell_of_gpu(self, text: str) -> None:
        _log.warning("%s", text)
        news = [self.session.chat.keeper.news]
        if self._last_run is not None:
            news.append(self._last_run.news)
        if self.window.status.message.text() in filter(None, news):
            return  # what went wrong weighs more, and the doctor tells of the GPU too
        offer = QCoreApplication.translate("app", "Doctor…")
        self.window.status.set_message(text, "warning", offer, self.desk.open_doctor)


def _sleep_source() -> SleepSource:
    if sys.platform == "win32":
        from moelauncher.meters.windows_sleep import WindowsSleep

        return WindowsSleep()
    if sys.platform == "linux":
        from moelauncher.gui.program.logind_sleep import LogindSleep

        return LogindSleep()
    return NoSleepSource()


def _note(error: LauncherError) -> None:
    _log.warning("%s %s", error.sentence, error.details)
