"""The program ends without freeing anything and starts again, as after a GPU that was lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.program_starts import ended, eventually, started

ROOT = Path(__file__).resolve().parents[2]

START = """
import sys
from PySide6.QtCore import QTimer
from moelauncher import app
program = app.build(["--basedir", sys.argv[1]])
program.watch_run()
QTimer.singleShot(0, program.session.sleep.restart_requested.emit)
program.app.exec()
sys.exit(7)
"""


def test_a_new_program_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    base = tmp_path / "base"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
    # A file, not a pipe: the second program keeps it open.
    with (tmp_path / "errors").open("wb") as errors:
        command = [sys.executable, "-c", START, str(base)]
        first = subprocess.Popen(command, env=environment, stderr=errors)
        assert first.wait(timeout=240) == 0
    markers: list[Path] = []

    def running() -> bool:
        markers[:] = base.glob("logs/running-*.json")
        return bool(markers)

    eventually(running)
    pid = json.loads(markers[0].read_text(encoding="utf-8"))["pid"]
    assert pid != first.pid

    def closed() -> bool:
        # Again and again: it may not listen yet.
        assert ended(started(base, ["--quit"])) == (0, "")
        return not running()

    # It says nothing of an abnormal end, and ends in order itself.
    eventually(closed)
    log = (base / "logs" / "moelauncher.log").read_text(encoding="utf-8")
    assert "ended abruptly" not in log
    assert (tmp_path / "errors").read_bytes() == b""
