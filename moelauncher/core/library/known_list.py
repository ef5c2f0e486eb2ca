"""The model list as the last look left it, there before any folder is looked at again.

In: the entries that a finished scan found, and what it looked at. Out: the same entries in the
next run of the program, if it looks at the same. They may be out of date, so a scan follows. Kept
in the cache folder: losing it costs only time, so nothing here raises. Any thread, one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from moelauncher import __version__
from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog_entry import CatalogEntry, from_stored, to_stored

_SCHEMA = 1
_MOST = 20_000


def read_known_list(folder: Path, looked_at: Sequence[str]) -> list[CatalogEntry]:
    """What was found last; nothing where something else was ``looked_at``, or it is damaged."""
    try:
        stored = json.loads(_file(folder).read_text(encoding="utf-8"))
        if stored["head"] != _head(looked_at):
            return []
        return [entry for entry in map(_entry_of, stored["rows"]) if entry is not None]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def write_known_list(
    folder: Path, looked_at: Sequence[str], entries: Iterable[CatalogEntry]
) -> None:
    """Keep these entries for the next start. Half-fetched files are told by a scan alone."""
    rows = [_row_of(entry) for entry in entries if entry.role != "download"]
    text = json.dumps({"head": _head(looked_at), "rows": rows[:_MOST]})
    try:
        if _file(folder).read_text(encoding="utf-8") == text:
            return
    except (OSError, ValueError):
        pass
    try:
        write_text_atomically(_file(folder), text)
    except LauncherError:
        return


def _file(folder: Path) -> Path:
    return folder / "list.json"


def _head(looked_at: Sequence[str]) -> list[str]:
    return [f"{_SCHEMA}/{__version__}", *looked_at]


def _row_of(entry: CatalogEntry) -> list[object]:
    return [
        str(entry.path),
        [str(file) for file in entry.files],
        None if entry.mmproj is None else str(entry.mmproj),
        entry.problem,
        entry.hint,
        to_stored(entry),
    ]


def _entry_of(row: list[object]) -> CatalogEntry | None:
    path, files, mmproj, problem, hint, stored = row
    texts = [path, problem, hint, *([] if mmproj is None else [mmproj])]
    if not all(isinstance(text, str) for text in texts) or not isinstance(files, list):
        return None
    return from_stored(
        tuple(Path(file) for file in files),
        stored if isinstance(stored, dict) else {},
        path=Path(str(path)),
        mmproj=None if mmproj is None else Path(str(mmproj)),
        problem=str(problem),
        hint=str(hint),
    )
