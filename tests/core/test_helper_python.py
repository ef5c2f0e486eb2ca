"""Helper processes need no console."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.helper_python import helper_python


def test_a_helper_runs_this_very_python_and_is_heard() -> None:
    code = "import sys; print(sys.prefix)"
    said = subprocess.run([helper_python(), "-c", code], capture_output=True, check=True)
    assert Path(said.stdout.decode().strip()) == Path(sys.prefix)


@pytest.mark.skipif(sys.platform != "win32", reason="Windows has a Python without a console")
def test_on_windows_it_has_no_console() -> None:
    code = "import ctypes; print(ctypes.windll.kernel32.GetConsoleWindow())"
    said = subprocess.run([helper_python(), "-c", code], capture_output=True, check=True)
    assert said.stdout.strip() == b"0"
    assert Path(helper_python()).name == "pythonw.exe"
