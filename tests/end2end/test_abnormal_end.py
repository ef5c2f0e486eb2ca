"""The program ends abruptly; the next start says so, and why, and ends in order itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.library.sample_model import build_sample_model, sample_model_path
from tests.helpers import killed_window
from tests.helpers.window_driver import WindowDriver, settings_file

ROOT = Path(__file__).resolve().parents[2]


def command(base: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "moelauncher", "--basedir", str(base), *arguments]


def test_a_killed_program_is_told_of_at_the_next_start(tmp_path: Path) -> None:
    base = tmp_path / "base"
    killed = subprocess.Popen(command(base), cwd=ROOT)
    deadline = time.monotonic() + 120
    while not list(base.glob("logs/running-*.json")) and time.monotonic() < deadline:
        assert killed.poll() is None
        time.sleep(0.05)
    killed.kill()
    killed.wait()

    picture = tmp_path / "window.png"
    done = subprocess.run(
        command(base, "--screenshot", str(picture)),
        cwd=ROOT,
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert picture.read_bytes().startswith(b"\x89PNG")
    log = (base / "logs" / "moelauncher.log").read_text(encoding="utf-8")
    assert log.count("The last run ended abruptly") == 1
    assert not list(base.glob("logs/running-*.json"))
    assert not list(base.glob("logs/crash-*.txt"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cuts no file that is mapped")
def test_a_model_that_is_cut_short_while_it_answers_is_blamed(
    qtbot: QtBot, tmp_path: Path, session_cache: Path
) -> None:
    base = tmp_path / "base"
    model = sample_model_path(base / "cache" / "sample")
    model.parent.mkdir(parents=True)
    # A copy, not a link: it is going to be destroyed.
    shutil.copyfile(build_sample_model(session_cache), model)
    settings_file(base, "[sampling]\ntemperature = 0.0\n")
    process = killed_window.started(base, "in_view")
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if int(line) > 0:
                os.truncate(model, 1_000_000)
                break
        process.stdout.read()
        assert process.wait() == -signal.SIGBUS
    finally:
        process.kill()
        process.stdout.close()
        process.wait()

    driver = WindowDriver(qtbot, ["--basedir", str(base)])
    try:
        driver.program.watch_run()
        driver.wait(lambda: "was cut short or overwritten" in driver.status_text())
        assert model.name in driver.status_text()
        assert "keep more" not in driver.status_text()
        assert driver.program.window.status.offer.isHidden()
        driver.wait(lambda: "cut off" in driver.chat_text())
    finally:
        driver.close()
