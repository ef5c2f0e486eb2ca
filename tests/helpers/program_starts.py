"""The program in processes of its own, as the system starts them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def started(base: Path, arguments: Sequence[str | Path], **variables: str) -> subprocess.Popen[str]:
    """Start it in the folder beside ``base``, painting into memory, with more ``variables``."""
    environment = {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen", **variables}
    return subprocess.Popen(
        [sys.executable, "-m", "moelauncher", "--basedir", str(base), *map(str, arguments)],
        env=os.environ | environment,
        cwd=base.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit status and all that it printed, once it has ended."""
    said, _ = process.communicate(timeout=240)
    return process.returncode, said


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
