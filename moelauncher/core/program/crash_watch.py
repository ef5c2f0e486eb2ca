"""Was the last run ended by a crash, and what was it doing? Native and Python traces to a file.

In: the log folder. Out: :class:`AbnormalEnd` of a run before, and a file for faulthandler. A
running program keeps a small marker there (``running-<pid>.json``) with what it is doing, and
takes it away at an orderly end. A marker whose process is gone is an abnormal end. Losing any
of this costs nothing. One thread.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from moelauncher import __version__
from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import made
from moelauncher.core.program.mapped_files import MappedFile, as_json, from_json

_MARKER = "running-*.json"
#: How faulthandler says that a page of a mapped file could not be read, by system.
_PAGE_ERRORS = ("Fatal Python error: Bus error", "Windows fatal exception: page error")


@dataclass(frozen=True)
class AbnormalEnd:
    """A run that did not end in order."""

    version: str
    #: What it was doing, as it noted itself: "loading", "generating", or "".
    activity: str
    #: The model that was loaded or being loaded, its file and placement; "" and None without one.
    model: str
    path: str
    cpu_moe: int | None
    n_gpu_layers: int | None
    #: The trace's file, kept for a report; None where the process was killed without a word.
    file: Path | None
    #: A page of a file in memory could not be read: it was cut short, or its drive failed.
    page_error: bool = False
    #: The model's files as they stood when it was loaded; empty where they were not mapped.
    mapped: tuple[MappedFile, ...] = ()


class CrashWatch:
    """This run's marker and crash file. :meth:`start` first, :meth:`finish` at an orderly end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marker = folder / f"running-{os.getpid()}.json"
        self._file: TextIO | None = None
        self._facts: dict[str, object] = {}

    def start(self) -> AbnormalEnd | None:
        """Begin to watch; returns how the newest run before ended, if that was abnormal."""
        before = self._collect()
        try:
            made(self._folder)
            self._file = self._trace_file(os.getpid()).open("w", encoding="utf-8")
        except (LauncherError, OSError):
            return before
        faulthandler.enable(self._file)
        self._facts = {"pid": os.getpid(), "version": __version__, "started": time.time()}
        self._write()
        return before

    def note(
        self,
        activity: str,
        model: str = "",
        path: str = "",
        cpu_moe: int | None = None,
        n_gpu_layers: int | None = None,
    ) -> None:
        """What the program does from now on: what a crash will be told with."""
        self._facts |= {
            "activity": activity,
            "model": model,
            "path": path,
            "cpu_moe": cpu_moe,
            "n_gpu_layers": n_gpu_layers,
        }
        self._write()

    def note_mapped(self, files: Iterable[MappedFile]) -> None:
        """The files that are mapped from now on, as they stood when that began."""
        self._facts["mapped"] = as_json(files)
        self._write()

    def finish(self) -> None:
        """An orderly end: nothing is left. Safe to call twice."""
        if self._file is None:
            return
        # What comes after (drivers that crash while they end) goes where it went before.
        if sys.stderr is not None:
            faulthandler.enable()
        else:
            faulthandler.disable()
        self._file.close()
        self._file = None
        for path in (self._marker, self._trace_file(os.getpid())):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._marker.write_text(json.dumps(self._facts), encoding="utf-8")

    def _trace_file(self, pid: int) -> Path:
        return self._folder / f"crash-{pid}.txt"

    def _collect(self) -> AbnormalEnd | None:
        """Take away the markers of ended runs; the newest one's story."""
        newest: tuple[float, AbnormalEnd] | None = None
        for marker in sorted(self._folder.glob(_MARKER)) if self._folder.is_dir() else []:
            facts = _read(marker)
            pid = facts.get("pid")
            if isinstance(pid, int) and pid != os.getpid() and self._is_running(pid):
                continue
            with contextlib.suppress(OSError):
                marker.unlink()
            if not isinstance(pid, int):
                continue
            started = facts.get("started")
            when = started if isinstance(started, int | float) else 0.0
            end = self._end_of(pid, facts)
            if newest is None or when >= newest[0]:
                newest = (when, end)
        return newest[1] if newest else None

    def _is_running(self, pid: int) -> bool:
        if sys.platform == "win32":
            # Numbers are soon given again there; but a file is held by who has it open.
            return _is_held(self._trace_file(pid))
        return _is_process(pid)

    def _end_of(self, pid: int, facts: dict[str, object]) -> AbnormalEnd:
        file, page_error = None, False
        with contextlib.suppress(OSError):
            text = self._trace_file(pid).read_text(encoding="utf-8", errors="replace")
            page_error = any(line.startswith(_PAGE_ERRORS) for line in text.splitlines())
            if text.strip():
                file = self._folder / "last-crash.txt"
                self._trace_file(pid).replace(file)
            else:
                self._trace_file(pid).unlink()
        return AbnormalEnd(
            version=str(facts.get("version", "")),
            activity=str(facts.get("activity", "")),
            model=str(facts.get("model", "")),
            path=str(facts.get("path", "")),
            cpu_moe=_count(facts.get("cpu_moe")),
            n_gpu_layers=_count(facts.get("n_gpu_layers")),
            file=file,
            page_error=page_error,
            mapped=from_json(facts.get("mapped")),
        )


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _read(marker: Path) -> dict[str, object]:
    try:
        facts = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_held(path: Path) -> bool:
    """Whether a program has the file open; told on Windows, where it cannot be renamed then."""
    try:
        path.rename(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _is_process(pid: int) -> bool:
    """Whether a process of that number exists. It may be another program's: then we wait."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return _is_ours(pid)


def _is_ours(pid: int) -> bool:
    """After a restart of the machine the number may be anybody's."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().lower()
    except OSError:
        return True
    return not command or b"moelauncher" in command or b"python" in command
