"""What the user keeps for all chats: system prompts, presets, and what was last set for a model.

In and out: JSON values by table and name, in one file that is written whole at every change.
A broken file is moved aside, never overwritten; see ``note``. One thread.
"""

from __future__ import annotations

import json
from pathlib import Path

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.damaged_file import set_aside
from moelauncher.core.translate import tr

#: System prompts by name: a text each.
PROMPTS = "prompts"
#: Sampling presets of the user by name: numbers by setting name.
PRESETS = "presets"
#: What was last set for a model, by its path: a chat's settings.
MODELS = "models"
#: Templates that stand in for a model's own, by its path: a text each.
TEMPLATES = "templates"
_TABLES = (PROMPTS, PRESETS, MODELS, TEMPLATES)


class ChatLibrary:
    """The file; reading it never raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tables: dict[str, dict[str, object]] = {table: {} for table in _TABLES}
        #: What was found wrong while reading, as a sentence; else empty.
        self.note = ""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except OSError as error:
            self.note = tr("{path} cannot be read: {reason}.").format(
                path=path, reason=error.strerror or str(error)
            )
            return
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            self.note = set_aside(
                path,
                moved=tr(
                    "The saved prompts and presets could not be understood and were moved to "
                    "{path}."
                ),
                stays=tr("{path} cannot be understood; its prompts and presets are not there."),
            )
            return
        for table in _TABLES:
            found = document.get(table)
            if isinstance(found, dict):
                self._tables[table] = found

    def names(self, table: str) -> list[str]:
        """All names in ``table``, in alphabetical order."""
        return sorted(self._tables[table], key=str.casefold)

    def get(self, table: str, name: str) -> object:
        """What is kept under ``name``, or None. Check its type: a person may edit the file."""
        return self._tables[table].get(name)

    def text(self, table: str, name: str) -> str:
        """What is kept under ``name`` where that is a text, else nothing."""
        found = self.get(table, name)
        return found if isinstance(found, str) else ""

    def put(self, table: str, name: str, value: object) -> None:
        """Keep ``value`` (what JSON can hold); None forgets it. Raises LauncherError."""
        before = self._tables[table].get(name)
        if value == before:
            return
        if value is None:
            del self._tables[table][name]
        else:
            self._tables[table][name] = value
        text = json.dumps(self._tables, indent=1, sort_keys=True, ensure_ascii=False)
        write_text_atomically(self._path, text + "\n")
