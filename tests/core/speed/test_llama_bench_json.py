"""What ``llama-bench -o json`` prints, read as measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.llama_bench_json import read_llama_bench
from moelauncher.core.speed.measured_rows import measured_rows, new_ones, other_series
from moelauncher.core.speed.measurement import EXPERTS, LAYERS, LLAMA_BENCH, stop_speeds
from moelauncher.core.speed.measurement_export import to_markdown
from tests.helpers.planned_models import MIB, made_facts

#: Three leading dense blocks, eight with experts.
FACTS = made_facts([(MIB, 0)] * 3 + [(MIB, 8 * MIB)] * 8)


def row(**changes: object) -> dict[str, Any]:
    """A row as llama-bench of 2026 writes it."""
    return {
        "build_commit": "0c1e57098",
        "build_number": 9123,
        "cpu_info": "AMD Ryzen 7 5800X",
        "gpu_info": "NVIDIA GeForce RTX 4070",
        "backends": "CUDA",
        "model_filename": "/home/somebody/models/" + FACTS.path.name,
        "model_type": "qwen3moe 30B",
        "model_size": FACTS.size_bytes,
        "model_n_params": FACTS.n_params,
        "n_batch": 2048,
        "n_ubatch": 512,
        "n_threads": 8,
        "type_k": "q8_0",
        "type_v": "q8_0",
        "n_gpu_layers": 99,
        "n_cpu_moe": 5,
        "flash_attn": 1,
        "devices": "auto",
        "tensor_split": "0.00",
        "tensor_buft_overrides": "none",
        "load_mode": "mmap",
        "n_prompt": 0,
        "n_gen": 128,
        "n_depth": 512,
        "test_time": "2026-10-01T10:00:00Z",
        "avg_ts": 30.5,
        "samples_ts": [30.0, 30.5, 31.0],
    } | changes


def read(tmp_path: Path, *rows: dict[str, Any], text: str | None = None):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(rows, indent=1) if text is None else text, encoding="utf-8")
    return read_llama_bench(path, FACTS)


def test_a_sweep_becomes_a_series_of_its_own(tmp_path: Path) -> None:
    prompt = row(n_prompt=512, n_gen=0, n_depth=0, samples_ts=[500.0, 501.0, 502.0])
    found = read(tmp_path, prompt, row(), row(n_cpu_moe=11, samples_ts=[20.0]))
    assert [one.tok_s for one in found[3:]] == [30.0, 30.5, 31.0, 20.0]
    one = found[3]
    # Of the first five blocks two hold experts.
    assert (one.setting.cpu_moe, one.setting.which, one.setting.division) == (2, "first", EXPERTS)
    assert (one.setting.kv_type, one.threads, one.flash_attention) == ("q8_0", 8, True)
    assert one.machine.build == "llama.cpp 9123 0c1e57098 CUDA"
    assert one.source == LLAMA_BENCH
    assert "somebody" not in repr(found)
    (series,) = other_series(found, "this machine", dense=False)
    assert [(speed.stop, speed.median) for speed in series.speeds] == [(2, 30.5), (8, 20.0)]
    assert series.speeds[0].prompt_median == 501.0
    assert "RTX 4070" in series.name and series.by_stop
    first, _ = measured_rows(found)
    assert (len(first.prompt_rates), len(first.rates)) == (3, 3)
    text = to_markdown(found, FACTS)
    assert "501.00 ± 1.00 (pp512)" in text
    assert "30.50 ± 0.50 (tg128 @ d512)" in text
    assert new_ones(found, found) == []


def test_a_layer_split_has_no_place_on_the_slider(tmp_path: Path) -> None:
    found = read(tmp_path, row(n_gpu_layers=6, n_cpu_moe=0))
    assert found[0].setting.division == LAYERS
    (series,) = other_series(found, "here", dense=False)
    assert not series.by_stop
    assert series.speeds[0].stop == 6


@pytest.mark.parametrize(
    ("overrides", "stop", "which", "noted"),
    [
        (r"blk\.(9|10)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU", 2, "last", False),
        (r"blk\.3\.ffn_(up|down|gate)_exps=CPU;blk\.4\.ffn_up_exps=CPU", 2, "first", False),
        (r"blk\.(5|7)\.ffn_up_exps=CPU", 2, "last", True),
        ("attn=CUDA1", 0, "first", True),
        ("(a+)+$=CPU", 0, "first", True),
    ],
)
def test_override_patterns_are_understood_or_remarked(
    tmp_path: Path, overrides: str, stop: int, which: str, noted: bool
) -> None:
    one = read(tmp_path, row(n_cpu_moe=0, tensor_buft_overrides=overrides))[0]
    assert (one.setting.cpu_moe, one.setting.which) == (stop, which)
    assert bool(one.notes) is noted


def test_lines_and_a_file_that_was_cut_short_give_what_is_whole(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(row(samples_ts=[rate])) for rate in (1.0, 2.0))
    assert [one.tok_s for one in read(tmp_path, text=lines)] == [1.0, 2.0]
    cut = json.dumps([row(samples_ts=[3.0]), row()])[:-200]
    assert [one.tok_s for one in read(tmp_path, text="\ufeff" + cut)] == [3.0]


def test_an_old_file_without_samples_has_its_average(tmp_path: Path) -> None:
    old = row(use_mmap=False)
    del old["samples_ts"], old["load_mode"]
    (one,) = read(tmp_path, old)
    assert (one.tok_s, one.setting.use_mmap) == (30.5, False)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"n_prompt": 1}', "[[[[", '{"a": ' * 5000, "\x00\xff{"],
)
def test_what_is_no_output_of_llama_bench_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(LauncherError, match="no output of llama-bench"):
        read(tmp_path, text=text)


def test_numbers_of_another_model_are_refused(tmp_path: Path) -> None:
    other = row(model_filename=r"C:\models\other.gguf", model_n_params=FACTS.n_params * 2)
    with pytest.raises(LauncherError, match=r"another model: other\.gguf"):
        read(tmp_path, other)


def test_only_combined_tests_are_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="-pg"):
        read(tmp_path, row(n_prompt=512))


def test_hostile_values_cost_their_row_at_most(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        row(samples_ts=[-1.0, 1e99, "fast", True, None, 5.0]),
        row(n_threads="many", type_k=7, gpu_info=None, tensor_split="a/b", test_time="soon"),
        row(n_prompt=-1),
    )
    assert [one.tok_s for one in found] == [5.0, 30.0, 30.5, 31.0]
    assert found[1].threads is None
    assert stop_speeds(found)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="cannot be read"):
        read_llama_bench(tmp_path / "none.json", FACTS)
