"""A path as text that any file can hold, and back.

In: a path. Out: its plain text; a file URI where a name in it is no valid Unicode, as Linux and
Windows allow: neither TOML nor UTF-8 can hold such a name. Pure; any thread.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

_URI = "file:///"
_DRIVE = re.compile(r"/[A-Za-z]:")


def path_as_text(path: Path) -> str:
    """``path`` as it is stored. Absolute paths only where their names are no valid text."""
    text = str(path)
    if text.isprintable() or _is_text(text):
        return text
    name = path.as_posix()
    return _URI + quote_from_bytes(os.fsencode(name.removeprefix("/")))


def path_of_text(text: str) -> Path:
    """The path that :func:`path_as_text` wrote, or a person."""
    if not text.startswith(_URI):
        return Path(text)
    name = os.fsdecode(unquote_to_bytes(text[len(_URI) - 1 :]))
    if sys.platform == "win32" and _DRIVE.match(name):
        name = name[1:]
    return Path(name)


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
