"""Runs Windows programs under Wine, in a prefix (a Windows drive and registry) of their own.

Standard library only.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

import dev_console
from dev_console import DevError, run_logged

_WINDOWS_VERSION = "win10"
_LAST_WORDS_S = 1.0
"""How long nothing may come from a program that has ended before its output is taken as whole."""


@dataclass(frozen=True)
class Prefix:
    """One Windows, in ``folder``: what runs in it meets nothing of another prefix's processes."""

    folder: Path

    @property
    def system_folder(self) -> Path:
        """Windows' own libraries."""
        return self.folder / "drive_c" / "windows" / "system32"

    @property
    def fonts_folder(self) -> Path:
        """Where programs look for Windows' fonts."""
        return self.folder / "drive_c" / "windows" / "Fonts"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """This process's variables, those that choose the prefix, and ``more``."""
        return {
            **os.environ,
            "WINEPREFIX": str(self.folder),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            # Neither .NET nor an HTML engine: Wine would ask whether to install them.
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            **(more or {}),
        }


def windows_path(path: Path) -> PureWindowsPath:
    """``path`` as programs under Wine see it: this machine's root is their drive Z."""
    return PureWindowsPath("Z:\\") / PureWindowsPath(
        PurePosixPath(path.absolute()).relative_to("/")
    )


def make_prefix(folder: Path, log: Path) -> Prefix:
    """The prefix in ``folder``, made first where there is none (half a minute)."""
    prefix = Prefix(folder)
    ready = folder / "moelauncher-ready"
    if not ready.exists():
        folder.mkdir(parents=True, exist_ok=True)
        environment = prefix.environment()
        for what, command in {
            "making a Windows for Wine": ["wineboot", "--init"],
            "choosing its version": ["winecfg", "-v", _WINDOWS_VERSION],
        }.items():
            run_logged(on_screen(command), log=log, what=what, environment=environment)
        subprocess.run(["wineserver", "-w"], env=environment, check=True)
        ready.touch()
    return prefix


def on_screen(command: Sequence[str | Path]) -> list[str]:
    """``command`` under Wine, with a screen that nobody sees."""
    return ["xvfb-run", "--auto-servernum", "wine", *(str(part) for part in command)]


@contextmanager
def awake(environment: Mapping[str, str]) -> Iterator[None]:
    """Keeps Wine's services (of the prefix and screen in ``environment``) up through the block.

    They start with a prefix's first program and write to its standard error, also when they
    themselves crash. Here that is a program that nobody looks at.
    """
    process = subprocess.Popen(
        ["wine", "cmd", "/c", "echo awake& set /p end="],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        if b"awake" not in process.stdout.readline():
            raise DevError("Wine did not start.")
        yield
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def run(
    prefix: Prefix,
    command: Sequence[str | Path],
    *,
    show: Callable[[bytes], object],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> int:
    """Runs a Windows program to its end and returns its exit code.

    ``show`` gets its output and errors, piece by piece. Output goes through a pipe even where it
    ends in a file: Python 3.11 under Wine takes neither a Unix file nor a terminal for a handle.
    """
    variables = prefix.environment(environment)
    process = subprocess.Popen(
        on_screen(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables,
        cwd=folder,
    )
    assert process.stdout is not None
    try:
        while piece := _next_piece(process, process.stdout.fileno()):
            show(piece)
        return process.wait()
    except BaseException:
        subprocess.run(["wineserver", "-k"], env=variables, check=False)
        process.wait()
        raise
    finally:
        process.stdout.close()


def _next_piece(process: subprocess.Popen[bytes], pipe: int) -> bytes:
    """What came next; empty at the end of the output, or once the program is gone and silent.

    A helper process that is killed as it starts leaves its console host behind, which holds the
    pipe open for ever. (Windows ends that one.)
    """
    ended = False
    while not select.select([pipe], [], [], _LAST_WORDS_S)[0]:
        if ended:
            return b""
        ended = process.poll() is not None
    return os.read(pipe, 65536)


def show_here(output: bytes) -> None:
    """Passes output on to this process's own."""
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def run_wine_logged(
    prefix: Prefix,
    command: Sequence[str | Path],
    *,
    log: Path,
    what: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Runs a Windows program with its output in ``log``.

    Raises :class:`DevError` with the end of the log when the program fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started_s = time.monotonic()
    with log.open("wb", buffering=0) as output:
        code = run(prefix, command, show=output.write, environment=environment, folder=folder)
    elapsed = dev_console.format_elapsed(time.monotonic() - started_s)
    if code:
        end = dev_console.tail_text(log)
        raise DevError(
            f"{what} failed (exit code {code}) after {elapsed}. The end of {log}:\n{end}"
        )
    dev_console.say(f"      {what}: done in {elapsed}")
