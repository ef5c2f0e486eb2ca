"""A sweep ends in its time: scripted children on a clock of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement
from moelauncher.core.speed.measurement import Machine
from moelauncher.core.speed.sweep import Sweep
from moelauncher.core.speed.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneCase,
    TuneEvent,
    TuneJob,
)
from moelauncher.engine.tune import run_tune
from tests.helpers.no_watch import NoWatch

IN_RAM = Placement(0, 30, "first", (), (), 0, (-1,) * 31, (), ())


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class TimedChild:
    """Takes so many seconds for a visit; what takes longer than it may is not answered."""

    pid = 1

    def __init__(self, clock: Clock, visit_s: float, limits: list[float]) -> None:
        self._clock, self._visit_s, self._limits = clock, visit_s, limits

    def request(self, operation: str, parameters: object, **more: object) -> dict[str, object]:
        if operation == "bench_repeat":
            return {"prompt_tok_s": 50.0, "tok_s": 10.0, "prompt_tokens": 8}
        limit_s = more["timeout_s"]
        assert isinstance(limit_s, float)
        self._limits.append(limit_s)
        self._clock.now_s += min(self._visit_s, limit_s)
        if self._visit_s > limit_s:
            raise LauncherError("llama.cpp did not answer.")
        return {"notes": [], "vram_bytes": 1, "ram_bytes": 1}

    def close(self) -> None:
        pass


def tuned(budget_s: float, visits_s: Iterator[float]) -> tuple[list[TuneEvent], list[float]]:
    """The events of a sweep whose visits take that long, and how long each might have taken."""
    clock, limits = Clock(), list[float]()
    request = LoadRequest(Path("m.gguf"), IN_RAM, ContextSettings(n_ctx=64))
    events = run_tune(
        TuneJob("abc", "Tiny", Machine("here", "", ""), 8, 8, budget_s),
        Sweep(30, present=0),
        lambda stop: TuneCase(request),
        NoWatch(),
        make_child=lambda: TimedChild(clock, next(visits_s), limits),  # type: ignore[arg-type]
        clock=clock,
    )
    return list(events), limits


def end_of(events: list[TuneEvent]) -> Decided:
    end = events[-1]
    assert isinstance(end, Decided)
    return end


def measured(events: list[TuneEvent]) -> list[int]:
    return [event.stop for event in events if isinstance(event, Measured)]


def test_it_ends_with_a_decision_in_its_budget() -> None:
    events, _ = tuned(120.0, itertools.repeat(9.0))
    end = end_of(events)
    assert end.why == "budget"
    assert end.decision.best is not None and not end.decision.decided
    assert 100.0 < end.elapsed_s <= 120.0
    assert len(measured(events)) == 13


def test_a_long_first_visit_is_not_taken_for_the_usual_one() -> None:
    """The first of all fills caches and has a GPU's kernels compiled."""
    events, _ = tuned(120.0, itertools.chain((80.0,), itertools.repeat(8.0)))
    assert len(measured(events)) == 5
    assert not [event for event in events if isinstance(event, Failed)]
    assert end_of(events).elapsed_s <= 120.0


def test_the_first_visit_leaves_time_to_the_others() -> None:
    for budget_s, most_s in ((120.0, 90.0), (600.0, 300.0), (40.0, 30.0)):
        events, limits = tuned(budget_s, itertools.chain((9999.0,), itertools.repeat(2.0)))
        assert limits[0] == most_s
        assert [event.stop for event in events if isinstance(event, Failed)] == [0]
        assert len(measured(events)) >= 3


def test_a_visit_that_the_end_of_the_budget_cuts_off_is_no_failure() -> None:
    events, _ = tuned(60.04, itertools.chain((9.0,), itertools.repeat(9999.0)))
    assert end_of(events).why == "budget"
    assert end_of(events).decision.failed == ()
