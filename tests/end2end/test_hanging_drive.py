"""A drive that never answers: the window closes all the same, and what is kept is on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from moelauncher.core.paths import app_paths

#: The scan stands for a look at a share that is gone: nothing in the process can end it.
_PROGRAM = """
import sys, threading
from PySide6.QtCore import QTimer
from moelauncher import app
from moelauncher.gui import jobs
from moelauncher.gui.library import library

jobs.CLOSE_LIMIT_S = 0.2
never, hangs = threading.Event(), threading.Event()

def hang(*_, **__):
    hangs.set()
    never.wait()

library.scan_sources = hang
build = app.build

def build_and_close(argv):
    program = build(argv)
    def close_once_it_hangs():
        if hangs.is_set():
            timer.stop()
            program.window.close()
    timer = QTimer(program, interval=20)
    timer.timeout.connect(close_once_it_hangs)
    timer.start()
    return program

app.build = build_and_close
sys.exit(app.main(["--basedir", sys.argv[1]]))
"""


def test_the_program_ends_though_a_drive_hangs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    paths = app_paths(tmp_path)
    assert paths.window_file.exists()
    assert "job: scan does not end and is left behind" in paths.log_file.read_text(encoding="utf-8")
