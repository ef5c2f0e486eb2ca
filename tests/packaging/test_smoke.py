"""The smoke test itself: a stand-in program that behaves, and what must not pass."""

from __future__ import annotations

import sys
from pathlib import Path

import bare_root
import pytest
import smoke
import smoke_plan
from dev_console import DevError
from smoke_plan import Plan

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")

PROGRAM = """#!{python}
import json, os, sys, time
from pathlib import Path
given = sys.argv[1:]
fault = {fault!r}
def after(option): return Path(given[given.index(option) + 1])
if "--version" in given:
    print("MoE Launcher 1.2.3")
elif "doctor" in given:
    gpus = [{{"kind": "gpu"}}] if fault == "gpu" else []
    print(json.dumps({{
        "cpu_variant": None if fault == "no variant" else "haswell", "build": {{"version": "1"}},
        "verdicts": [], "devices": gpus, "build_notes": [],
    }}))
elif "chat" in given:
    base = after("--basedir")
    (base / "cache").mkdir(parents=True)
    (base / "cache" / "sample.gguf").write_bytes(b"GGUF")
    (base / "logs").mkdir()
    word = " WARNING x: odd" if fault == "log" else " INFO x: fine"
    (base / "logs" / "a.log").write_text("2026-01-01" + word)
    print(json.dumps({{"text": "London" if fault == "answer" else "Paris.", "tok_s": 9.0}}))
elif "--screenshot" in given:
    size = 10 if fault == "picture" else 20_000
    after("--screenshot").write_bytes(b"\\x89PNG" + b"x" * size)
    assert given[0] == "--screenshot" or Path(given[0]).name == "sample.gguf"
else:
    base = after("--basedir")
    if "--quit" in given:
        (base / ("not " * (fault == "stays") + "quit")).touch()
    elif given[0] != "--basedir":
        with (base / "logs" / "b.log").open("a", encoding="utf-8") as log:
            log.write(f"INFO x: selected {{'another' if fault == 'deaf' else given[0]}}\\n")
    else:
        (base / "logs").mkdir(parents=True)
        if fault == "ends":
            sys.exit(0)
        (base / "logs" / "b.log").write_text("INFO x: listening for later starts", "utf-8")
        while not (base / "quit").exists():
            time.sleep(0.01)
        if fault == "late":
            (base / "logs" / "b.log").write_text("2026-01-01 ERROR x: at the end")
if fault == "stderr":
    print("libfoo: deprecated", file=sys.stderr)
sys.exit(3 if fault == "status" else 0)
"""


def plan_with(tmp_path: Path, fault: str, gpu: bool | None = None) -> Plan:
    program = tmp_path / "moelauncher"
    program.write_text(PROGRAM.format(python=sys.executable, fault=fault), encoding="utf-8")
    program.chmod(0o755)
    return Plan(program, tmp_path / "work", gpu=gpu)


def test_a_program_that_behaves_passes(tmp_path: Path) -> None:
    learnt = smoke.run_smoke(plan_with(tmp_path, ""))
    assert learnt["reply"]["text"] == "Paris."


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("stderr", "libfoo: deprecated"),
        ("status", "exit code 3"),
        ("no variant", "no processor variants"),
        ("answer", "London"),
        ("picture", "is no picture"),
        ("log", "WARNING x: odd"),
        ("gpu", "GPUs found"),
        ("ends", "exit code 0"),
        ("late", "ERROR x: at the end"),
    ],
)
def test_each_fault_fails(tmp_path: Path, fault: str, said: str) -> None:
    with pytest.raises(DevError, match=said):
        smoke.run_smoke(plan_with(tmp_path, fault, gpu=False))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("deaf", "never logged “selected .*größe 2.gguf”"),
        ("stays", "no end after"),
    ],
)
def test_a_window_that_does_not_hear_later_starts_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setattr(smoke_plan, "PATIENCE_S", 5.0)
    with pytest.raises(DevError, match=said):
        smoke.run_smoke(plan_with(tmp_path, fault))


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "moelauncher"
    program.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(smoke_plan, "PATIENCE_S", 0.3)
    with pytest.raises(DevError, match="no end after"):
        smoke.run_smoke(Plan(program, tmp_path / "work"))


def test_the_screen_is_this_machines_or_none() -> None:
    assert smoke.screen_here({}) == {"QT_QPA_PLATFORM": "offscreen"}
    assert smoke.screen_here({"DISPLAY": ":1", "HOME": "/h"}) == {"DISPLAY": ":1"}


def test_paths_are_those_that_the_program_sees(tmp_path: Path) -> None:
    here = Plan(tmp_path / "p", tmp_path / "work")
    assert here.there("base") == str(tmp_path / "work" / "base")
    there = Plan(tmp_path / "p", tmp_path / "work", work_there="/inside/run")
    assert there.there("base") == "/inside/run/base"
    windows = Plan(tmp_path / "p", tmp_path / "work", work_there="Z:\\work")
    assert windows.there("base") == "Z:\\work\\base"


def test_entering_a_root_mounts_only_what_is_named(tmp_path: Path) -> None:
    command = bare_root.enter_command(tmp_path, {Path("/a b"): "/opt/x"}, ["env", "A=1"])
    assert command[:2] == ["unshare", "--mount"]
    assert command[-7:] == [str(tmp_path), "/a b", "/opt/x", "rw", "--", "env", "A=1"]
    command = bare_root.enter_command(tmp_path, {Path("/a b"): "/opt/x"}, [], [Path("/a b")])
    assert command[-4:] == ["/a b", "/opt/x", "ro", "--"]


def test_what_is_expected_of_wine_is_what_the_program_says() -> None:
    source, _, text = smoke._NO_COUNTERS.partition(": ")
    meters = Path(__file__).parents[2] / "moelauncher" / "meters"
    assert f'"{text}"' in (meters / "windows_counters.py").read_text(encoding="utf-8")
    assert source in (meters / "windows_pdh.py").read_text(encoding="utf-8")
