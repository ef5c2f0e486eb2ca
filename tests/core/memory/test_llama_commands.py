"""The same placement in llama.cpp's own programs."""

from __future__ import annotations

import re
import shlex

import pytest

from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.llama_commands import (
    join_arguments,
    llama_bench_command,
    llama_server_command,
    n_cpu_moe,
)
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import layer_devices
from tests.helpers.planned_models import MIB, gpu, made_facts

#: Three leading dense blocks, eight with experts, one MTP block that is not loaded.
LAYERS = [(MIB, 0)] * 3 + [(MIB, 8 * MIB)] * 9
FACTS = made_facts(LAYERS, n_not_loaded=1)


def _option(command: str, name: str) -> str | None:
    arguments = shlex.split(command)
    return arguments[arguments.index(name) + 1] if name in arguments else None


def test_n_cpu_moe_counts_blocks_so_leading_dense_blocks_shift_it() -> None:
    placement = place(FACTS, [gpu(8)], cpu_moe=2)
    server = llama_server_command(FACTS, placement, ContextSettings(), windows=False)
    bench = llama_bench_command(FACTS, placement, ContextSettings(), windows=False)
    assert _option(server, "--n-cpu-moe") == _option(bench, "-ncmoe") == "5"
    assert _option(server, "-ngl") == "99"
    assert _option(server, "-ot") is None


@pytest.mark.parametrize("stop", range(9))
@pytest.mark.parametrize("which", ["first", "last"])
def test_the_command_moves_exactly_the_same_tensors(which: str, stop: int) -> None:
    placement = place(FACTS, [gpu(8)], cpu_moe=stop, which=which)
    for command, option in (
        (llama_server_command(FACTS, placement, ContextSettings(), windows=False), "--n-cpu-moe"),
        (llama_bench_command(FACTS, placement, ContextSettings(), windows=False), "-ncmoe"),
    ):
        n = _option(command, option)
        override = _option(command, "-ot")
        moved = set()
        for block in range(11):
            name = f"blk.{block}.ffn_gate_up_exps.weight"
            if n is not None and block < int(n):
                moved.add(block)
            if override is not None:
                pattern, buffer = override.rsplit("=", 1)
                assert buffer == "CPU"
                assert "," not in pattern
                assert ";" not in pattern
                if re.search(pattern, name):
                    moved.add(block)
        experts = set(FACTS.expert_layers)
        assert moved & experts == set(placement.cpu_expert_layers)


def test_the_last_layers_need_a_pattern() -> None:
    placement = place(FACTS, [gpu(8)], cpu_moe=2, which="last")
    assert n_cpu_moe(FACTS, placement.cpu_expert_layers) is None
    server = llama_server_command(FACTS, placement, ContextSettings(), windows=False)
    pattern = r"blk\.(9|10)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"
    assert _option(server, "-ot") == pattern
    everything = place(FACTS, [gpu(8)], cpu_moe=8, which="last")
    assert n_cpu_moe(FACTS, everything.cpu_expert_layers) == 11


def test_the_split_says_the_same_boundaries() -> None:
    cards = [gpu(8, "A"), gpu(5, "B"), gpu(3, "C")]
    placement = place(FACTS, cards, cpu_moe=5)
    server = llama_server_command(FACTS, placement, ContextSettings(), windows=False)
    bench = llama_bench_command(FACTS, placement, ContextSettings(), windows=False)
    for command, delimiter in ((server, ","), (bench, "/")):
        split = [float(part) for part in (_option(command, "-ts") or "").split(delimiter)]
        assert layer_devices(FACTS.n_layer_all, 99, 3, split) == placement.layer_devices


def test_context_settings_and_partial_offload() -> None:
    dense = made_facts([(MIB, 0)] * 12)
    placement = place(dense, [gpu(8)], cpu_moe=0, n_gpu_layers=7)
    context = ContextSettings(n_ctx=32768, kv_type="q8_0", n_ubatch=4096, n_threads=6)
    server = llama_server_command(dense, placement, context, windows=False)
    wanted = {"-ngl": "7", "-c": "32768", "-ub": "4096", "-b": "4096", "-t": "6", "-np": "1"}
    wanted |= {"-ctk": "q8_0", "-ctv": "q8_0", "-m": str(dense.path)}
    assert {name: _option(server, name) for name in wanted} == wanted
    assert _option(server, "--n-cpu-moe") is None
    many = made_facts([(MIB, 0)] * 120)
    command = llama_server_command(many, place(many, [gpu(8)], cpu_moe=0), context)
    assert _option(command, "-ngl") == "121"


def test_without_a_gpu_nothing_is_offloaded() -> None:
    command = llama_bench_command(FACTS, place(FACTS, [], cpu_moe=8), ContextSettings())
    assert _option(command, "-ngl") == "0"
    assert _option(command, "-ncmoe") is None


def test_quoting_for_either_shell() -> None:
    arguments = ["llama-server", "-m", "C:\\my models\\a.gguf", "-ot", r"blk\.(1|2)\.x=CPU"]
    assert shlex.split(join_arguments(arguments, windows=False)) == arguments
    assert join_arguments(arguments, windows=True) == (
        'llama-server -m "C:\\my models\\a.gguf" -ot "blk\\.(1|2)\\.x=CPU"'
    )
