"""Tune's search with one row more: the plain layer split that people come from.

In: the search over stops and levers, the layer split's stop where it is wanted. Out: a search
that visits it among the others, so that a machine that slowly changes treats both alike. It is
for comparison only: what is decided stays the inner search's. Pure; one thread.
"""

from __future__ import annotations

import statistics

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.auto_placement import forecast_on, gpus_fit
from moelauncher.core.memory.layer_split import layer_split
from moelauncher.core.speed.lever_search import LeverSearch
from moelauncher.core.speed.measurement import EXPERTS, LAYERS
from moelauncher.core.speed.sweep import SweepDecision
from moelauncher.core.speed.tune_events import TuneCase
from moelauncher.core.speed.tune_plan import TunePlan, TuneStop
from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

#: The number of the layer split among the settings of a search.
LAYER_SPLIT = -1

#: It is visited after the first of the others, and then after each so many.
_EVERY = 3


def split_stop(plan: TunePlan) -> TuneStop | None:
    """The layer split under the plan's own settings; None where there is none of its own."""
    choices, facts, machine = plan.stops[0].choices, plan.facts, plan.machine
    placement = layer_split(facts, machine, choices.context, use_mmap=choices.use_mmap)
    if placement is None:
        return None
    result = forecast_on(facts, placement, choices.context, machine, use_mmap=choices.use_mmap)
    return TuneStop(choices, placement, result, gpus_fit(result))


class SplitSearch:
    """A :class:`moelauncher.core.speed.sweep.Search`; without ``split`` it is the inner one."""

    def __init__(
        self, inner: LeverSearch, split: TuneStop | None = None, *, n_repeats: int = 3
    ) -> None:
        self._inner = inner
        self._split = split
        self._wanted = n_repeats if split is not None else 0
        self._rates: list[float] = []
        self._n_visits = 0

    # Search

    @property
    def n_visits(self) -> int:
        """See :class:`Search`."""
        return self._inner.n_visits + self._n_visits

    @property
    def limit(self) -> int:
        """See :class:`Search`."""
        return self._inner.limit + max(self._wanted, self._n_visits)

    def next_stop(self) -> int | None:
        """See :class:`Search`."""
        stop = self._inner.next_stop()
        open_ = self._n_visits < self._wanted
        due = self._inner.n_visits >= 1 + _EVERY * self._n_visits
        return LAYER_SPLIT if open_ and (due or stop is None) else stop

    def add(
        self,
        stop: int,
        rate: float,
        *,
        disturbed: bool = False,
        prompt_rate: float | None = None,
    ) -> None:
        """See :class:`Search`."""
        if stop != LAYER_SPLIT:
            self._inner.add(stop, rate, disturbed=disturbed, prompt_rate=prompt_rate)
            return
        self._n_visits += 1
        if not disturbed:
            self._rates.append(rate)

    def fail(self, stop: int) -> None:
        """See :class:`Search`; a layer split that does not run is not tried again."""
        if stop != LAYER_SPLIT:
            self._inner.fail(stop)
            return
        self._n_visits += 1
        self._wanted = 0

    def decision(self) -> SweepDecision:
        """See :class:`Search`."""
        return self._inner.decision()

    # What a setting is

    @property
    def plan(self) -> TunePlan:
        """The stops without levers."""
        return self._inner.plan

    def setting(self, number: int) -> TuneStop:
        """The stop, levers included."""
        if number == LAYER_SPLIT and self._split is not None:
            return self._split
        return self._inner.setting(number)

    def request(self, number: int) -> LoadRequest:
        """What to load for it."""
        return self.plan.request_of(self.setting(number))

    def case(self, number: int) -> TuneCase:
        """What a child is asked to measure."""
        return TuneCase(
            self.request(number),
            self.setting(number).forecast.ram.weights_bytes,
            LAYERS if number == LAYER_SPLIT else EXPERTS,
        )

    def difference(self, number: int) -> str:
        """How it differs from the user's own levers; "" where it does not."""
        if number == LAYER_SPLIT:
            n_layers = self.setting(number).placement.n_gpu_layers
            return tr("layer split: {n} layers on the GPU").format(n=n_layers)
        return self._inner.difference(number)

    # What the comparison says

    @property
    def split_rate(self) -> float | None:
        """tok/s of the layer split, the middle of its repeats; None where none counts."""
        return statistics.median(self._rates) if self._rates else None

    def split_text(self) -> str:
        """A sentence that holds the best against the layer split; "" where there is nothing."""
        decision, rate = self.decision(), self.split_rate
        if rate is None or decision.best is None or self._split is None:
            return ""
        n_layers = self._split.placement.n_gpu_layers
        text = tr("A plain layer split ({n} layers on the GPU) gives {rate}").format(
            n=n_layers, rate=format_rate(rate)
        )
        gain = decision.rates[decision.best] / rate - 1
        if gain > 0:
            text += tr(": this is {n:.0f} % more").format(n=100 * gain)
        return text + "."
