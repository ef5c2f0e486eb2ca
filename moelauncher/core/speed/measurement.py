"""One measurement of speed, with all that has to be known to trust and to compare it.

In: what ran, where, and what the machine did meanwhile. Out: :class:`Measurement`, stored
whole and never averaged away. Pure; any thread.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.speed.conditions import Conditions

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts


#: Where a measurement comes from. A chat's replies are of any length, in any company.
TUNE, BENCH, CHAT, LLAMA_BENCH = "tune", "bench", "chat", "llama-bench"

#: How a model is divided: by expert layers, the slider's way, or by whole layers, as many on
#: the GPU as fit, the way of programs that do not set experts apart.
EXPERTS, LAYERS = "experts", "layers"


@dataclass(frozen=True)
class Setting:
    """What decides the speed beside the machine: where the model lies and how it runs."""

    cpu_moe: int
    which: str  # "first" | "last"
    n_gpu_layers: int
    gpus: str  # llama.cpp's device names, joined with "+"; "" without a GPU
    n_ctx: int
    kv_type: str
    n_ubatch: int
    n_threads: int | None  # None: the engine's own choice, see Measurement.threads
    use_mmap: bool
    tensor_split: tuple[float, ...] = ()  # one a GPU, as asked; () with one or none
    division: str = EXPERTS


@dataclass(frozen=True)
class Machine:
    """Where it ran. Empty texts are unknown."""

    name: str  # processor, GPUs, RAM: what people compare
    build: str  # llama-cpp-python's version and backend
    driver: str


@dataclass(frozen=True)
class Measurement:
    """One repeat. Rates are tokens a second, None where that part was not run.

    ``notes`` are sentences about what was seen meanwhile; ``disturbance`` is why it is left
    out of the median ("" where it counts).
    """

    model: str  # fingerprint, see :func:`model_fingerprint`
    model_name: str
    setting: Setting
    machine: Machine
    time_s: float  # since 1970
    n_prompt: int
    n_generated: int
    depth: int  # tokens in the context before the generated ones
    prompt_tok_s: float | None
    tok_s: float | None
    vram_bytes: int | None = None
    ram_bytes: int | None = None
    notes: tuple[str, ...] = ()
    disturbance: str = ""
    source: str = TUNE
    threads: int | None = None  # what was really used
    flash_attention: bool | None = None
    conditions: Conditions | None = None  # None: nobody looked

    @property
    def counts(self) -> bool:
        """Whether it belongs to the median."""
        return not self.disturbance and self.tok_s is not None

    @property
    def measured_here(self) -> bool:
        """Whether this program measured it for its own sake: no chat, nothing imported."""
        return self.source in (TUNE, BENCH)


@dataclass(frozen=True)
class StopSpeed:
    """All counted repeats at one slider stop: middle, and median absolute deviation."""

    stop: int
    rates: tuple[float, ...]
    prompt_rates: tuple[float, ...]
    n_disturbed: int

    @property
    def median(self) -> float:
        """tok/s, the middle of the counted repeats."""
        return statistics.median(self.rates)

    @property
    def mad(self) -> float:
        """Half of the repeats lie that close to the middle."""
        return statistics.median(abs(rate - self.median) for rate in self.rates)

    @property
    def prompt_median(self) -> float | None:
        """tok/s of the prompt, None where it was not measured."""
        return statistics.median(self.prompt_rates) if self.prompt_rates else None


def speeds_by_stop(
    measurements: Sequence[Measurement], *, dense: bool = False
) -> tuple[StopSpeed, ...]:
    """What this program measured of one model on one machine, stop by stop, in order.

    The stops of a dense model are its layers on the GPU. Rates of chats, imported ones and
    those of a plain layer split stand apart, see :mod:`moelauncher.core.speed.measured_rows`.
    """
    own = [
        one
        for one in measurements
        if one.measured_here and (dense or one.setting.division == EXPERTS)
    ]
    return stop_speeds(_fastest_settings(own, dense), dense=dense)


def _fastest_settings(measurements: Sequence[Measurement], dense: bool) -> list[Measurement]:
    """At each stop only the setting (threads, ubatch, context, ...) that was fastest there: a
    spread over several says nothing."""
    groups: dict[int, dict[Setting, list[Measurement]]] = {}
    for one in measurements:
        stop = one.setting.n_gpu_layers if dense else one.setting.cpu_moe
        groups.setdefault(stop, {}).setdefault(one.setting, []).append(one)

    def middle(group: Sequence[Measurement]) -> float:
        rates = [one.tok_s for one in group if one.counts and one.tok_s is not None]
        return statistics.median(rates) if rates else 0.0

    return [one for settings in groups.values() for one in max(settings.values(), key=middle)]


def stop_speeds(
    measurements: Sequence[Measurement], *, dense: bool = False
) -> tuple[StopSpeed, ...]:
    """The same for measurements of any source; prompt and decode may be in different ones."""
    stops: dict[int, list[Measurement]] = {}
    for one in measurements:
        stop = one.setting.n_gpu_layers if dense else one.setting.cpu_moe
        stops.setdefault(stop, []).append(one)
    found = []
    for stop in sorted(stops):
        rates = tuple(one.tok_s for one in stops[stop] if one.counts and one.tok_s is not None)
        if rates:
            prompts = tuple(
                one.prompt_tok_s
                for one in stops[stop]
                if not one.disturbance and one.prompt_tok_s is not None
            )
            n_disturbed = sum(1 for one in stops[stop] if one.disturbance)
            found.append(StopSpeed(stop, rates, prompts, n_disturbed))
    return tuple(found)


def model_fingerprint(facts: ModelFacts) -> str:
    """Names the same weights wherever the file lies: architecture, sizes and tensor table."""
    digest = hashlib.sha256()
    digest.update(f"{facts.arch}|{facts.size_bytes}|{facts.n_params}|{facts.name}".encode())
    for tensor in facts.tensors:
        digest.update(f"{tensor.name}|{tensor.ggml_type}|{tensor.n_bytes}\n".encode())
    return digest.hexdigest()[:32]
