"""Measurements as CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io
import json
import shlex
from dataclasses import replace

from moelauncher.core.memory.llama_commands import join_arguments
from moelauncher.core.speed.measurement import BENCH, LAYERS
from moelauncher.core.speed.measurement_export import to_csv, to_json, to_markdown
from tests.core.speed.test_measurement_store import SETTING, measurement
from tests.helpers.planned_models import MIB, made_facts

FACTS = made_facts([(MIB, 0)] * 3 + [(MIB, 8 * MIB)] * 9)
RUNS = [
    measurement(2, 40.0, threads=7, flash_attention=True, vram_bytes=9 * MIB),
    measurement(2, 41.0, threads=7, flash_attention=True, vram_bytes=9 * MIB),
    measurement(2, 9.0, threads=7, flash_attention=True, disturbance="The computer slept."),
]


def test_csv_has_every_repeat_and_every_column() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(RUNS))))
    assert [row["tok_s"] for row in rows] == ["40.0000", "41.0000", "9.0000"]
    assert rows[2]["disturbance"] == "The computer slept."
    assert rows[0]["driver"] == "580.1"
    assert (rows[0]["threads"], rows[0]["use_mmap"], rows[0]["ram_bytes"]) == ("7", "1", "")
    assert rows[0]["time"] == "1970-01-01T00:00:01Z"


def test_no_cell_is_a_formula() -> None:
    (row,) = csv.DictReader(io.StringIO(to_csv([measurement(model_name="=HYPERLINK(1)")])))
    assert row["model_name"] == "'=HYPERLINK(1)"


def test_json_has_everything() -> None:
    document = json.loads(to_json(RUNS))
    assert document["format"] == "moelauncher-measurements"
    first = document["measurements"][0]
    assert first["setting"]["cpu_moe"] == 2
    assert first["machine"]["name"] == "Ryzen, RTX 4070, 32 GiB RAM"
    assert len(document["measurements"]) == 3


def test_markdown_can_be_pasted_and_tells_the_exact_command() -> None:
    text = to_markdown(RUNS, FACTS)
    assert "RTX 4070" in text and "580.1" in text and "llama-cpp-python 0.3 CUDA" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert table[0].count("|") == table[1].count("|") == table[2].count("|")
    assert "40.50 ± 0.50 (tg128 @ d512)" in table[2]
    assert "300.00 ± 0.00 (pp512)" in table[2]
    assert "1 left out: The computer slept." in table[2]
    prompt, decode = (line for line in text.splitlines() if line.startswith("llama-bench"))
    arguments = shlex.split(decode)
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert options == {
        "-m": FACTS.path.name,
        "-ngl": "99",
        "-ncmoe": "5",
        "-ctk": "f16",
        "-ctv": "f16",
        "-b": "512",
        "-ub": "512",
        "-t": "7",
        "-fa": "on",
        "-lm": "mmap",
        "-r": "2",
        "-p": "0",
        "-n": "128",
        "-d": "512",
    }
    assert "-p 512 -n 0" in prompt


def test_the_last_layers_and_a_layer_split_have_commands_too() -> None:
    last = measurement(setting=replace(SETTING, cpu_moe=2, which="last"), prompt_tok_s=None)
    split = measurement(
        setting=replace(SETTING, cpu_moe=0, n_gpu_layers=6, division=LAYERS, tensor_split=(3, 1)),
        source=BENCH,
    )
    text = to_markdown([last, split], FACTS)
    pattern = r"blk\.(10|11)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"
    assert join_arguments([pattern]) in text  # quoted for this system's shell
    assert "-ngl 6 -ts 3/1" in text
    assert "layer split: 6 layers on the GPU" in text


def test_names_cannot_break_the_table() -> None:
    text = to_markdown([measurement(model_name="a|b\n`c`", notes=("x|y\nz",))])
    (row,) = (line for line in text.splitlines() if "z" in line and line.startswith("|"))
    assert r"x\|y z" in row
    assert "a\\|b \\`c\\`" in text


def test_nothing_is_a_sentence() -> None:
    assert "Nothing" in to_markdown([])
