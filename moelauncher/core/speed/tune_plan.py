"""The stops of a sweep on one machine: which placements they are, and which fit.

In: facts, machine, the choices in view. Out: :class:`TunePlan`. Pure; any thread; some
milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine, forecast_on, gpus_fit
from moelauncher.core.memory.launch_plan import LaunchChoices, placed
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.placement import Placement, expert_stops, same_place
from moelauncher.core.speed.sweep import Sweep


@dataclass(frozen=True)
class TuneStop:
    """One stop: expert layers on the CPU, or for a dense model layers off the GPU."""

    choices: LaunchChoices
    placement: Placement
    forecast: MemoryForecast
    fits: bool


@dataclass(frozen=True)
class TunePlan:
    """All stops, the user's own among them."""

    facts: ModelFacts
    stops: tuple[TuneStop, ...]
    present: int
    machine: Machine

    @property
    def dense(self) -> bool:
        """Whether the stops are layers off the GPU: the model has no experts."""
        return not expert_stops(self.facts)

    def index_of(self, label: int) -> int:
        """The stop that people call ``label``: expert layers on the CPU, or for a dense model
        layers on the GPU."""
        return len(self.stops) - 1 - label if self.dense else label

    @property
    def one_place(self) -> bool:
        """Whether every stop is the same placement: no GPU, nothing to choose."""
        return all(same_place(stop.placement, self.stops[0].placement) for stop in self.stops)

    def sweep(
        self,
        *,
        n_repeats: int = 3,
        predicted: Sequence[float | None] = (),
        limit: int | None = None,
    ) -> Sweep:
        """The search over these stops."""
        # Of stops that are one place the user's own stands for all, else the lowest.
        order = [self.present, *range(len(self.stops))]
        same_as = [
            next(
                other for other in order if same_place(self.stops[other].placement, stop.placement)
            )
            for stop in self.stops
        ]
        return Sweep(
            len(self.stops) - 1,
            present=self.present,
            # The user's own setting is measured even where the forecast says no.
            fits=[stop.fits or index == self.present for index, stop in enumerate(self.stops)],
            predicted=predicted,
            same_as=same_as,
            n_repeats=n_repeats,
            limit=limit,
        )

    def lowest_fit(self, choices: LaunchChoices, *, must_fit: bool = True) -> TuneStop | None:
        """``choices`` at their stop, or where that does not fit at the next one that does, with
        more in main memory; None where there is none. ``must_fit`` false: at their stop."""
        here = self.index_of((choices.n_gpu_layers or 0) if self.dense else choices.cpu_moe)
        for index in range(here, len(self.stops)):
            stop = _stop_at(self.facts, self.machine, choices, index, len(self.stops) - 1)
            ram_holds_it = stop.forecast.ram.fits or stop.forecast.streams_from_disk
            if (stop.fits and ram_holds_it) or not must_fit:
                return stop
        return None

    def request(self, index: int) -> LoadRequest:
        """What to load at that stop."""
        return self.request_of(self.stops[index])

    def request_of(self, stop: TuneStop) -> LoadRequest:
        """What to load for ``stop``, levers included."""
        return LoadRequest(
            self.facts.path,
            stop.placement,
            stop.choices.context,
            use_mmap=stop.choices.use_mmap,
            weights_fit_ram=not stop.forecast.streams_from_disk,
            expected_gpu_weights={gpu.name: gpu.weights_bytes for gpu in stop.forecast.gpus},
        )


def tune_plan(facts: ModelFacts, machine: Machine, choices: LaunchChoices) -> TunePlan:
    """The stops for ``choices``' context and options; ``machine`` with our own share free."""
    last = len(expert_stops(facts))
    dense = last == 0
    count = facts.n_layer_all + 1 if dense else last
    stops = [_stop_at(facts, machine, choices, n, count) for n in range(count + 1)]
    present = count - (choices.n_gpu_layers or 0) if dense else choices.cpu_moe
    return TunePlan(facts, tuple(stops), min(max(present, 0), count), machine)


def _stop_at(
    facts: ModelFacts, machine: Machine, choices: LaunchChoices, n: int, count: int
) -> TuneStop:
    """Stop ``n`` of 0..``count``."""
    dense = not expert_stops(facts)
    chosen = replace(
        choices,
        cpu_moe=0 if dense else n,
        n_gpu_layers=count - n if dense else choices.n_gpu_layers,
    )
    placement = placed(facts, chosen, machine)
    result = forecast_on(facts, placement, chosen.context, machine, use_mmap=chosen.use_mmap)
    return TuneStop(chosen, placement, result, gpus_fit(result))
