"""Reading a file past the cache, for as long as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.meters.disk_speed import LEAST_BYTES, PIECE_BYTES, disk_speed, largest_model


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    (folder / "small.gguf").write_bytes(b"x")
    with (folder / "deep" / "big.gguf").open("wb") as file:
        file.truncate(LEAST_BYTES + 5)
    return folder


def test_largest_file_of_the_first_folder_that_has_one_is_read(
    tmp_path: Path, models: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert largest_model(models) == models / "deep" / "big.gguf"
    speed = disk_speed([tmp_path / "absent", empty, models], seconds=0.05)
    assert speed is not None and speed.folder == models and not speed.problem
    assert speed.bytes_per_s is not None and 1e5 < speed.bytes_per_s < 1e12


def test_pieces_are_counted_against_the_clock(models: Path) -> None:
    ticks = iter(range(100))
    speed = disk_speed([models], seconds=3.0, clock=lambda: float(next(ticks)))
    # Looked at before the first piece, after each of three, and in the end.
    assert speed is not None and speed.bytes_per_s == 3 * PIECE_BYTES / 4


def test_nothing_to_read_is_said(tmp_path: Path, models: Path) -> None:
    assert disk_speed([tmp_path / "absent"]) is None
    (models / "deep" / "big.gguf").unlink()
    speed = disk_speed([models])
    assert speed is not None and speed.bytes_per_s is None and "no model file" in speed.problem


def test_measuring_can_be_given_up(models: Path) -> None:
    speed = disk_speed([models], cancelled=lambda: True)
    assert speed is not None and speed.bytes_per_s is None
