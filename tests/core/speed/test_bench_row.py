"""Middle and spread of a benchmark's repeats."""

import json
from dataclasses import replace

import pytest

from moelauncher.core.speed.bench_row import BenchRow, spread_note


def row(*repeats: float) -> BenchRow:
    return BenchRow(8, "tg", 128, 512, repeats, 1 << 30, None, ("A note.",))


@pytest.mark.parametrize(
    ("repeats", "median", "mad"),
    [
        ((30.0, 31.0, 35.0), 31.0, 1.0),
        ((30.0, 34.0), 32.0, 2.0),
        ((30.0,), 30.0, 0.0),
        ((30.0, 30.0, 30.0, 99.0, 30.0), 30.0, 0.0),
    ],
)
def test_median_and_mad(repeats, median, mad):
    assert (row(*repeats).median, row(*repeats).mad) == (median, mad)


def test_json_has_the_documented_keys_in_order():
    values = json.loads(json.dumps(row(30.0, 31.0, 35.0).to_json()))
    assert values == {
        "cpu_moe": 8,
        "test": "tg",
        "n_tokens": 128,
        "depth": 512,
        "repeats": [30.0, 31.0, 35.0],
        "median": 31.0,
        "mad": 1.0,
        "vram_bytes": 1 << 30,
        "ram_bytes": None,
        "notes": ["A note."],
    }
    assert list(values)[:5] == ["cpu_moe", "test", "n_tokens", "depth", "repeats"]


def test_disturbed_repeats_are_shown_and_left_out_of_the_median():
    disturbed = replace(row(30.0, 31.0, 9.0, 32.0), left_out=(2,))
    assert (disturbed.median, disturbed.mad) == (31.0, 1.0)
    assert disturbed.to_json()["repeats"] == (30.0, 31.0, 9.0, 32.0)
    assert disturbed.to_json()["left_out"] == (2,)
    assert replace(row(30.0), left_out=(0,)).median == 30.0


@pytest.mark.parametrize(
    ("repeats", "note"),
    [
        ((100.0, 101.0, 104.9), ""),
        ((100.0, 100.0, 120.0), "The repeats differ by 20 %."),
        ((34.6,), ""),
    ],
)
def test_a_wide_spread_is_remarked_upon(repeats, note):
    assert spread_note(repeats) == note
