"""The store: what is added is there again, whatever happens to the file."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.conditions import Conditions
from moelauncher.core.speed.measurement import (
    CHAT,
    LAYERS,
    LLAMA_BENCH,
    Machine,
    Measurement,
    Setting,
    speeds_by_stop,
)
from moelauncher.core.speed.measurement_store import SCHEMA_VERSION, MeasurementStore

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
        measurement(
            setting=replace(SETTING, tensor_split=(3.0, 1.5), division=LAYERS),
            threads=7,
            flash_attention=False,
            conditions=Conditions(
                others_cpu=0.2,
                on_battery=True,
                throttled=("heat",),
                gpu_others=(("game", 1 << 30),),
            ),
        ),
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


def test_what_others_write_is_noticed_once(tmp_path: Path) -> None:
    one, other = MeasurementStore(tmp_path / "m.sqlite3"), MeasurementStore(tmp_path / "m.sqlite3")
    assert not one.changed_elsewhere()
    one.add(measurement())
    assert not one.changed_elsewhere(), "its own"
    other.add(measurement())
    assert one.changed_elsewhere()
    assert not one.changed_elsewhere()
    one.close()
    assert not one.changed_elsewhere()
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


def test_a_store_of_the_first_version_is_taken_along(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    with_store(path, measurement())
    database = sqlite3.connect(path)
    for column in ("threads", "flash_attention", "conditions"):
        database.execute(f"ALTER TABLE measurement DROP COLUMN {column}")
    old = '{"cpu_moe": 8, "which": "first", "n_gpu_layers": 99, "gpus": "CUDA0", "n_ctx": 4096,'
    old += '"kv_type": "f16", "n_ubatch": 512, "n_threads": null, "use_mmap": true}'
    database.execute("UPDATE measurement SET setting = ?", (old,))
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    store = MeasurementStore(path)
    assert store.everything() == [measurement()]
    store.add(measurement(threads=3))
    assert store.everything()[1].threads == 3
    store.close()


def test_of_chats_the_newest_stay_and_nothing_else_goes(tmp_path: Path) -> None:
    store = MeasurementStore(tmp_path / "m.sqlite3")
    store.add(measurement())
    store.add_all([measurement(tok_s=float(n), source=CHAT) for n in range(1, 251)])
    kept = store.everything()
    assert len(kept) == 201
    assert kept[1].tok_s == 51.0
    assert store.remove("abc", CHAT) == 200
    assert store.everything() == [measurement()]
    store.close()


def test_chats_imports_and_layer_splits_are_no_stops_of_the_slider() -> None:
    others = [
        measurement(source=CHAT),
        measurement(source=LLAMA_BENCH),
        measurement(setting=replace(SETTING, division=LAYERS)),
    ]
    assert speeds_by_stop(others) == ()
    (speed,) = speeds_by_stop([*others, measurement(tok_s=41.0, source="bench")])
    assert speed.rates == (41.0,)
