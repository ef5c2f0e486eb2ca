"""Every way in which a load can fall short of its plan is one sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.engine.load_log import parse_load_log
from moelauncher.engine.load_verify import find_mismatches
from tests.helpers.engines import cpu_placement

PATTERNS = (r"blk\.0\.ffn_(up|down)_exps", r"blk\.1\.ffn_(up|down)_exps")
LINES = [
    ("debug", "tensor blk.0.ffn_up_exps.weight (12 MiB q4_0) buffer type overridden to CPU"),
    ("debug", "tensor blk.1.ffn_down_exps.weight (12 MiB q4_0) buffer type overridden to CPU"),
    ("info", "load_tensors: offloaded 31/31 layers to GPU"),
    ("info", "load_tensors:   CPU_Mapped model buffer size =    58.00 MiB"),
    ("info", "load_tensors:      Vulkan0 model buffer size =    88.09 MiB"),
]
REQUEST = LoadRequest(
    Path("model.gguf"),
    dataclasses.replace(
        cpu_placement(30),
        devices=(PlacementDevice("Vulkan0", None),),
        n_gpu_layers=31,
        patterns=PATTERNS,
    ),
    expected_gpu_weights={"Vulkan0": round(88.09 * 2**20)},
)


def mismatches(lines: list[tuple[str, str]], request: LoadRequest = REQUEST) -> tuple[str, ...]:
    return find_mismatches(request, parse_load_log(lines), lines)


def test_load_as_planned() -> None:
    assert mismatches(LINES) == ()


def test_weights_may_differ_by_a_tenth_of_a_mebibyte() -> None:
    near = dataclasses.replace(REQUEST, expected_gpu_weights={"Vulkan0": round(88.18 * 2**20)})
    far = dataclasses.replace(REQUEST, expected_gpu_weights={"Vulkan0": round(88.29 * 2**20)})
    assert mismatches(LINES, near) == ()
    (sentence,) = mismatches(LINES, far)
    assert "88.09" in sentence and "88.29" in sentence


def test_pattern_that_moved_nothing() -> None:
    (sentence,) = mismatches(LINES[:1] + LINES[2:])
    assert PATTERNS[1] in sentence


def test_fewer_layers_than_planned() -> None:
    lines = [(level, text.replace("31/31", "20/31")) for level, text in LINES]
    (sentence,) = mismatches(lines)
    assert "20" in sentence and "31" in sentence


def test_build_that_offloads_nothing() -> None:
    lines = [line for line in LINES if "offloaded" not in line[1]]
    (sentence,) = mismatches(lines)
    assert "offloads nothing" in sentence
