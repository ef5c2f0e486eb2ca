"""Runs the command line as a user does: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.gguf_files import write_tiny_model

#: What must not be imported for a command: the window, and whatever draws it.
WINDOW_MODULES = ("PySide6", "shiboken6", "pyqtgraph", "pygments", "moelauncher.gui")

#: Runs the program and then tells, on the last line of stderr, which modules it imported.
_WITH_MODULES = """
import sys
from moelauncher.cli import main
status = main(sys.argv[1:])
print("modules:", " ".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(status)
"""


@dataclass(frozen=True)
class Ran:
    """What a finished command left behind."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout as one JSON document; fails where it is anything else."""
        return json.loads(self.out)

    @property
    def modules(self) -> frozenset[str]:
        """What was imported (only of :func:`run_watched`)."""
        last = self.err.strip().splitlines()[-1]
        assert last.startswith("modules: "), self.err
        return frozenset(last.split()[1:])


def moelauncher(*arguments: str | Path, **environment: str) -> Ran:
    """``python -m moelauncher ARGUMENTS``; its home is the test's own."""
    return _run(["-m", "moelauncher"], arguments, environment)


def run_watched(*arguments: str | Path, **environment: str) -> Ran:
    """The same, with :attr:`Ran.modules`."""
    return _run(["-c", _WITH_MODULES], arguments, environment)


def _run(start: list[str], arguments: tuple[str | Path, ...], environment: dict[str, str]) -> Ran:
    variables = {**os.environ, **environment}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        if name not in environment:
            variables.pop(name, None)
    done = subprocess.run(
        [sys.executable, *start, *(str(argument) for argument in arguments)],
        cwd=Path(__file__).parents[2],
        env=variables,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def assert_no_window(modules: frozenset[str]) -> None:
    """Fail where a command (see :attr:`Ran.modules`) imported the window."""
    loaded = [name for name in modules if name.startswith(WINDOW_MODULES)]
    assert loaded == []


def write_model_folder(folder: Path) -> Path:
    """Fill ``folder`` with models of several kinds, some of them broken, and return it."""
    (folder / "deep" / "down").mkdir(parents=True)
    write_tiny_model(folder / "moe.gguf", "moe")
    write_tiny_model(folder / "deep" / "down" / "dense.gguf", "dense")
    (folder / "empty.gguf").write_bytes(b"")
    whole = (folder / "moe.gguf").read_bytes()
    (folder / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    (folder / "text.gguf").write_text("no model at all", encoding="utf-8")
    (folder / "folder.gguf").mkdir()
    return folder
