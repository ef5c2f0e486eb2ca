"""Replace a small file whole, or not at all.

In: a path and its new text. A reader sees the old file or the new one, never a half.
Any thread; one writer a file.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

#: Windows refuses to replace a file while a virus scanner or an indexer looks at it.
_TRIES = 10
_PAUSE_S = 0.05


def write_text_atomically(
    path: Path,
    text: str,
    *,
    private: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Write ``text`` to ``path`` as UTF-8, making its folder. Raises LauncherError.

    ``private``: no other user of the machine can read it (on Windows the folder decides that).
    """
    half = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opener = _open_private if private else None
        with open(half, "w", encoding="utf-8", newline="\n", opener=opener) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        replace_patiently(half, path, pause)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first reason is the one to tell
            half.unlink()
        raise LauncherError(
            tr("Cannot write {path}: {reason}.").format(
                path=path, reason=error.strerror or str(error)
            ),
            tr("Check that the folder is yours and the disk is not full."),
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def replace_patiently(half: Path, path: Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Rename ``half`` to ``path``, over what is there; tries again for half a second where the
    system refuses. Raises OSError.
    """
    for attempt in range(_TRIES):
        try:
            half.replace(path)
            return
        except PermissionError:
            if attempt == _TRIES - 1:
                raise
            pause(_PAUSE_S)
