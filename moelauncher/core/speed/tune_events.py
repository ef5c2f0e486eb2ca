"""What a sweep is asked and what it tells while it runs. Pure values; any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.speed.measurement import EXPERTS, Machine, Measurement, Setting
from moelauncher.core.speed.sweep import Search, SweepDecision


@dataclass(frozen=True)
class TuneJob:
    """What is measured. ``n_prompt`` tokens are read, ``n_generate`` written behind them."""

    model: str  # fingerprint
    model_name: str
    machine: Machine
    n_prompt: int = 512
    n_generate: int = 128
    budget_s: float = 600.0


@dataclass(frozen=True)
class TuneCase:
    """One stop. ``ram_weights_bytes`` is the plan's share of main memory; ``division`` as in
    Setting."""

    request: LoadRequest
    ram_weights_bytes: int | None = None
    division: str = EXPERTS


@dataclass(frozen=True)
class TuneEvent:
    """Root of what is told."""


@dataclass(frozen=True)
class Visiting(TuneEvent):
    """A stop is being loaded and measured; ``left_s`` is about how long all will still take."""

    stop: int
    n_done: int
    n_most: int
    left_s: float


@dataclass(frozen=True)
class Measured(TuneEvent):
    """A visit ended with numbers."""

    stop: int
    measurement: Measurement


@dataclass(frozen=True)
class Failed(TuneEvent):
    """A visit ended without: the stop is out, the sweep goes on."""

    stop: int
    error: LauncherError


@dataclass(frozen=True)
class Decided(TuneEvent):
    """The end: decided, out of budget, or cancelled (``why``: "", "budget", "cancelled")."""

    decision: SweepDecision
    why: str
    elapsed_s: float
    busy_note: str = ""


#: Runs a sweep: job, search, the case of each stop, "was it cancelled?". Blocks.
TuneRunner = Callable[
    [TuneJob, Search, Callable[[int], TuneCase], Callable[[], bool]], Iterator[TuneEvent]
]


def setting_of(request: LoadRequest, division: str = EXPERTS) -> Setting:
    """What the measurement store keeps of a load request; ``division`` as in Setting."""
    placement = request.placement
    return Setting(
        cpu_moe=placement.cpu_moe,
        which=placement.which,
        n_gpu_layers=placement.n_gpu_layers,
        gpus="+".join(device.name for device in placement.devices),
        n_ctx=request.context.n_ctx,
        kv_type=request.context.kv_type,
        n_ubatch=request.context.n_ubatch,
        n_threads=request.context.n_threads,
        use_mmap=request.use_mmap,
        tensor_split=placement.tensor_split,
        division=division,
    )


def choices_of(setting: Setting, *, dense: bool) -> LaunchChoices:
    """The other way round: what to choose to run a stored setting again."""
    return LaunchChoices(
        cpu_moe=setting.cpu_moe,
        n_gpu_layers=setting.n_gpu_layers if dense else None,
        which=setting.which,
        context=ContextSettings(
            n_ctx=setting.n_ctx,
            kv_type=setting.kv_type,
            n_ubatch=setting.n_ubatch,
            n_threads=setting.n_threads,
        ),
        use_mmap=setting.use_mmap,
    )
