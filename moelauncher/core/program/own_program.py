"""How this program is started from within itself. Any thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def program_command() -> list[str]:
    """What starts the program, without arguments: a package is its own program."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-m", "moelauncher"]


def start_program(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the program beside this process; it lives on when this one ends."""
    environment = dict(os.environ)
    if getattr(sys, "frozen", False):
        # PyInstaller's loader would take it for a part of this process and prepare nothing.
        environment["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
    else:
        root = str(Path(__file__).resolve().parents[3])
        parts = [root, environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
    return subprocess.Popen(
        [*program_command(), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=sys.platform != "win32",
    )
