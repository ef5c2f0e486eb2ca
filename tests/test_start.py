"""The way in: Ctrl+C while modules still load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.quiet_import import import_quietly

#: Runs the program; at the first import of the module named first, the user presses Ctrl+C.
_INTERRUPTED_AT = """
import os, signal, sys

at = sys.argv.pop(1)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from moelauncher.start import main
status = main()
print("went on", at, status, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    "module",
    [
        "moelauncher.cli",
        "moelauncher.commands.arguments",
        "moelauncher.commands.list_models",
        "moelauncher.core.library.catalog",
    ],
)
def test_ctrl_c_while_modules_load_ends_it_without_a_word(tmp_path: Path, module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT, module, "list", "--basedir", tmp_path],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "")


def test_the_interrupt_is_python_s_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert import_quietly("json") is sys.modules["json"]
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ModuleNotFoundError):
        import_quietly("moelauncher.no_such_module")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(os.name == "nt", reason="nohup is of POSIX shells")
def test_a_process_that_shall_not_hear_ctrl_c_does_not() -> None:
    """Started by ``nohup`` or in a shell's background, it is not ended while it loads either."""
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from moelauncher.core.quiet_import import import_quietly\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "import_quietly('colorsys')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[1], capture_output=True
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
