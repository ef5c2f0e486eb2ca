"""Programs under Wine: its services are kept up beside them, and what they leave keeps nobody."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import wine_run
from dev_console import DevError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Wine runs on other systems")


def wine_that(folder: Path, does: str) -> Mapping[str, str]:
    """Variables with a stand-in for Wine on the path."""
    wine = folder / "wine"
    wine.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    wine.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_program_keeps_wine_up_as_long_as_the_block(tmp_path: Path) -> None:
    log = tmp_path / "log"
    does = f"echo up > {log}; echo awake; echo a service crashes >&2; read end; echo down > {log}"
    with wine_run.awake(wine_that(tmp_path, does)):
        assert log.read_text(encoding="utf-8") == "up\n"
    assert log.read_text(encoding="utf-8") == "down\n"


def test_a_wine_that_does_not_start_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(DevError, match="did not start"), wine_run.awake(wine_that(tmp_path, "")):
        pass


def test_what_a_program_leaves_running_does_not_keep_its_output_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "left"
    screen = tmp_path / "xvfb-run"
    screen.write_text(
        f"#!/bin/sh\nsleep 1000 &\necho $! > {left}\necho said\nexit 3\n", encoding="utf-8"
    )
    screen.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    output: list[bytes] = []
    try:
        code = wine_run.run(wine_run.Prefix(tmp_path), ["program"], show=output.append)
    finally:
        os.kill(int(left.read_text(encoding="utf-8")), signal.SIGKILL)
    assert (code, b"".join(output)) == (3, b"said\n")
