"""``moelauncher tune`` on a tiny model: rows as they come, at last a decision."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from moelauncher import cli
from moelauncher.core.paths import app_paths
from moelauncher.core.speed.conditions import Conditions
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.engine.child_bench import FAULT_VARIABLE
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.no_watch import NoWatch


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    model = write_tiny_model(tmp_path / "moe.gguf", "moe")
    lengths = ["--ctx", "256", "--pp", "8", "--tg", "8", "--repeat", "2", "--threads", "1"]
    return ["tune", str(model), "--basedir", str(tmp_path / "base"), *lengths]


def test_rows_carry_all_repeats_and_the_last_line_decides(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*arguments, "--json"]) == 0
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["test"] for row in rows} == {"pp", "tg"}
    n_repeats = len(rows[-1]["repeats"])
    assert n_repeats == len(rows) / 2 >= 2
    decision = last["decision"]
    assert decision["ended"] == "decided"
    assert decision["best"] in decision["equal"]
    assert decision["text"]
    store = MeasurementStore(app_paths(tmp_path / "base").measurements_file)
    kept = store.everything()
    assert len(kept) == n_repeats
    choice = store.choice(kept[0].model, kept[0].machine.name)
    assert choice is not None and choice.n_ctx == 256
    store.close()


class FirstDisturbed(NoWatch):
    """Other programs are busy during the first run."""

    def __init__(self, _sources: object) -> None:
        self._loads = iter((0.9,))

    def begin(self, pid: int) -> Callable[[], Conditions]:
        return lambda: Conditions(others_cpu=next(self._loads, 0.0))

    def close(self) -> None:
        pass


def test_a_disturbed_repeat_is_shown_and_left_out_of_the_median(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("moelauncher.commands.tune.MachineWatch", FirstDisturbed)
    assert cli.main([*arguments, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]
    row = rows[-1]
    first, *others = row["repeats"]
    assert first == rows[1]["repeats"][0]
    assert row["left_out"] == [0]
    assert row["median"] == pytest.approx(statistics.median(others))
    assert row["disturbed"] == ["Other programs used 90 % of the processor."]


def test_levers_are_tried_told_and_remembered(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*arguments, "--levers", "mmap", "--json"]) == 0
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["levers"]["mmap"] for row in rows} == {True, False}
    decision = last["decision"]
    assert decision["levers"]["mmap"] in (True, False)
    assert "mapped" in decision["text"]
    store = MeasurementStore(app_paths(tmp_path / "base").measurements_file)
    kept = store.everything()
    choice = store.choice(kept[0].model, kept[0].machine.name)
    store.close()
    assert {one.setting.use_mmap for one in kept} == {True, False}
    assert choice is not None and choice.use_mmap == decision["levers"]["mmap"]


def test_for_people(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "tok/s" in printed
    assert "Decided in" in printed


def test_a_child_that_crashes_is_a_row(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "abort:0")
    assert cli.main([*arguments, "--cpu-moe", "0", "--json"]) == 1
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["failed"]
    assert last["decision"]["best"] is None
    assert last["decision"]["failed"] == [0]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (["--pp", "600"], 1),
        (["--repeat", "0"], 2),
        (["--tg", "0"], 2),
        (["--budget", "0"], 2),
        (["--budget", "soon"], 2),
        (["--levers", "speed"], 2),
        (["--levers", ","], 2),
    ],
)
def test_bad_input(
    arguments: list[str],
    wrong: list[str],
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if status == 2:
        with pytest.raises(SystemExit) as exit_:
            cli.main([*arguments, *wrong])
        assert exit_.value.code == 2
    else:
        assert cli.main([*arguments, *wrong]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


def test_a_killed_program_leaves_no_child_and_loses_no_row(
    arguments: list[str], tmp_path: Path
) -> None:
    arguments[arguments.index("--repeat") + 1] = "50"
    process = subprocess.Popen(
        [sys.executable, "-m", "moelauncher", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    told = [json.loads(process.stdout.readline()) for _ in range(4)]  # two visits
    children: list[psutil.Process] = []
    while not children:  # a visit ends with its child, the next one begins with another
        assert process.poll() is None, "a sweep measures in children"
        children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    process.stdout.close()
    _, left = psutil.wait_procs(children, timeout=240)
    assert not left, "a child is still there"
    store = MeasurementStore(app_paths(tmp_path / "base").measurements_file)
    rates = [one.tok_s for one in store.everything()]
    store.close()
    assert told[-1]["repeats"] == pytest.approx(rates[:2])
