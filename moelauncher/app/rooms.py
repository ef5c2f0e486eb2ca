"""What the window is handed of the rooms that it must not know: engine, meters and hub.

In: folders and settings. Out: :class:`Services`, and the child process and the device watch that
stand behind them. Each service says on which thread it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from moelauncher.commands.examination import examine_anew
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.hub_files import Hub
from moelauncher.core.machine import BackendDevice
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.load_comparison import LoadComparison
from moelauncher.core.memory.placement import Placement
from moelauncher.core.memory.weight_probes import RefusedWeights
from moelauncher.core.paths import AppPaths
from moelauncher.core.program import settings as keys
from moelauncher.core.program.build_facts import build_facts
from moelauncher.core.program.releases import Release, releases_url
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.core.speed.same_answers import AnswersJob, AnswersProgress, SameAnswers
from moelauncher.core.speed.sweep import Search
from moelauncher.core.speed.tune_events import TuneCase, TuneEvent, TuneJob
from moelauncher.core.translate import tr
from moelauncher.engine.answers import run_answers
from moelauncher.engine.backend_modules import wish_for
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.broken_backends import BrokenBackends
from moelauncher.engine.child import Child, ChildUnavailableError
from moelauncher.engine.device_watch import DeviceWatch
from moelauncher.engine.dry_run import dry_run, make_acceptor
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.tune import run_tune
from moelauncher.engine.weight_support import refused_weights
from moelauncher.gui.services import Services, no_hub
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.meter_thread import default_sources
from moelauncher.meters.ram import available_ram_bytes
from moelauncher.meters.source import MeterSource


class Rooms:
    """The child process, the device watch, and the services made of them."""

    def __init__(self, paths: AppPaths, settings: Settings, state: StateFile) -> None:
        self._paths = paths
        self._settings = settings
        self._state = state
        wish_for(settings.get(keys.BACKENDS), settings.get(keys.CPU_VARIANT), os.environ)
        self.child = Child(broken=BrokenBackends(paths.broken_backends_file))
        self.watch = DeviceWatch(self.child)

    def snapshot_sources(self) -> Sequence[MeterSource]:
        """What the meter thread samples."""
        return default_sources(self.watch.devices)

    def compared(self, comparison: LoadComparison) -> None:
        """A load ended: from now on the devices are in use by this process."""
        if comparison.devices:
            self.watch.computes_here()

    def services(self) -> Services:
        """All of it, for the window."""
        child, settings = self.child, self._settings
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
            refused_weights=self._refused_weights,
        )

    def _dry_run(
        self,
        facts: ModelFacts,
        placement: Placement,
        context: ContextSettings,
        cancelled: Callable[[], bool],
    ) -> DryRunResult:
        """On a pool thread. What says nothing of the file is a reason, not a refusal."""
        if not self.watch.room_to_ask():
            return DryRunResult(
                problem=tr("Too little GPU memory is free to ask llama.cpp now; see the estimate.")
            )
        try:
            return dry_run(
                self.child, facts.path, placement, context, facts=facts, cancelled=cancelled
            )
        except ChildUnavailableError as error:
            return DryRunResult(problem=error.message)

    def _refused_weights(self, facts: ModelFacts, gpus: Sequence[str]) -> RefusedWeights:
        """On a pool thread."""
        if not self.watch.room_to_ask():
            return {}
        return refused_weights(self.child, facts, gpus)

    def _probe_devices(self) -> Sequence[BackendDevice]:
        """On a pool thread. By a fresh child: the one before may hold on to what is gone."""
        self.child.sleep()
        return self.watch.asked_anew()

    def _tune(
        self,
        job: TuneJob,
        sweep: Search,
        case_of: Callable[[int], TuneCase],
        cancelled: Callable[[], bool],
    ) -> Iterator[TuneEvent]:
        """A sweep, watched by meters of its own. A pool thread."""
        watch = MachineWatch(default_sources(self.watch.devices))
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


def _hub() -> Hub:
    # On a pool thread, and only when it is asked for: it takes its time to import.
    try:
        from moelauncher.hub.repository import Repositories
    except ImportError:
        return no_hub()
    return Repositories()


def _newest_release() -> Release:
    # On a pool thread, and only when it is asked for.
    from moelauncher.hub.release_check import newest_release

    return newest_release(releases_url(build_facts()))
