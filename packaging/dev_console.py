"""What ``dev.py`` shows: numbered steps, how far a long command is, and why it failed.

Standard library only. Output is plain ASCII, since a Windows console may know nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_COUNTER = re.compile(rb"\[(\d+)/(\d+)\]")
_LINE_WIDTH = 78
#: Before so much is done the pace says nothing.
_TELLING = 0.05


class DevError(Exception):
    """Set-up cannot go on; the text says why and what to do."""


def say(text: str) -> None:
    """One line, at once, so that a log keeps the order of what happened."""
    print(text, flush=True)


class Steps:
    """Announces each step as ``[2/5] what``."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._number = 0

    def begin(self, what: str) -> None:
        """Starts the next step."""
        self._number += 1
        say(f"[{self._number}/{self.total}] {what}")


def run_logged(
    command: Sequence[str | Path],
    *,
    log: Path,
    what: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Runs a long command with its output in ``log``, and says every few seconds how far it is.

    Raises :class:`DevError` with the end of the log when the command fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started_s = time.monotonic()
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment) if environment is not None else None,
                cwd=folder,
            )
            code = _wait(process, log, what, started_s)
    except FileNotFoundError as error:
        raise DevError(f"{command[0]} was not found: {error}") from error
    elapsed = format_elapsed(time.monotonic() - started_s)
    if code:
        raise DevError(
            f"{what} failed (exit code {code}) after {elapsed}. The end of {log}:\n{tail_text(log)}"
        )
    say(f"      {what}: done in {elapsed}")


def _wait(process: subprocess.Popen[bytes], log: Path, what: str, started_s: float) -> int:
    live = sys.stdout.isatty()
    every_s = 1.0 if live else 15.0
    next_s = time.monotonic() + every_s
    try:
        while True:
            try:
                return process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
            now_s = time.monotonic()
            if now_s < next_s:
                continue
            next_s = now_s + every_s
            elapsed = format_elapsed(now_s - started_s)
            line = (
                f"      {what}, {elapsed}{describe_progress(_last_bytes(log), now_s - started_s)}"
            )
            if live:
                sys.stdout.write("\r" + line[:_LINE_WIDTH].ljust(_LINE_WIDTH))
                sys.stdout.flush()
            else:
                say(line)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        if live:
            sys.stdout.write("\r" + " " * _LINE_WIDTH + "\r")
            sys.stdout.flush()


def describe_progress(output: bytes, elapsed_s: float) -> str:
    """How far the command is, from the last of its own output: a percentage and the time that
    is left at this pace, or its last line."""
    counters = _COUNTER.findall(output)
    if counters:
        done, total = (int(number) for number in counters[-1])
        if total:
            return f", {100 * done // total} %{_left(done / total, elapsed_s)}"
    lines = output.decode("utf-8", "replace").splitlines()
    spoken = [line.strip() for line in lines if line.strip()]
    if not spoken:
        return ""
    # What pip and compilers print may hold anything; the console may know only ASCII.
    return ": " + spoken[-1].encode("ascii", "replace").decode("ascii")[:60]


def _left(part: float, elapsed_s: float) -> str:
    """A guess, so in whole minutes."""
    if part < _TELLING:
        return ""
    left_s = elapsed_s * (1 - part) / part
    return f", about {round(left_s / 60)} min left" if left_s >= 90 else ", about a minute left"


def format_elapsed(seconds: float) -> str:
    """``4 s`` or ``3 min 20 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def tail_text(log: Path, lines: int = 40) -> str:
    """The last lines of a log, as ASCII."""
    text = _last_bytes(log, 16384).decode("utf-8", "replace")
    return "\n".join(text.encode("ascii", "replace").decode("ascii").splitlines()[-lines:])


def _last_bytes(log: Path, count: int = 4096) -> bytes:
    with log.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - count))
        return file.read()
