"""The program is killed; the next start says so, and ends in order itself."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

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
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert picture.read_bytes().startswith(b"\x89PNG")
    log = (base / "logs" / "moelauncher.log").read_text(encoding="utf-8")
    assert log.count("The last run ended abruptly") == 1
    assert not list(base.glob("logs/running-*.json"))
    assert not list(base.glob("logs/crash-*.txt"))
