"""What the window remembers of itself, apart from the settings.

In and out: JSON values by name (sizes, the last selection, the choices for each model).
Losing the file costs nothing, so a broken one is quietly begun anew. One thread.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError

_log = logging.getLogger(__name__)


class StateFile:
    """A small store: ``get``, ``set``, and ``save`` when the window closes or rests."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, object] = {}
        self._changed = False
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return
        if isinstance(values, dict):
            self._values = values

    def get(self, name: str) -> object:
        """The value, or None. Check its type: a person may have edited the file."""
        return self._values.get(name)

    def set(self, name: str, value: object) -> None:
        """Remember ``value`` (what JSON can hold); None forgets it."""
        if value is None:
            self._changed |= self._values.pop(name, None) is not None
        elif name not in self._values or self._values[name] != value:
            self._values[name] = value
            self._changed = True

    def save(self) -> bool:
        """Write what changed; False (and a line in the log) where that is impossible."""
        if not self._changed:
            return True
        text = json.dumps(self._values, indent=1, sort_keys=True)
        try:
            write_text_atomically(self._path, text + "\n")
        except LauncherError as error:
            _log.warning("%s", error.sentence)
            return False
        self._changed = False
        return True
