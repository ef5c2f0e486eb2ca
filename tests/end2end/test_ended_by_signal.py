"""The window's program is told to end: by Ctrl+C, by a session that ends, by its terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends no process by a signal")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_ends_in_order(tmp_path: Path, name: str) -> None:
    base = tmp_path / "base"
    window = subprocess.Popen(
        [sys.executable, "-m", "moelauncher", "--basedir", base],
        cwd=ROOT,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 120
        while not list(base.glob("logs/running-*.json")):
            assert time.monotonic() < deadline and window.poll() is None
            time.sleep(0.05)
        window.send_signal(getattr(signal, name))
        _, errors = window.communicate(timeout=240)
    finally:
        window.kill()
        window.wait()
    assert (window.returncode, errors) == (0, b"")
    # The next start has nothing to tell of an abnormal end.
    assert not list(base.glob("logs/running-*.json"))


_INTERRUPTED_IMPORT = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "pyqtgraph.graphicsItems.PlotItem":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from moelauncher import app
status = app.main(["--basedir", sys.argv[1]])
print("pyqtgraph.Qt" in sys.modules, "pyqtgraph" in sys.modules)
sys.exit(status)
"""


def test_the_library_of_the_plots_is_not_waited_for(tmp_path: Path) -> None:
    base = tmp_path / "base"
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT, str(base)],
        cwd=ROOT,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["True", "False"], "begun, and not finished"
    assert not list(base.glob("logs/running-*.json"))
