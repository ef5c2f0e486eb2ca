"""A text file quoted into a message.

In: a path. Out: Markdown that names the file and holds its text. Binary files are refused in
a sentence, and so is text in an encoding that nothing tells. Blocks on the disk: a pool thread.
"""

from __future__ import annotations

import locale
import re
import stat
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr

#: More text than any context holds.
LONGEST_BYTES = 8 * 2**20

#: No text has these; an encoding of one byte a letter would read them all the same.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_FENCE_RUN = re.compile(r"`{3,}")
_WORD = re.compile(r"[A-Za-z0-9+#]{1,16}")


def quote_file(path: Path, encoding: str | None = None) -> str:
    """The file's name and its text in a fenced block. Raises LauncherError saying why not.

    ``encoding``: of a text that is no Unicode; None: the system's own, as its programs write it.
    """
    name = display_name(path.name)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            # A pipe would be waited for without end.
            raise _no_text(name)
        with path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise LauncherError(
            tr("{name} cannot be read: {reason}.").format(
                name=name, reason=error.strerror or str(error)
            )
        ) from error
    if len(data) > LONGEST_BYTES:
        raise LauncherError(
            tr("{name} is too long to be quoted: no context holds so much text.").format(name=name)
        )
    text = _decoded(data, encoding or locale.getencoding())
    if text is None:
        raise _no_text(name) if _CONTROL.search(data) else _unknown_encoding(name)
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    ending = path.suffix.lstrip(".")
    language = ending if _WORD.fullmatch(ending) else ""
    return f"{name}:\n\n{fence}{language}\n{text}\n{fence}\n"


def _no_text(name: str) -> LauncherError:
    return LauncherError(
        tr("{name} is no text file, so it cannot be quoted.").format(name=name),
        tr("Text files of any kind can be dropped on the chat."),
    )


def _unknown_encoding(name: str) -> LauncherError:
    return LauncherError(
        tr("{name} is in an encoding that is not known here, so it cannot be quoted.").format(
            name=name
        ),
        tr("Save it as UTF-8, and drop it again."),
    )


def _decoded(data: bytes, encoding: str) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _in(data, "utf-16")
    if b"\x00" in data:
        return None
    text = _in(data, "utf-8-sig")
    return _in(data, encoding) if text is None and not _CONTROL.search(data) else text


def _in(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
