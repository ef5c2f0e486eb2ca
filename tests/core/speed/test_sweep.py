"""The search for the best stop, on recorded machines with noise."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelauncher.core.speed.speed_curves import CurveCrowd, Visits
from moelauncher.core.speed.sweep import Sweep
from tests.helpers.sweep_machines import (
    CURVES,
    FAMILIES,
    FLAT,
    PLATEAU,
    SPILLED,
    WALL,
    Noise,
    drawn_curve,
    is_good,
    play,
)

#: The benchmark plays a thousand; here a few tell whether something broke.
SEEDS = 8


@pytest.mark.parametrize("name", CURVES)
def test_the_choice_is_good_and_cheap(name: str) -> None:
    curve = CURVES[name]
    sweeps = [play(curve, seed, Noise(load=0.025)) for seed in range(SEEDS)]
    good = sum(is_good(curve, sweep.decision.best) for sweep in sweeps)
    assert good >= SEEDS - 1
    assert max(len(sweep.visits) for sweep in sweeps) <= 3 * len(curve) / 4


@pytest.mark.parametrize("family", FAMILIES)
def test_machines_that_nobody_recorded(family: str) -> None:
    """Other sizes, other places for peak, cliff and wall, each drawn by chance."""
    curves = [drawn_curve(family, seed) for seed in range(4)]
    sweeps = [play(curve, seed, Noise(load=0.02)) for seed, curve in enumerate(curves)]
    good = sum(is_good(c, s.decision.best) for c, s in zip(curves, sweeps, strict=True))
    assert good >= 3
    for curve, sweep in zip(curves, sweeps, strict=True):
        assert len(sweep.visits) <= 3 * len(curve) / 4


def test_a_plateau_is_called_one() -> None:
    ties = [play(PLATEAU, seed).decision for seed in range(SEEDS)]
    assert sum(tie.is_tie for tie in ties) >= SEEDS - 1
    for tie in ties:
        assert tie.best in tie.equal


def test_what_is_clearly_faster_is_no_tie() -> None:
    ties = [play(SPILLED, seed, Noise(0.005, 0.0, 0.0)).decision.is_tie for seed in range(4)]
    assert not any(ties)


def test_of_equal_stops_a_roomy_one_is_taken() -> None:
    chosen = [play(FLAT, seed, Noise(0.005, 0.0, 0.0)).decision for seed in range(4)]
    for decision in chosen:
        assert decision.best is not None
        assert decision.best >= sorted(decision.equal)[len(decision.equal) // 2]


def test_no_difference_is_an_answer() -> None:
    for seed in range(4):
        decision = play(FLAT, seed, Noise(outliers=0.0)).decision
        assert decision.is_tie


def test_the_present_setting_is_always_measured() -> None:
    assert 31 in play(WALL, 1, present=31).decision.rates


def test_what_does_not_fit_is_not_tried_but_the_users_own_may_be() -> None:
    fits = [stop >= 20 for stop in range(41)]
    decision = play(WALL, 1, fits=fits).decision
    assert min(decision.rates) == 20
    assert not decision.failed


def test_close_candidates_are_visited_in_turn() -> None:
    """A B A B: never the same stop again and again while another is open."""
    sweep = Sweep(3, present=0)
    visited = []
    while (stop := sweep.next_stop()) is not None:
        visited.append(stop)
        sweep.add(stop, 40.0 + 0.01 * stop)
    assert sorted(set(visited)) == [0, 1, 2, 3]
    assert all(a != b for a, b in itertools.pairwise(visited))


def test_a_failing_stop_costs_one_visit() -> None:
    sweep = Sweep(8, present=4)
    while (stop := sweep.next_stop()) is not None:
        if stop < 3:
            sweep.fail(stop)
        else:
            sweep.add(stop, 60.0 - 3 * stop)
    decision = sweep.decision()
    assert decision.best == 3
    assert set(decision.failed) <= {0, 1, 2}


def test_one_place_needs_no_search() -> None:
    sweep = Sweep(30, present=8, same_as=[8] * 31)
    visits = []
    while (stop := sweep.next_stop()) is not None:
        visits.append(stop)
        sweep.add(stop, 25.0 + len(visits))
    assert visits == [8, 8, 8]


def test_one_disturbed_visit_of_the_best_does_not_hide_it() -> None:
    for hidden in (30, 22, 17):
        sweep, seen = Sweep(30, present=30), 0
        while (stop := sweep.next_stop()) is not None:
            rate = 60.0 / (1 + 0.04 * abs(stop - hidden))
            if stop == hidden and not seen:
                rate, seen = 0.6 * rate, 1
            sweep.add(stop, rate)
        assert abs((sweep.decision().best or 0) - hidden) <= 1


def test_a_stop_that_failed_once_by_chance_is_only_that_stop() -> None:
    sweep = Sweep(24, present=12)
    first = True
    while (stop := sweep.next_stop()) is not None:
        if stop == 12 and first:
            sweep.fail(stop)
            first = False
        else:
            sweep.add(stop, 30.0 + stop)
    assert (sweep.decision().best or 0) >= 23


def test_what_lies_below_a_crash_by_chance_is_looked_at() -> None:
    for unlucky in (48, 29, 19):
        sweep, crashed = Sweep(48, present=48), False
        while (stop := sweep.next_stop()) is not None:
            if stop < 12 or (stop == unlucky and not crashed):
                crashed = crashed or stop == unlucky
                sweep.fail(stop)
            else:
                sweep.add(stop, 1000 / (21 + 0.55 * stop))
        assert crashed
        assert 12 <= (sweep.decision().best or 0) <= 14


def test_a_disturbed_visit_at_the_edge_does_not_hide_what_lies_below() -> None:
    for hidden, share, spilled in ((8, 0.75, 9.0), (8, 0.55, 20.0), (10, 0.65, 14.0)):
        sweep, seen = Sweep(16, present=16), False
        while (stop := sweep.next_stop()) is not None:
            rate = 33.0 - 0.6 * (stop - 7) if stop >= 7 else spilled
            if stop == hidden and not seen:
                rate, seen = share * rate, True
            sweep.add(stop, rate)
        assert seen
        assert sweep.decision().best in (7, 8)


def test_a_stop_far_behind_is_not_believed_to_be_fast() -> None:
    """However little its speed says of the others: a silent spill beside the best stop."""
    seen = {20: 9.0, 21: 10.8, 23: 37.4, 24: 39.4, 29: 30.9, 38: 31.3, 48: 29.3}
    visits = Visits({n: math.log(rate) for n, rate in seen.items()}, dict.fromkeys(seen, 1), 0.02)
    curves = CurveCrowd(range(49)).draw(visits, seed=1)
    assert (curves[:, [20, 21]] < math.log(20)).all()
    assert (curves[:, 23] > math.log(30)).all()


def test_a_machine_as_restless_as_can_be_has_speeds_all_the_same() -> None:
    visits = Visits({0: math.log(10.0), 8: math.log(60.0)}, {0: 1, 8: 1}, 2.0)
    curves = CurveCrowd(range(9)).draw(visits, seed=3)
    assert not (curves != curves).any()


def test_disturbed_visits_do_not_count_unless_there_are_no_others() -> None:
    sweep = Sweep(0)
    sweep.add(0, 10.0, disturbed=True)
    assert sweep.decision().best is None
    sweep.add(0, 20.0)
    sweep.add(0, 11.0, disturbed=True)
    assert sweep.decision().rates == {0: 20.0}
    always = Sweep(0)
    for rate in (10.0, 11.0, 12.0):
        always.add(0, rate, disturbed=True)
    assert always.decision().rates == {0: 11.0}


def test_nothing_runs() -> None:
    sweep = Sweep(12, present=12)
    while (stop := sweep.next_stop()) is not None:
        sweep.fail(stop)
    decision = sweep.decision()
    assert (decision.best, decision.equal) == (None, ())
    assert decision.failed


@settings(max_examples=60)
@given(
    curve=st.lists(st.one_of(st.none(), st.floats(0.1, 500.0)), min_size=1, max_size=30),
    present=st.integers(-3, 40),
    n_repeats=st.integers(1, 4),
)
def test_every_search_ends(curve: list[float | None], present: int, n_repeats: int) -> None:
    sweep = Sweep(len(curve) - 1, present=present, n_repeats=n_repeats)
    for _ in range(sweep.limit + 1):
        stop = sweep.next_stop()
        if stop is None:
            break
        assert 0 <= stop < len(curve)
        speed = curve[stop]
        if speed is None:
            sweep.fail(stop)
        else:
            sweep.add(stop, speed)
    else:
        pytest.fail("more visits than the limit")
    decision = sweep.decision()
    if decision.best is not None:
        assert curve[decision.best] is not None
        assert decision.best in decision.equal
