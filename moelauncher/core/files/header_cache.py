"""What was read from headers before, so that a list of models is there at once.

In: the files of a model as they are on disk now. Out: the small facts that were stored for
exactly these files, or None. Losing the cache costs only time, so nothing here is ever an
error: a file that is damaged, foreign or of another version is left unread and replaced. Two
processes may use it at once: what the other saved meanwhile is kept. One thread at a time, but
for ``put``, which header workers may call beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moelauncher import __version__
from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError

#: Raise it when the stored facts mean something else than before. The program's version is
#: part of the key too: what llama.cpp can load moves with it.
_SCHEMA = 1
_MAX_ENTRIES = 4096


@dataclass(frozen=True)
class FileStamp:
    """One file as it is now: a change of any of these makes stored facts worthless."""

    path: str
    size_bytes: int
    mtime_ns: int


class HeaderCache:
    """Stored facts by the files they came from. ``folder`` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / "headers.json"
        self._entries = self._stored()
        self._changed = False
        #: How often the facts of files were asked for and not known.
        self.n_missed = 0

    def get(self, stamps: Sequence[FileStamp]) -> Mapping[str, object] | None:
        """The facts stored for exactly these files; None where they are not known."""
        stored = self._entries.get(stamps[0].path)
        if stored is None or stored[0] != _stamp_list(stamps):
            self.n_missed += 1
            return None
        # Moved to the end: the oldest unused ones are dropped first. A header worker's thread may
        # have been quicker.
        self._entries.pop(stamps[0].path, None)
        self._entries[stamps[0].path] = stored
        facts = stored[1]
        return facts if isinstance(facts, dict) else None

    def stored_role(self, path: Path) -> str | None:
        """The role that was stored for ``path``, whatever has become of the file since."""
        stored = self._entries.get(str(path))
        role = stored[1].get("role") if stored and isinstance(stored[1], dict) else None
        return role if isinstance(role, str) else None

    def put(self, stamps: Sequence[FileStamp], facts: Mapping[str, object]) -> None:
        """Store ``facts`` (JSON values) for these files."""
        self._entries.pop(stamps[0].path, None)
        self._entries[stamps[0].path] = [_stamp_list(stamps), dict(facts)]
        self._changed = True

    def save(self) -> None:
        """Write the cache where something changed; a failure is silent."""
        if self._file is None or not self._changed:
            return
        # Ours come last: they are the newer ones, and the first are dropped first.
        others = {k: v for k, v in self._stored().items() if k not in self._entries}
        kept = dict(list({**others, **self._entries.copy()}.items())[-_MAX_ENTRIES:])
        text = json.dumps({"version": _version(), "entries": kept})
        try:
            write_text_atomically(self._file, text)
        except LauncherError:
            return
        self._changed = False

    def _stored(self) -> dict[str, list[object]]:
        """What the file holds; nothing where it cannot be used."""
        if self._file is None:
            return {}
        try:
            stored = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(stored, dict) or stored.get("version") != _version():
            return {}
        entries = stored.get("entries")
        if not isinstance(entries, dict):
            return {}
        return {
            path: entry
            for path, entry in entries.items()
            if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)
        }


def _version() -> str:
    return f"{_SCHEMA}/{__version__}"


def _stamp_list(stamps: Sequence[FileStamp]) -> list[list[object]]:
    return [[stamp.path, stamp.size_bytes, stamp.mtime_ns] for stamp in stamps]
