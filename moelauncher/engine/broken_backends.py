"""GPU modules that ended the child process while they started: left out, and remembered.

In: the child's last words. Out: names, in the environment of this process (so that the
engine in it leaves them out too) and in one file. The memory lasts until the drivers or the
program change. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from moelauncher import __version__
from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError
from moelauncher.core.windows_registry import display_adapters
from moelauncher.engine.backend_modules import (
    BROKEN_VARIABLE,
    DEVICES,
    EVERY_GPU,
    LOADING,
    listed,
    names_of,
)
from moelauncher.engine.vulkan_survey import DRIVER_FOLDERS


def suspect_of(last_words: Iterable[str]) -> str | None:
    """The GPU module that was being started when the child ended; None where it was another."""
    name = ""
    for line in last_words:
        if line.startswith(LOADING + ": "):
            name = line.removeprefix(LOADING + ": ").strip()
        elif line == LOADING + ":":
            name = ""
    if name == DEVICES:
        return EVERY_GPU
    return name if name and not name.startswith("cpu-") else None


class BrokenBackends:
    """What is known to be broken. ``file`` None: for this process only."""

    def __init__(
        self,
        file: Path | None = None,
        *,
        environ: MutableMapping[str, str] = os.environ,
        fingerprint: str | None = None,
    ) -> None:
        self._file = file
        self._environ = environ
        self._fingerprint = fingerprint if fingerprint is not None else driver_fingerprint()
        self._lock = threading.Lock()
        if names := self._remembered():
            self._publish(names)

    @property
    def names(self) -> frozenset[str]:
        """The modules that are left out now."""
        return names_of(self._environ.get(BROKEN_VARIABLE, ""))

    def add(self, name: str) -> bool:
        """Leave ``name`` out from now on; False where it was left out already."""
        with self._lock:
            if name in self.names:
                return False
            self._publish(self.names | {name})
            if self._file is not None:
                document = {"fingerprint": self._fingerprint, "names": sorted(self.names)}
                with contextlib.suppress(LauncherError, OSError):  # then it is found out again
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    write_text_atomically(self._file, json.dumps(document))
            return True

    def forget(self) -> None:
        """Try everything again."""
        with self._lock:
            self._environ.pop(BROKEN_VARIABLE, None)
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.unlink(missing_ok=True)

    def _publish(self, names: frozenset[str]) -> None:
        self._environ[BROKEN_VARIABLE] = listed(self.names | names)

    def _remembered(self) -> frozenset[str]:
        if self._file is None:
            return frozenset()
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
            if document["fingerprint"] != self._fingerprint:
                return frozenset()
            return frozenset(str(name) for name in document["names"])
        except (OSError, ValueError, KeyError, TypeError):
            return frozenset()


def driver_fingerprint(folders: Iterable[Path] = DRIVER_FOLDERS) -> str:
    """Changes when a graphics driver or this program is updated: a driver changes its manifest,
    on Windows its version in the registry.
    """
    parts = [__version__, sys.platform]
    for adapter in display_adapters():
        parts.append(f"{adapter.get('DriverDesc')} {adapter.get('DriverVersion')}")
    for folder in folders:
        with contextlib.suppress(OSError):
            for file in sorted(folder.iterdir()):
                stat = file.stat()
                parts.append(f"{file} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
