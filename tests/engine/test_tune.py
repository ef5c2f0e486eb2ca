"""A whole sweep with real children on a tiny model: what goes wrong costs one row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.helper_python import helper_python
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.speed.conditions import Conditions
from moelauncher.core.speed.measurement import Machine as MachineName
from moelauncher.core.speed.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneCase,
    TuneEvent,
    TuneJob,
)
from moelauncher.core.speed.tune_plan import TunePlan, tune_plan
from moelauncher.engine import tune
from moelauncher.engine.child import Child
from moelauncher.engine.child_bench import FAULT_VARIABLE
from moelauncher.engine.tune import run_tune
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.no_watch import NoWatch

CONTEXT = ContextSettings(n_ctx=256, n_ubatch=32, n_threads=1)


@pytest.fixture
def plan(tmp_path: Path) -> TunePlan:
    facts = facts_of([read_header(write_tiny_model(tmp_path / "tiny.gguf", "moe"))])
    return tune_plan(facts, Machine(), LaunchChoices(1, None, "first", CONTEXT, True))


def job(budget_s: float = 300.0) -> TuneJob:
    return TuneJob("abc", "Tiny", MachineName("here", "a build", ""), 16, 8, budget_s)


class Busy(NoWatch):
    """Other programs are busy during every second run."""

    def __init__(self) -> None:
        self._loads = itertools.cycle((0.0, 0.9))

    def begin(self, pid: int) -> Callable[[], Conditions]:
        assert pid > 0
        return lambda: Conditions(others_cpu=next(self._loads))


def run(plan: TunePlan, budget_s: float = 300.0, **more: object) -> list[TuneEvent]:
    # Without a GPU all stops are one place: here each is to be visited all the same.
    sweep = plan.sweep(limit=6)
    if more.pop("every_stop", False):
        from moelauncher.core.speed.sweep import Sweep

        sweep = Sweep(len(plan.stops) - 1, present=plan.present, limit=6)
    watch = more.pop("watch", NoWatch())
    before_visit = more.pop("before_visit", lambda stop: None)

    def case_of(stop: int) -> TuneCase:
        before_visit(stop)  # type: ignore[operator]
        return TuneCase(plan.request(stop), 1000)

    return list(
        run_tune(
            job(budget_s),
            sweep,
            case_of,
            watch,  # type: ignore[arg-type]
            **more,  # type: ignore[arg-type]
        )
    )


def measured(events: list[TuneEvent]) -> list[Measured]:
    return [event for event in events if isinstance(event, Measured)]


def end_of(events: list[TuneEvent]) -> Decided:
    end = events[-1]
    assert isinstance(end, Decided)
    return end


def test_it_ends_with_a_decision_and_whole_measurements(plan: TunePlan) -> None:
    events = run(plan)
    end = end_of(events)
    assert (end.decision.best, end.why) == (1, "")
    assert end.decision.decided
    for event in measured(events):
        one = event.measurement
        assert one.tok_s and one.prompt_tok_s
        assert (one.n_prompt, one.n_generated, one.depth) == (16, 8, 16)
        assert one.setting.cpu_moe == 1
        assert one.setting.n_ctx == 256
        assert one.machine.name == "here"
        assert one.ram_bytes


@pytest.mark.parametrize("fault", ["abort:0", "lost:0"])
def test_an_abort_costs_one_row(
    plan: TunePlan, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, fault)
    events = run(plan, every_stop=True)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.stop == 0
    assert end_of(events).decision.failed == (0,)
    assert end_of(events).decision.best in (1, 2, 3, 4)


def test_a_hang_costs_one_row(plan: TunePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "hang:1")

    def little_time_for_the_one_that_hangs(stop: int) -> None:
        monkeypatch.setattr(tune, "VISIT_LIMIT_S", 2.0 if stop == 1 else 900.0)

    events = run(plan, every_stop=True, before_visit=little_time_for_the_one_that_hangs)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.stop == 1
    assert "answer" in failed.error.message
    assert end_of(events).decision.best not in (None, 1)


@pytest.mark.parametrize(
    "code",
    ["print('{]' * 50)", "print('[1, 2]\\n{\"id\": 1}')", "import os; os._exit(3)", "1/0"],
)
def test_a_child_that_talks_nonsense_or_dies(plan: TunePlan, code: str) -> None:
    events = run(plan, make_child=lambda: Child(command=[helper_python(), "-c", code]))
    end = end_of(events)
    assert end.decision.best is None
    assert end.decision.failed == (1,)
    assert all(event.error.message for event in events if isinstance(event, Failed))


def test_cancel_keeps_what_was_measured(plan: TunePlan) -> None:
    seen: list[TuneEvent] = []
    for event in run_tune(
        job(),
        plan.sweep(),
        lambda stop: TuneCase(plan.request(stop)),
        NoWatch(),
        cancelled=lambda: bool(measured(seen)),
    ):
        seen.append(event)
    assert len(measured(seen)) == 1
    assert end_of(seen).why == "cancelled"
    assert end_of(seen).decision.best == 1


def test_disturbed_runs_are_told_and_left_out(plan: TunePlan) -> None:
    events = run(plan, watch=Busy())
    disturbed = [event for event in measured(events) if event.measurement.disturbance]
    assert disturbed
    counted = [e.measurement.tok_s for e in measured(events) if not e.measurement.disturbance]
    assert end_of(events).decision.rates[1] in counted


class Asleep(NoWatch):
    """The computer sleeps during the first run."""

    def __init__(self) -> None:
        self._naps = iter((600.0,))

    def begin(self, pid: int) -> Callable[[], Conditions]:
        return lambda: Conditions(slept_s=next(self._naps, 0.0))


def test_sleep_in_mid_run_costs_that_repeat(plan: TunePlan) -> None:
    events = run(plan, watch=Asleep())
    first, *others = [event.measurement for event in measured(events)]
    assert first.disturbance == "The computer slept for 600 s."
    assert others and not any(one.disturbance for one in others)
    assert end_of(events).decision.best == 1


def test_a_file_that_is_gone_is_a_row(plan: TunePlan) -> None:
    plan.facts.path.unlink()
    events = run(plan)
    assert [event for event in events if isinstance(event, Failed)]
    assert end_of(events).decision.best is None
