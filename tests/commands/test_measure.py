"""``moelauncher bench`` as its users run it: rows for programs, tables for people."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from moelauncher import cli
from moelauncher.commands.measure import table_line
from moelauncher.core.speed.bench_row import BenchRow
from tests.helpers.command_line import moelauncher


def bench(tree: Path, *arguments: str) -> str:
    ran = moelauncher(
        *("bench", tree / "moe.gguf", "--ctx", "256", "--pp", "16", "--tg", "8", "--repeat", "2"),
        *arguments,
    )
    assert ran.status == 0, ran.err
    return ran.out


def test_bench_streams_rows_as_json(tree: Path) -> None:
    rows = [json.loads(line) for line in bench(tree, "--json").splitlines()]
    assert [(row["test"], row["n_tokens"], row["depth"]) for row in rows] == [
        ("pp", 16, 0),
        ("tg", 8, 16),
    ]
    for row in rows:
        assert len(row["repeats"]) == 2
        assert min(row["repeats"]) <= row["median"] <= max(row["repeats"])
        assert row["mad"] >= 0
        assert row["ram_bytes"] > 0
        assert isinstance(row["notes"], list)


def test_bench_as_csv(tree: Path) -> None:
    rows = list(csv.DictReader(bench(tree, "--csv").splitlines()))
    assert [row["test"] for row in rows] == ["pp", "tg"]
    assert all(float(row["median"]) > 0 for row in rows)


def test_bench_as_markdown_and_for_people(tree: Path) -> None:
    lines = [line for line in bench(tree, "--md").splitlines() if line.startswith("|")]
    assert [line.count("|") for line in lines] == [11] * 3
    assert "pp16" in bench(tree)


@pytest.mark.parametrize(
    ("cpu_moe", "ram_layers", "words"),
    [
        (24, 0, "experts of layers: 24 "),
        (0, 0, "experts of layers: 0 "),
        (0, 26, "whole layers: 26 "),
    ],
)
def test_the_table_says_what_of_the_layers_is_in_ram(
    cpu_moe: int, ram_layers: int, words: str
) -> None:
    row = BenchRow(cpu_moe, "tg", 128, 512, (30.0,), 1 << 30, 1 << 31, ram_layers=ram_layers)
    line = table_line(row)
    assert line.startswith(words)
    assert "tg128" in line and "30.00 ± 0.00" in line
    assert "ram_layers" not in row.to_json()


def test_bench_that_does_not_fit_its_context_says_so(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", str(tree / "moe.gguf"), "--ctx", "256", "--pp", "600"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "does not hold" in printed.err


def test_one_placement_is_measured_once(tree: Path) -> None:
    if any(gpu["kind"] == "gpu" for gpu in moelauncher("doctor", "--json").document["devices"]):
        return  # with a GPU these are three placements
    assert len(bench(tree, "--cpu-moe", "0,2,all", "--json").splitlines()) == 2
