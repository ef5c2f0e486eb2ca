"""The store: what is added is there again, whatever happens to the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.measurement import Machine, Measurement, Setting, speeds_by_stop
from moelauncher.core.measurement_store import SCHEMA_VERSION, MeasurementStore

SETTING = Setting(8, "first", 99, "CUDA0", 4096, "f16", 512, 7, True)
MACHINE = Machine("Ryzen, RTX 4070, 32 GiB RAM", "llama-cpp-python 0.3 CUDA", "580.1")


def measurement(stop: int = 8, tok_s: float | None = 40.0, **more: object) -> Measurement:
    fields: dict[str, object] = {
        "model": "abc",
        "model_name": "Some model",
        "setting": Setting(stop, "first", 99, "CUDA0", 4096, "f16", 512, None, True),
        "machine": MACHINE,
        "time_s": 1.0,
        "n_prompt": 512,
        "n_generated": 128,
        "depth": 512,
        "prompt_tok_s": 300.0,
        "tok_s": tok_s,
        "notes": ("On battery.",),
    }
    return Measurement(**(fields | more))  # type: ignore[arg-type]


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "data" / "measurements.sqlite3"
    kept = [
        measurement(vram_bytes=5, ram_bytes=6),
        measurement(4, None, disturbance="The computer slept for 9 s.", source="bench"),
        measurement(setting=SETTING),
    ]
    with_store(path, *kept)
    store = MeasurementStore(path)
    assert store.of_model("abc", MACHINE.name) == kept
    assert store.of_model("abc", "another") == []
    assert store.of_model("xyz") == []
    assert store.everything() == kept
    store.close()


def with_store(path: Path, *kept: Measurement) -> None:
    store = MeasurementStore(path)
    for one in kept:
        store.add(one)
    store.close()


def test_two_programs_share_the_file(tmp_path: Path) -> None:
    one, other = (MeasurementStore(tmp_path / "m.sqlite3") for _ in range(2))
    one.add(measurement())
    other.add(measurement(4))
    assert len(one.of_model("abc")) == 2
    one.close()
    other.close()


def test_a_choice_is_remembered(tmp_path: Path) -> None:
    store = MeasurementStore(tmp_path / "m.sqlite3")
    assert store.choice("abc", MACHINE.name) is None
    store.remember_choice("abc", MACHINE.name, measurement(3).setting, 1.0)
    store.remember_choice("abc", MACHINE.name, SETTING, 2.0)
    assert store.choice("abc", MACHINE.name) == SETTING
    store.close()


def test_a_newer_store_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    with_store(path, measurement())
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.execute("ALTER TABLE measurement ADD COLUMN colour TEXT")
    database.commit()
    database.close()
    store = MeasurementStore(path)
    assert store.read_only
    assert "newer" in store.problem
    assert store.of_model("abc") == [measurement()]
    with pytest.raises(LauncherError, match="newer"):
        store.add(measurement())
    store.close()


def test_a_file_that_is_no_database_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    path.write_bytes(b"this is no database at all, but long enough to look at" * 40)
    store = MeasurementStore(path)
    assert "moved" in store.problem
    store.add(measurement())
    assert len(store.everything()) == 1
    store.close()
    assert len(list(tmp_path.glob("*broken*"))) == 1


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    store = MeasurementStore(path)
    store.add(measurement())
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LauncherError, match="full"):
        for _ in range(500):
            store.add(measurement(notes=("x" * 2000,)))
    assert store.everything()[0] == measurement()
    store.close()


def test_a_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.sqlite3").mkdir()
    with pytest.raises(LauncherError):
        MeasurementStore(tmp_path / "m.sqlite3")


def test_medians_leave_disturbed_repeats_out() -> None:
    (speed,) = speeds_by_stop(
        [
            measurement(tok_s=40.0),
            measurement(tok_s=20.0, disturbance="Swap."),
            measurement(tok_s=42.0),
            measurement(tok_s=41.0),
        ]
    )
    assert (speed.stop, speed.median, speed.mad, speed.n_disturbed) == (8, 41.0, 1.0, 1)
    assert speeds_by_stop([measurement(disturbance="Swap.")]) == ()
