"""The whole search: stops first, then threads, ubatch, mmap and which layers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.speed.lever_search import LeverSearch, TurnLengths
from moelauncher.core.speed.levers import LEVERS, MMAP, THREADS, UBATCH, WHICH, coarse_values
from moelauncher.core.speed.sweep import SweepDecision
from moelauncher.core.speed.tune_plan import TunePlan, tune_plan
from moelauncher.core.speed.tune_text import decision_text
from tests.helpers.planned_models import gpu, truth_facts

CORES = 16
CHOICES = LaunchChoices(40, None, "first", ContextSettings(n_ctx=4096, n_ubatch=512), True)

#: tok/s of reply and prompt for a setting.
Speed = Callable[[LaunchChoices], tuple[float, float]]


@pytest.fixture(scope="module")
def plan() -> TunePlan:
    machine = Machine((gpu(11.5),), ram_free_bytes=60 << 30)
    return tune_plan(truth_facts("qwen3.5-35b-a3b-20.61gib"), machine, CHOICES)


def search_of(plan: TunePlan, levers: tuple[str, ...]) -> LeverSearch:
    return LeverSearch(
        plan, plan.sweep(), levers, TurnLengths(512, 128), logical_cores=CORES, n_repeats=3
    )


def play(
    plan: TunePlan, levers: tuple[str, ...], speed: Speed, *, noise: float = 0.0, seed: int = 0
) -> tuple[LeverSearch, SweepDecision, list[int]]:
    search, dice, visits = search_of(plan, levers), random.Random(seed), []
    while (number := search.next_stop()) is not None:
        visits.append(number)
        assert search.limit >= search.n_visits
        rate, prompt = speed(search.setting(number).choices)
        scatter = 1 + dice.gauss(0, noise)
        search.add(number, rate * scatter, prompt_rate=prompt * scatter)
        assert len(visits) < 400
    assert search.n_visits == len(visits)
    return search, search.decision(), visits


def likely(choices: LaunchChoices) -> tuple[float, float]:
    """Fastest with 8 threads, unmapped, and a ubatch of 2048."""
    rate = 60 - 0.5 * choices.cpu_moe
    rate *= 1 - 0.02 * abs((choices.context.n_threads or 7) - 8)
    rate *= 1.0 if choices.use_mmap else 1.08
    prompt = 300 * (choices.context.n_ubatch / 512) ** 0.5
    return rate, prompt if choices.context.n_ubatch <= 2048 else 0.7 * prompt


def test_without_levers_it_is_the_sweep(plan: TunePlan) -> None:
    search, decision, visits = play(plan, (), likely)
    assert decision.setting == decision.best
    assert decision.decided
    assert max(visits) <= 40
    assert search.difference(decision.best or 0) == ""


@pytest.mark.parametrize("seed", range(3))
def test_each_lever_is_moved_to_where_it_is_fastest(plan: TunePlan, seed: int) -> None:
    search, decision, _ = play(plan, LEVERS, likely, noise=0.01, seed=seed)
    assert decision.setting is not None
    taken = search.setting(decision.setting).choices
    assert taken.context.n_threads in (None, 7, 8, 9)
    assert taken.context.n_ubatch in (1024, 2048)
    assert not taken.use_mmap
    assert taken.which == "first", "what makes no difference stays as it was"
    assert search.request(decision.setting).use_mmap is False
    text = decision_text(decision)
    assert "Ubatch" in text
    assert "not mapped" in text


def test_what_makes_no_difference_stays_and_is_said(plan: TunePlan) -> None:
    search, decision, _ = play(plan, (THREADS, MMAP), lambda c: (50.0 - 0.4 * c.cpu_moe, 300.0))
    assert decision.setting == decision.best
    assert len(decision.lever_notes) == 2
    assert all("no other value" in note for note in decision.lever_notes)
    assert search.difference(decision.best or 0) == ""


def test_close_values_are_visited_in_turn(plan: TunePlan) -> None:
    _, _, visits = play(plan, (UBATCH,), lambda c: (50.0 - 0.4 * c.cpu_moe, 300.0))
    race = visits[next(n for n, visit in enumerate(visits) if visit > 40) - 1 :]
    assert all(a != b for a, b in itertools.pairwise(race))


def test_a_value_that_does_not_run_is_left_out(plan: TunePlan) -> None:
    search = search_of(plan, (MMAP,))
    while (number := search.next_stop()) is not None:
        choices = search.setting(number).choices
        if choices.use_mmap:
            search.add(number, 60 - 0.5 * choices.cpu_moe, prompt_rate=300.0)
        else:
            search.fail(number)
    decision = search.decision()
    assert decision.setting == decision.best


def test_a_larger_ubatch_takes_the_stop_at_which_it_fits(plan: TunePlan) -> None:
    search, decision, _ = play(
        plan, (UBATCH,), lambda c: (60 - 0.5 * c.cpu_moe, 3.0 * c.context.n_ubatch / 512)
    )
    assert decision.setting is not None and decision.best is not None
    taken = search.setting(decision.setting)
    assert taken.choices.context.n_ubatch == 4096
    assert taken.fits
    assert taken.choices.cpu_moe > decision.best


def test_nothing_runs(plan: TunePlan) -> None:
    search = search_of(plan, LEVERS)
    while (number := search.next_stop()) is not None:
        search.fail(number)
    assert search.decision().setting is None


def test_disturbed_visits_do_not_hold_it_up(plan: TunePlan) -> None:
    search = search_of(plan, (MMAP, WHICH))
    for _ in range(300):
        number = search.next_stop()
        if number is None:
            break
        search.add(number, 20.0, prompt_rate=100.0, disturbed=True)
    else:
        pytest.fail("it never ends")


def test_values_worth_a_try() -> None:
    assert coarse_values(CHOICES, THREADS, 16) == [16, 12, 8, 4]
    assert coarse_values(CHOICES, THREADS, 1) == [1]
    assert coarse_values(CHOICES, UBATCH, 16) == [128, 256, 1024, 2048, 4096]
    assert coarse_values(CHOICES, MMAP, 16) == [False]
    assert coarse_values(CHOICES, WHICH, 16) == ["last"]
