"""The plain layer split among the settings that Tune visits."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.speed.lever_search import LeverSearch, TurnLengths
from moelauncher.core.speed.measurement import EXPERTS, LAYERS
from moelauncher.core.speed.split_search import LAYER_SPLIT, SplitSearch, split_stop
from moelauncher.core.speed.tune_plan import tune_plan
from tests.helpers.planned_models import MIB, gpu, made_facts

FACTS = made_facts([(20 * MIB, 0)] + [(20 * MIB, 480 * MIB)] * 23)
CHOICES = LaunchChoices(20, None, "first", ContextSettings(), True)


def search(*, gib: int = 8, wanted: bool = True, n_repeats: int = 3) -> SplitSearch:
    plan = tune_plan(FACTS, Machine(gpus=(gpu(gib),)), CHOICES)
    inner = LeverSearch(plan, plan.sweep(), (), TurnLengths(512, 128), logical_cores=8)
    return SplitSearch(inner, split_stop(plan) if wanted else None, n_repeats=n_repeats)


def play(played: SplitSearch, *, split: float | None = 20.0) -> list[int]:
    """Run to the end; the layer split gives ``split`` tok/s, None: it fails."""
    visited: list[int] = []
    while (stop := played.next_stop()) is not None:
        visited.append(stop)
        if stop == LAYER_SPLIT and split is None:
            played.fail(stop)
        elif stop == LAYER_SPLIT:
            played.add(stop, split)
        else:
            played.add(stop, 60.0 - stop)
        assert played.n_visits == len(visited) <= played.limit
    return visited


def test_it_is_visited_between_the_others_and_decides_nothing() -> None:
    played = search()
    visited = play(played)
    places = [place for place, stop in enumerate(visited) if stop == LAYER_SPLIT]
    assert len(places) == 3
    assert places[0] == 1 and places[1] > 3
    alone = search(wanted=False)
    assert [stop for stop in visited if stop != LAYER_SPLIT] == play(alone)
    assert played.decision() == alone.decision()
    assert played.split_rate == 20.0
    text = played.split_text()
    n_layers = played.setting(LAYER_SPLIT).placement.n_gpu_layers
    assert f"{n_layers} layers on the GPU) gives 20.0 tok/s" in text
    assert "% more" in text


def test_one_that_does_not_run_is_tried_once() -> None:
    played = search()
    assert play(played, split=None).count(LAYER_SPLIT) == 1
    assert played.split_rate is None
    assert played.split_text() == ""


def test_disturbed_visits_do_not_count() -> None:
    played = search(n_repeats=2)
    played.add(LAYER_SPLIT, 5.0, disturbed=True)
    played.add(LAYER_SPLIT, 20.0)
    assert played.split_rate == 20.0


def test_what_the_child_is_asked_for() -> None:
    played = search()
    split, stop = played.case(LAYER_SPLIT), played.case(20)
    assert (split.division, stop.division) == (LAYERS, EXPERTS)
    assert split.request.placement.cpu_moe == 0
    assert 0 < split.request.placement.n_gpu_layers < FACTS.n_layer_all + 1
    assert stop.request.placement.cpu_moe == 20
    assert "layer split" in played.difference(LAYER_SPLIT)
    assert played.difference(20) == ""


@pytest.mark.parametrize("gib", [64])
def test_where_all_fits_there_is_none(gib: int) -> None:
    played = search(gib=gib)
    assert LAYER_SPLIT not in play(played)
    assert played.split_text() == ""
