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

if TYPE_CHECKING:
    from moelauncher.core.model_facts import ModelFacts


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
    n_threads: int | None
    use_mmap: bool


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
    source: str = "tune"  # "tune" | "bench" | "llama-bench"

    @property
    def counts(self) -> bool:
        """Whether it belongs to the median."""
        return not self.disturbance and self.tok_s is not None


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
    """The measurements of one model on one machine, stop by stop, in order.

    The stops of a dense model are its layers on the GPU.
    """
    stops: dict[int, list[Measurement]] = {}
    for one in measurements:
        stop = one.setting.n_gpu_layers if dense else one.setting.cpu_moe
        stops.setdefault(stop, []).append(one)
    found = []
    for stop in sorted(stops):
        counted = [one for one in stops[stop] if one.counts]
        if counted:
            found.append(
                StopSpeed(
                    stop,
                    tuple(one.tok_s for one in counted if one.tok_s is not None),
                    tuple(one.prompt_tok_s for one in counted if one.prompt_tok_s is not None),
                    sum(1 for one in stops[stop] if one.disturbance),
                )
            )
    return tuple(found)


def model_fingerprint(facts: ModelFacts) -> str:
    """Names the same weights wherever the file lies: architecture, sizes and tensor table."""
    digest = hashlib.sha256()
    digest.update(f"{facts.arch}|{facts.size_bytes}|{facts.n_params}|{facts.name}".encode())
    for tensor in facts.tensors:
        digest.update(f"{tensor.name}|{tensor.ggml_type}|{tensor.n_bytes}\n".encode())
    return digest.hexdigest()[:32]
