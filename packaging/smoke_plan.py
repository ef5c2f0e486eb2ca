"""One program under the smoke test: how it is started, and what it says and writes to its log."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev_console import DevError

PATIENCE_S = 240
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Plan:
    """One run: the program, an empty folder for what it writes, and how to start it.

    ``prefix`` comes before the program (entering another root, wine); ``program_there`` and
    ``work_there`` are the same places as the started program sees them.
    """

    program: Path
    work: Path
    prefix: tuple[str, ...] = ()
    program_there: str = ""
    work_there: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Whether a GPU must, or must not, be found; None where either will do.
    gpu: bool | None = None
    #: Warnings that are right here, by a part of their text.
    expected_warnings: tuple[str, ...] = ()
    #: On Windows the program for the commands is another one.
    commands_program: str = ""

    @property
    def command(self) -> list[str]:
        """What starts the commands."""
        return [*self.prefix, self.commands_program or self.program_there or str(self.program)]

    @property
    def window(self) -> list[str]:
        """What starts the window."""
        return [*self.prefix, self.program_there or str(self.program)]

    def there(self, name: str) -> str:
        """A path in the work folder as the program sees it."""
        if self.work_there:
            separator = "\\" if "\\" in self.work_there else "/"
            return f"{self.work_there}{separator}{name}"
        return str(self.work / name)


class Started:
    """A program that was started: ``plan.command`` or ``plan.window``, with ``arguments``."""

    def __init__(self, plan: Plan, program: Sequence[str], arguments: Sequence[str]) -> None:
        environment = {
            "HOME": plan.there("home"),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            **plan.environment,
        }
        if sys.platform == "win32":
            environment = {**os.environ, **plan.environment}
        self._work = plan.work
        self._shown = " ".join(arguments)
        self._process = subprocess.Popen(
            [*program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=plan.work,
        )

    def output(self) -> str:
        """Its standard output, at its end. Raises :class:`DevError` if that does not come, for a
        word on standard error, and for an exit status."""
        try:
            output, errors = self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            self.end()
            message = f"moelauncher {self._shown}: no end after {PATIENCE_S} s."
            raise DevError(message) from error
        if self._process.returncode or errors.strip():
            raise self._failure(errors)
        return output.decode("utf-8", "replace")

    def wait_for(self, text: str, logs: Path) -> None:
        """Until ``text`` stands in a log in its folder ``logs``.

        Raises :class:`DevError` if it never does.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        while text not in log_text(logs):
            if self._process.poll() is not None:
                raise self._failure(self._process.communicate()[1])
            if time.monotonic() > deadline_s:
                message = f"moelauncher {self._shown}: never logged “{text}”."
                raise DevError(f"{message} Its log:\n{log_text(logs)[-3000:]}")
            time.sleep(_LOOK_EVERY_S)

    def end(self) -> None:
        """End it where it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def _failure(self, errors: bytes) -> DevError:
        said = errors.decode("utf-8", "replace").strip()[-3000:]
        logged = "".join(map(log_text, sorted(self._work.glob("*/logs"))))[-3000:]
        code = self._process.returncode
        return DevError(f"moelauncher {self._shown}: exit code {code}\n{said}\nLogs:\n{logged}")


def run(plan: Plan, program: Sequence[str], arguments: Sequence[str]) -> str:
    """Run it to its end; standard output. Raises as :meth:`Started.output`."""
    return Started(plan, program, arguments).output()


def log_text(folder: Path) -> str:
    """All logs in ``folder``."""
    files = sorted(folder.glob("*.log")) if folder.is_dir() else []
    return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
