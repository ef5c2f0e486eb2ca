"""The window's program: the one file that knows all rooms. It wires, and decides nothing.

``build(argv)`` makes everything and shows the window without entering the event loop;
``main(argv)`` is ``build`` plus the loop. What is slow to import (pyqtgraph, llama.cpp)
comes after the first paint.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QCoreApplication,
    QObject,
    QTimer,
    Signal,
)
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication

from moelauncher import __version__
from moelauncher.cli import base_folder
from moelauncher.commands.examination import examine_anew, see_gpus_at_start
from moelauncher.core import settings as keys
from moelauncher.core.build_facts import build_facts
from moelauncher.core.default_gpus import default_gpus
from moelauncher.core.doctor_facts import GpuSightings
from moelauncher.core.engine_protocol import ContextSettings
from moelauncher.core.errors import LauncherError
from moelauncher.core.forecast import DryRunResult
from moelauncher.core.hub_files import Hub
from moelauncher.core.load_comparison import LoadComparison
from moelauncher.core.log_file import LogSetup
from moelauncher.core.machine import BackendDevice
from moelauncher.core.model_facts import ModelFacts
from moelauncher.core.own_program import start_program
from moelauncher.core.paths import app_paths
from moelauncher.core.placement import Placement
from moelauncher.core.releases import Release, releases_url
from moelauncher.core.resources import resource_path
from moelauncher.core.same_answers import AnswersJob, AnswersProgress, SameAnswers
from moelauncher.core.session_state import SessionState
from moelauncher.core.settings import Settings
from moelauncher.core.sleep_source import NoSleepSource, SleepSource
from moelauncher.core.sweep import Search
from moelauncher.core.translate import install_translator, tr
from moelauncher.core.tune_events import TuneCase, TuneEvent, TuneJob
from moelauncher.core.window_state import StateFile
from moelauncher.engine.answers import run_answers
from moelauncher.engine.backend_modules import wish_for
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.broken_backends import BrokenBackends
from moelauncher.engine.child import Child, ChildUnavailableError
from moelauncher.engine.device_watch import DeviceWatch
from moelauncher.engine.dry_run import InstalledBuild, describe_build, dry_run, make_acceptor
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.llama_engine import ENGINE_THREAD, LlamaEngine
from moelauncher.engine.tune import run_tune
from moelauncher.gui.chat_pane import ChatPane
from moelauncher.gui.gpu_advice import GpuAdvice
from moelauncher.gui.job_threads import LEFT_BEHIND
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.last_run import LastRun
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.model_list_pane import ModelListPane
from moelauncher.gui.program_desk import ProgramDesk
from moelauncher.gui.safer_start import SaferStart
from moelauncher.gui.services import Services, no_hub
from moelauncher.gui.session import Session
from moelauncher.gui.theme import apply_theme
from moelauncher.gui.uncaught_errors import catch_what_is_left
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.meter_thread import MeterThread, default_sources
from moelauncher.meters.ram import available_ram_bytes

if TYPE_CHECKING:
    from moelauncher.gui.later_starts import LaterStarts

_log = logging.getLogger(__name__)

#: The plot's library takes half a second to import: what is to be read comes first.
PLOT_AFTER_MS = 150
#: It also waits for the list's first rows to be all there, but no longer than this.
PLOT_WAITS_MS = 2000

#: How long a thread may keep the interpreter while another one waits for it.
SWITCH_INTERVAL_S = 0.0005


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
        self._devices_seen = False
        self._last_run: LastRun | None = None
        self._later_starts: LaterStarts | None = None
        self._paths = app_paths(arguments.basedir)
        self._log = LogSetup(self._paths.log_file)
        self._settings = Settings.load(self._paths.settings_file)
        self._state = StateFile(self._paths.window_file)
        apply_theme(app, self._settings.get(keys.THEME))
        wish_for(
            self._settings.get(keys.BACKENDS), self._settings.get(keys.CPU_VARIANT), os.environ
        )
        self._child = Child(broken=BrokenBackends(self._paths.broken_backends_file))
        self._watch = DeviceWatch(self._child)
        self.window = MainWindow(ModelListPane(), ChatPane())
        services = self._services()
        self.session = Session(self.window, services, self)
        self._meters = MeterThread(default_sources(self._watch.devices), self.snapshot.emit)
        self._jobs = JobRunner(self)
        self.snapshot.connect(self.session.on_snapshot)
        self.snapshot.connect(self._watch.heard)
        self.session.outcome.accounts.compared.connect(self._compared)
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
        self._last_run = LastRun(self.session, self._paths.logs)
        before, news = self._last_run.before, self._last_run.news
        if before is None:
            return
        _log.warning("%s", news)
        safer = SaferStart(self.session, self.window.status, before)
        offer = safer.offer if safer.offered else ""
        self.window.status.set_message(news, "warning", offer, safer.take)

    def close(self) -> None:
        """Save, end threads and the child process. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._state.set("window", self.window.state())
        self._meters.stop()
        if self._later_starts is not None:
            self._later_starts.close()
        # First the child: a job or the engine may be waiting for its answer.
        self._child.close()
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

    def _services(self) -> Services:
        child, settings = self._child, self._settings
        kept = KeptStates(
            self._paths.chat_states_folder, lambda: settings.get(keys.KEPT_STATES_BYTES)
        )
        return Services(
            paths=self._paths,
            settings=self._settings,
            state=self._state,
            make_engine=lambda notify: LlamaEngine(
                notify, make_acceptor(child), available_ram_bytes, kept
            ),
            dry_run=self._dry_run,
            tune=self._tune,
            measure_bandwidths=self._measure_bandwidths,
            answers=self._answers,
            hub=_hub,
            probe_devices=self._probe_devices,
            examine=partial(examine_anew, self._paths, settings),
            newest_release=_newest_release,
        )

    def _dry_run(
        self,
        facts: ModelFacts,
        placement: Placement,
        context: ContextSettings,
        cancelled: Callable[[], bool],
    ) -> DryRunResult:
        """On a pool thread. What says nothing of the file is a reason, not a refusal."""
        if not self._watch.room_to_ask():
            return DryRunResult(
                problem=tr("Too little GPU memory is free to ask llama.cpp now; see the estimate.")
            )
        try:
            return dry_run(
                self._child, facts.path, placement, context, facts=facts, cancelled=cancelled
            )
        except ChildUnavailableError as error:
            return DryRunResult(problem=error.message)

    def _probe_devices(self) -> Sequence[BackendDevice]:
        """On a pool thread. By a fresh child: the one before may hold on to what is gone."""
        self._child.sleep()
        return self._watch.asked_anew()

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

    def _compared(self, comparison: LoadComparison) -> None:
        if comparison.devices:
            self._watch.computes_here()

    def _tune(
        self,
        job: TuneJob,
        sweep: Search,
        case_of: Callable[[int], TuneCase],
        cancelled: Callable[[], bool],
    ) -> Iterator[TuneEvent]:
        """A sweep, watched by meters of its own. A pool thread."""
        watch = MachineWatch(default_sources(self._watch.devices))
        broken = BrokenBackends(self._paths.broken_backends_file)
        try:
            yield from run_tune(
                job,
                sweep,
                case_of,
                watch,
                make_child=lambda: Child(broken=broken),
                cancelled=cancelled,
            )
        finally:
            watch.close()

    def _measure_bandwidths(
        self, names: Sequence[str], cancelled: Callable[[], bool]
    ) -> dict[str, float]:
        """In a child of its own: dry runs need not wait. A pool thread."""
        child = Child(broken=BrokenBackends(self._paths.broken_backends_file))
        try:
            return measure_bandwidths(child, names, cancelled=cancelled)
        finally:
            child.close()

    def _answers(
        self, job: AnswersJob, cancelled: Callable[[], bool]
    ) -> Iterator[AnswersProgress | SameAnswers]:
        """Two settings' answers, each in a child of its own. A pool thread."""
        broken = BrokenBackends(self._paths.broken_backends_file)
        return run_answers(job, make_child=lambda: Child(broken=broken), cancelled=cancelled)

    def _after_first_paint(self) -> None:
        if self._closed:
            return
        # Here, not at the top: the network's classes are of no use to the first paint.
        from moelauncher.gui.later_starts import LaterStarts

        self._later_starts = LaterStarts(self.window, self.session, self._paths.config)
        self.session.sleep.listen(_sleep_source())
        self._meters.start()
        self._jobs.start(
            "devices",
            lambda report, cancelled: list(self._watch.devices()),
            self._devices_known,
            self._no_build,
        )
        self._jobs.start(
            "build",
            lambda report, cancelled: describe_build(self._child),
            self._build_known,
            _note,
        )
        self._jobs.start(
            "gpus",
            lambda report, cancelled: see_gpus_at_start(self._child),
            self._gpus_seen,
            _note,
        )
        self.session.chat.start()
        self.session.library.refresh()
        self.desk.start(has_wish=self._arguments.model is not None or self._arguments.demo)
        if self._arguments.model is not None:
            self.session.library.add_paths([self._arguments.model])
        elif self._arguments.demo:
            self.session.library.select_sample()
        # On this thread: pyqtgraph's import touches every Qt class, and PySide makes those at
        # first use, which two threads at once do not survive.
        QTimer.singleShot(PLOT_AFTER_MS, self, self._build_plot)
        if self._arguments.screenshot is not None:
            from moelauncher.gui.screenshot import Screenshot

            Screenshot(self.window, self._is_settled, self._arguments.screenshot)

    def _is_settled(self) -> bool:
        """Whether all that the arguments asked for is to be seen."""
        wants_model = self._arguments.model is not None or self._arguments.demo
        return self._devices_seen and (
            self.session.state is SessionState.SELECTED if wants_model else True
        )

    def _build_plot(self, waited_ms: int = 0) -> None:
        if self._closed:
            return
        if self.session.library.is_scanning and waited_ms < PLOT_WAITS_MS:
            later = partial(self._build_plot, waited_ms + PLOT_AFTER_MS)
            QTimer.singleShot(PLOT_AFTER_MS, self, later)
            return
        self.window.speed.build_plot()

    def _devices_known(self, devices: object) -> None:
        assert isinstance(devices, list)
        self._devices_seen = True
        self.desk.set_devices(devices)
        self.session.planner.set_devices(devices)
        self.session.tuning.set_devices(devices)
        gpus = default_gpus(devices)
        backends = sorted({gpu.backend for gpu in gpus})
        self.session.set_build(
            " + ".join(backends) or QCoreApplication.translate("app", "CPU only")
        )

    def _build_known(self, build: object) -> None:
        assert isinstance(build, InstalledBuild)
        _log.info("llama.cpp build: %s", build)
        if isinstance(build, InstalledBuild):
            self.session.tuning.set_build(build.version)

    def _no_build(self, error: LauncherError) -> None:
        self.window.status.set_message(error.sentence, "error")

    def _gpus_seen(self, sightings: object) -> None:
        assert isinstance(sightings, GpuSightings)
        self._advice.set_sightings(sightings)

    def _tell_of_gpu(self, text: str) -> None:
        _log.warning("%s", text)
        if self._last_run is not None and self.window.status.message.text() == self._last_run.news:
            return  # what went wrong weighs more, and the doctor tells of the GPU too
        offer = QCoreApplication.translate("app", "Doctor…")
        self.window.status.set_message(text, "warning", offer, self.desk.open_doctor)


def build(argv: Sequence[str]) -> Program:
    """The whole program, its window shown, without the event loop.

    ``argv`` as on the command line, with or without the program's own name in front.
    Exits with 2 on wrong arguments. The main thread.
    """
    arguments = _arguments(argv)
    # The engine's thread needs the interpreter for some microseconds at every token. With the
    # usual 5 ms, painting made it wait as long: 0.73 of the decode rate instead of 0.9 and more.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    app = _application()
    program = Program(app, arguments)
    program.start()
    return program


def _application() -> QApplication:
    """The one application object, made at the first call."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["moelauncher"])
    app.setApplicationName("moelauncher")
    app.setApplicationDisplayName("MoE Launcher")
    app.setApplicationVersion(__version__)
    QGuiApplication.setDesktopFileName("moelauncher")
    app.setWindowIcon(QIcon(str(resource_path("icons/moelauncher.svg"))))
    install_translator(partial(QCoreApplication.translate, "core"))
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and run until it is closed; returns the exit status."""
    argv = sys.argv if argv is None else argv
    if _handed_over(_arguments(argv)):
        return 0
    program = build(argv)
    catch_what_is_left(program.window.status)
    program.watch_run()
    # Ctrl+C in the terminal closes the window as its frame's button does.
    signal.signal(signal.SIGINT, lambda *_: program.window.close())
    try:
        status = program.app.exec()
    finally:
        program.close()
    if LEFT_BEHIND or any(thread.name == ENGINE_THREAD for thread in threading.enumerate()):
        # All is saved. A thread that hangs in the system may come back while the interpreter
        # takes Qt apart under it.
        os._exit(status)
    return status


def _handed_over(arguments: argparse.Namespace) -> bool:
    """Whether a window that is open already took the arguments."""
    if arguments.screenshot is not None:
        return False
    from moelauncher.gui.single_instance import hand_over, socket_name

    _application()
    models = [] if arguments.model is None else [arguments.model]
    return hand_over(socket_name(app_paths(arguments.basedir).config), models, demo=arguments.demo)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    given = list(argv)
    if given and Path(given[0]).stem.lower() in ("moelauncher", "moelauncher-window", "__main__"):
        del given[0]
    parser = argparse.ArgumentParser(prog="moelauncher", add_help=True)
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL.gguf")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--basedir", type=base_folder, metavar="DIR")
    parser.add_argument("--screenshot", type=Path, metavar="FILE.png")
    return parser.parse_args(given)


def _hub() -> Hub:
    # On a pool thread, and only when it is asked for: it takes its time to import.
    try:
        from moelauncher.hub.repository import Repositories
    except ImportError:
        return no_hub()
    return Repositories()


def _sleep_source() -> SleepSource:
    if sys.platform == "win32":
        from moelauncher.meters.windows_sleep import WindowsSleep

        return WindowsSleep()
    if sys.platform == "linux":
        from moelauncher.gui.logind_sleep import LogindSleep

        return LogindSleep()
    return NoSleepSource()


def _newest_release() -> Release:
    # On a pool thread, and only when it is asked for.
    from moelauncher.hub.release_check import newest_release

    return newest_release(releases_url(build_facts()))


def _note(error: LauncherError) -> None:
    _log.warning("%s %s", error.sentence, error.details)
