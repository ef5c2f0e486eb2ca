"""What the window needs from the other rooms, as plain callables and values.

The gui never imports the engine or the meters: ``app`` fills this in, tests fill it with
scripted ones. Each callable says on which thread it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moelauncher.core.engine_protocol import Engine
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.hub_files import Hub
from moelauncher.core.machine import BackendDevice
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.placement import Placement
from moelauncher.core.memory.weight_probes import RefusedWeights
from moelauncher.core.paths import AppPaths
from moelauncher.core.program.doctor_facts import DoctorFacts
from moelauncher.core.program.releases import Release
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.core.speed.device_bandwidth import BandwidthProbe
from moelauncher.core.speed.same_answers import (
    AnswersJob,
    AnswersProgress,
    AnswersRunner,
    SameAnswers,
)
from moelauncher.core.speed.tune_events import TuneRunner
from moelauncher.core.translate import tr


def no_hub() -> Hub:
    """Stands where nothing can be fetched."""
    raise LauncherError(
        tr("Models cannot be downloaded: huggingface_hub is not installed."),
        tr("Install it with: pip install huggingface_hub"),
    )


def no_release_site() -> Release:
    """Stands where nobody can be asked for a newer version."""
    raise LauncherError(tr("This copy of MoE Launcher cannot look for updates."))


def no_doctor(begins: Callable[[str], None], cancelled: Callable[[], bool]) -> DoctorFacts:
    """Stands where nothing looks at the machine."""
    raise LauncherError(tr("This copy of MoE Launcher has no doctor."))


def nothing_measured(names: Sequence[str], cancelled: Callable[[], bool]) -> Mapping[str, float]:
    """Stands where bandwidths cannot be measured."""
    return {}


def no_answers(
    job: AnswersJob, cancelled: Callable[[], bool]
) -> Iterator[AnswersProgress | SameAnswers]:
    """Stands where no answers can be compared."""
    return iter(())


def nothing_refused(facts: ModelFacts, gpus: Sequence[str]) -> RefusedWeights:
    """Stands where no GPU can be asked."""
    return {}


@dataclass(frozen=True)
class Services:
    """Everything that the window is wired to."""

    paths: AppPaths
    settings: Settings
    state: StateFile
    #: Window thread. The argument is called on the engine's thread when events wait.
    make_engine: Callable[[Callable[[], None]], Engine]
    #: Pool thread; asks llama.cpp in the child process. The last argument: was it cancelled?
    #: Raises LauncherError with the reason where llama.cpp refuses.
    dry_run: Callable[[ModelFacts, Placement, ContextSettings, Callable[[], bool]], DryRunResult]
    #: Pool thread; measures placements in child processes.
    tune: TuneRunner
    #: Pool thread; how fast devices stream weights, about a second each.
    measure_bandwidths: BandwidthProbe = nothing_measured

    #: Pool thread; holds answers under two settings against each other, in child processes.
    answers: AnswersRunner = no_answers
    #: Pool thread; what fetches models. Raises LauncherError where the part for it is missing.
    hub: Callable[[], Hub] = no_hub
    #: Pool thread; looks at the machine for some seconds. The first argument hears at what, the
    #: second says whether it was cancelled.
    examine: Callable[[Callable[[str], None], Callable[[], bool]], DoctorFacts] = no_doctor
    #: Pool thread; asks a fresh child process for the devices. Raises LauncherError.
    probe_devices: Callable[[], Sequence[BackendDevice]] = tuple
    #: Pool thread; the newest release. Raises LauncherError where nobody is reached.
    newest_release: Callable[[], Release] = no_release_site
    #: Pool thread; what GPUs (by llama.cpp's names) cannot compute with of a model.
    refused_weights: Callable[[ModelFacts, Sequence[str]], RefusedWeights] = nothing_refused
