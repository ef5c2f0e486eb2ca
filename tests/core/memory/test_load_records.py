"""What is remembered of past loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.memory.load_records import (
    KEPT_LINES,
    LOADED,
    LoadRecord,
    LoadRecords,
    device_key,
)


def record(**changes: object) -> LoadRecord:
    values: dict[str, object] = {
        "time_s": 1.0,
        "device": "CUDA0 RTX",
        "outcome": LOADED,
        "model": "m",
        "planned_bytes": 100,
        "driver_bytes": 10,
        "leave_free_bytes": 5,
        "spare_bytes": 7,
    }
    return LoadRecord(**{**values, **changes})  # type: ignore[arg-type]


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "data" / "loads.jsonl"
    first = LoadRecords(path)
    assert first.records == ()
    assert first.add([record(), record(measured_bytes=90, buffer_bytes=80)])
    assert first.add([record(spare_bytes=None)])
    assert first.add([])
    assert LoadRecords(path).records == first.records
    assert len(first.records) == 3


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '{"schema": 1}',
        '{"schema": 99, "device": "from the future"}',
        json.dumps({"schema": 1, **record().__dict__, "planned_bytes": "many"}),
        json.dumps({"schema": 1, **record().__dict__, "measured_bytes": 1.5}),
        json.dumps({"schema": 1, **record().__dict__, "device": None}),
        json.dumps({"schema": 1, **record().__dict__, "time_s": "noon"}),
        "\x00\x01\x02",
        "[" * 100_000,
    ],
)
def test_lines_that_make_no_sense_are_passed_over_and_kept(tmp_path: Path, line: str) -> None:
    path = tmp_path / "loads.jsonl"
    good = json.dumps({"schema": 1, **record().__dict__, "new_field": True})
    path.write_text(f"{line}\n{good}\n", encoding="utf-8")
    records = LoadRecords(path)
    assert records.records == (record(),)
    records.add([record(model="n")])
    assert path.read_text(encoding="utf-8").startswith(f"{line}\n{good}\n")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "loads.jsonl"
    path.write_bytes(b"\xff\xfe\x00broken\n")
    assert LoadRecords(path).records == ()


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "loads.jsonl"
    records = LoadRecords(path)
    records.add(record(time_s=float(number)) for number in range(2 * KEPT_LINES))
    records.add([record(time_s=-1.0)])
    kept = LoadRecords(path).records
    assert len(kept) == KEPT_LINES
    assert kept[-1].time_s == -1.0


def test_what_cannot_be_stored_counts_until_the_end(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    records = LoadRecords(blocked / "loads.jsonl")
    assert not records.add([record()])
    assert records.records == (record(),)


def test_device_keys() -> None:
    assert device_key("CUDA0", "RTX 4070") == "CUDA0 RTX 4070"
    assert device_key("Vulkan0", "") == "Vulkan0"
