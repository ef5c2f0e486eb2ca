"""Where layers and tensors are, by llama.cpp's own rule."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.files.gguf_header import TensorInfo
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import (
    MAIN_MEMORY,
    layer_devices,
    same_place,
    tensor_device,
)
from tests.helpers.planned_models import MIB, gpu, made_facts, truth_facts
from tests.helpers.truth_models import TRUTH_MODELS

THREE_DENSE_FIRST = [(MIB, 0)] * 3 + [(MIB, 8 * MIB)] * 5


def _by_llama_cpp(n_layer_all: int, ngl: int, split: list[float]) -> tuple[int, ...]:
    """``get_layer_buft_list`` word for word, in 32-bit floats."""
    f32 = np.float32
    ends, total = [], f32(0)
    for part in split:
        total = f32(total + f32(part))
        ends.append(total)
    ends = [f32(end / total) for end in ends]
    start, active = max(n_layer_all + 1 - ngl, 0), min(ngl, n_layer_all + 1)
    devices = []
    for layer in range(n_layer_all + 1):
        if layer < start or layer - start >= active:
            devices.append(-1)
        else:
            share = f32(f32(layer - start) / f32(active))
            devices.append(next(i for i, end in enumerate(ends) if end > share))
    return tuple(devices)


@given(
    n_layer_all=st.integers(1, 100),
    data=st.data(),
    split=st.lists(st.floats(0, 2**40, width=32), min_size=1, max_size=5).filter(any),
)
def test_the_layer_rule_in_32_bit_floats(
    n_layer_all: int, data: st.DataObject, split: list[float]
) -> None:
    if sum(split) < 1e-20:
        split = [part + 1.0 for part in split]
    ngl = data.draw(st.integers(0, n_layer_all + 5))
    got = layer_devices(n_layer_all, ngl, len(split), split)
    assert got == _by_llama_cpp(n_layer_all, ngl, split)


def test_the_published_two_gpu_run_has_its_boundary_where_llama_cpp_put_it() -> None:
    """RTX 4090 with 9862 MiB free, RTX 5090 with 31518: layers 0-11 on the first."""
    split = [9862.0, 31518.0]
    devices = layer_devices(48, 99, 2, split)
    assert devices == (0,) * 12 + (1,) * 37


@pytest.mark.parametrize("name", TRUTH_MODELS)
def test_bytes_on_all_devices_are_the_bytes_that_are_loaded(name: str) -> None:
    facts = truth_facts(name)
    total = sum(tensor.n_bytes for tensor in facts.tensors)
    last = None
    for stop in range(len(facts.expert_layers) + 1):
        placement = place(facts, [gpu(9, "A"), gpu(5, "B")], cpu_moe=stop)
        sums = dict.fromkeys((-1, 0, 1), 0)
        for tensor in facts.tensors:
            sums[tensor_device(placement, tensor, arch=facts.arch)] += tensor.n_bytes
        assert sum(sums.values()) == total
        on_gpus = sums[0] + sums[1]
        assert last is None or on_gpus < last
        last = on_gpus


def test_every_pattern_matches_the_tensors_that_move_and_no_others() -> None:
    names = {
        "blk.1.ffn_gate_exps.weight": True,
        "blk.1.ffn_up_exps.weight": True,
        "blk.1.ffn_down_exps.bias": True,
        "blk.1.ffn_gate_up_exps.weight": True,
        "blk.1.ffn_up_chexps.weight": True,
        "blk.11.ffn_up_exps.weight": False,
        "blk.1.ffn_up_shexp.weight": False,
        "blk.1.ffn_gate_inp.weight": False,
        "blk.1.exp_probs_b.bias": False,
        "blk.1.ffn_gate.0.weight": False,
    }
    facts = made_facts([(MIB, MIB)] * 12)
    placement = place(facts, [gpu(8)], cpu_moe=1, which="first")
    moved = place(facts, [gpu(8)], cpu_moe=2)
    pattern = re.compile(moved.patterns[1])
    for name, moves in names.items():
        tensor = TensorInfo(name, (32, 32), 0, 0, 4096, 1024)
        assert (pattern.search(name) is not None) is moves
        assert (tensor_device(moved, tensor) == MAIN_MEMORY) is moves
        assert tensor_device(placement, tensor) == 0


@pytest.mark.parametrize(
    ("name", "arch", "device"),
    [
        ("token_embd.weight", "", MAIN_MEMORY),
        ("per_layer_token_embd.weight", "", MAIN_MEMORY),
        ("output.weight", "", 1),
        ("output_norm.weight", "", 1),
        ("per_layer_model_proj.weight", "", 0),
        ("rope_freqs.weight", "", 0),
        ("token_embd_norm.weight", "bloom", 0),
        ("token_embd_norm.weight", "lfm2moe", 1),
    ],
)
def test_tensors_outside_the_blocks(name: str, arch: str, device: int) -> None:
    placement = place(
        made_facts([(MIB, MIB)] * 4),
        [gpu(8, "A"), gpu(8, "B")],
        cpu_moe=0,
        tensor_split=[1, 1],
    )
    tensor = TensorInfo(name, (32, 32), 0, 0, 4096, 1024)
    assert tensor_device(placement, tensor, arch=arch) == device


def test_the_same_place_is_told_by_devices_and_layers_not_by_what_is_free() -> None:
    facts = made_facts(THREE_DENSE_FIRST)
    one = place(facts, [gpu(10)], cpu_moe=2)
    assert same_place(one, place(facts, [gpu(11)], cpu_moe=2))
    assert not same_place(one, place(facts, [gpu(10)], cpu_moe=3))
    assert not same_place(one, place(facts, [gpu(10, "other")], cpu_moe=2))
