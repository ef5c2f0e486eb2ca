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
        _, errors = window.communicate(timeout=120)
    finally:
        window.kill()
        window.wait()
    assert (window.returncode, errors) == (0, b"")
    # The next start has nothing to tell of an abnormal end.
    assert not list(base.glob("logs/running-*.json"))
