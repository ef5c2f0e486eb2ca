"""A path as text that any file can hold, and back.

In: a path. Out: its plain text; a file URI where a name in it is no valid Unicode, as Linux
allows: neither TOML nor UTF-8 can hold such a name. Pure; any thread.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

_URI = "file:///"


def path_as_text(path: Path) -> str:
    """``path`` as it is stored. Absolute paths only where their names are no valid text."""
    text = str(path)
    if text.isprintable() or _is_text(text):
        return text
    return "file://" + quote_from_bytes(os.fsencode(path))


def path_of_text(text: str) -> Path:
    """The path that :func:`path_as_text` wrote, or a person."""
    if not text.startswith(_URI):
        return Path(text)
    return Path(os.fsdecode(unquote_to_bytes(text[len(_URI) - 1 :])))


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
