"""What is kept of a machine's bandwidths."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.placement import RAM
from moelauncher.core.speed.device_bandwidth import BandwidthFile


def test_it_is_there_at_the_next_start(tmp_path: Path) -> None:
    BandwidthFile(tmp_path / "b.json").write("here", {RAM: 41.5e9, "CUDA0": 900e9})
    found = BandwidthFile(tmp_path / "b.json").read("here")
    assert (found.ram_bytes_s, found.bytes_s["CUDA0"]) == (41.5e9, 900e9)
    assert found.measured_s is not None
    assert BandwidthFile(tmp_path / "b.json").read("elsewhere").ram_bytes_s is None


def test_one_device_more_keeps_the_others(tmp_path: Path) -> None:
    file = BandwidthFile(tmp_path / "b.json")
    file.write("here", {RAM: 41e9})
    assert file.write("here", {"CUDA0": 900e9}).ram_bytes_s == 41e9


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"here": 3}', '{"here": {"bytes_s": [1]}}', "[" * 5000,
     '{"here": {"bytes_s": {"RAM": "fast", "x": true, "y": -1, "z": 1e400}}}'],
)  # fmt: skip
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, encoding="utf-8")
    assert BandwidthFile(path).read("here").bytes_s == {}
    assert BandwidthFile(path).write("here", {RAM: 4e9}).ram_bytes_s == 4e9


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file", encoding="utf-8")
    with pytest.raises(LauncherError):
        BandwidthFile(tmp_path / "folder" / "b.json").write("here", {RAM: 4e9})
