"""The slider's stop and the user's wishes, made a placement."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import MAIN_MEMORY, PlacementDevice
from tests.helpers.planned_models import MIB, gpu, made_facts

THREE_DENSE_FIRST = [(MIB, 0)] * 3 + [(MIB, 8 * MIB)] * 5


def test_stops_are_the_layers_that_hold_experts() -> None:
    facts = made_facts(THREE_DENSE_FIRST)
    placement = place(facts, [gpu(8)], cpu_moe=2)
    assert (placement.cpu_moe, placement.of) == (2, 5)
    assert placement.cpu_expert_layers == (3, 4)
    assert placement.patterns == (
        r"blk\.3\.ffn_(up|down|gate|gate_up)_(ch|)exps",
        r"blk\.4\.ffn_(up|down|gate|gate_up)_(ch|)exps",
    )
    assert placement.n_gpu_layers == 9
    assert placement.layer_devices == (0,) * 9


def test_the_last_layers_experts_on_the_cpu_and_a_stop_beyond_the_end() -> None:
    facts = made_facts(THREE_DENSE_FIRST)
    assert place(facts, [gpu(8)], cpu_moe=2, which="last").cpu_expert_layers == (6, 7)
    assert place(facts, [gpu(8)], cpu_moe=0, which="last").cpu_expert_layers == ()
    assert place(facts, [gpu(8)], cpu_moe=99).cpu_expert_layers == (3, 4, 5, 6, 7)


def test_blocks_that_are_not_loaded_are_no_stops() -> None:
    facts = made_facts([(MIB, 8 * MIB)] * 5, n_not_loaded=1)
    assert place(facts, [gpu(8)], cpu_moe=99).cpu_expert_layers == (0, 1, 2, 3)


def test_without_a_gpu_there_are_no_overrides() -> None:
    placement = place(made_facts(THREE_DENSE_FIRST), [], cpu_moe=5)
    assert placement.patterns == ()
    assert placement.n_gpu_layers == 0
    assert set(placement.layer_devices) == {MAIN_MEMORY}
    assert placement.tensor_split == ()


def test_unplaceable_experts_have_no_stops() -> None:
    facts = made_facts(THREE_DENSE_FIRST, unplaceable_experts=True)
    placement = place(facts, [gpu(8)], cpu_moe=3)
    assert (placement.cpu_moe, placement.of, placement.patterns) == (0, 0, ())


def test_layers_on_the_gpu_of_a_dense_model() -> None:
    facts = made_facts([(MIB, 0)] * 4)
    half = place(facts, [gpu(8)], cpu_moe=0, n_gpu_layers=2)
    # The output layer goes first: it is the last of the five that are counted.
    assert half.layer_devices == (-1, -1, -1, 0, 0)
    assert place(facts, [gpu(8)], cpu_moe=0, n_gpu_layers=0).layer_devices == (-1,) * 5
    assert place(facts, [gpu(8)], cpu_moe=0, n_gpu_layers=50).n_gpu_layers == 5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cpu_moe": -1}, "negative"),
        ({"cpu_moe": 0, "n_gpu_layers": -1}, "negative"),
        ({"cpu_moe": 0, "which": "middle"}, "middle"),
        ({"cpu_moe": 0, "tensor_split": [1.0]}, "1 part, but there are 2 GPUs"),
        ({"cpu_moe": 0, "tensor_split": [1.0, 2.0, 3.0]}, "3 parts, but there are 2 GPUs"),
        ({"cpu_moe": 0, "tensor_split": [0.0, 0.0]}, "above 0"),
        ({"cpu_moe": 0, "tensor_split": [-1.0, 2.0]}, "0 or more"),
        ({"cpu_moe": 0, "tensor_split": [math.nan, 2.0]}, "0 or more"),
        ({"cpu_moe": 0, "tensor_split": [math.inf, 2.0]}, "0 or more"),
        ({"cpu_moe": 0, "tensor_split": [1e39, 2.0]}, "0 or more"),
        ({"cpu_moe": 0, "tensor_split": [1e-50, 0.0]}, "above 0"),
    ],
)
def test_bad_wishes_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(LauncherError) as refusal:
        place(made_facts(THREE_DENSE_FIRST), [gpu(8), gpu(8)], **wrong)  # type: ignore[arg-type]
    assert said in refusal.value.sentence


def test_the_users_split_is_taken_as_it_is() -> None:
    facts = made_facts([(MIB, MIB)] * 9)
    devices = [PlacementDevice("CUDA0", None), PlacementDevice("CUDA1", None)]
    placement = place(facts, devices, cpu_moe=0, tensor_split=[3, 2])
    assert placement.tensor_split == (3.0, 2.0)
    assert list(accumulate(placement.layer_devices.count(device) for device in (0, 1))) == [6, 10]
