"""The log: a rotating file for later.

In: Python's logging, and llama.cpp's lines as :class:`NativeLog` events. Out: a file. Any
thread.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
from pathlib import Path

from moelauncher.core.engine_protocol import NativeLog
from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import made

_NATIVE = logging.getLogger("llama.cpp")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_FILE_BYTES = 2 << 20
_FILES_KEPT = 3


class _QuietFile(logging.handlers.RotatingFileHandler):
    """A full disk, or a log that another process holds open, must not soil the terminal."""

    def doRollover(self) -> None:  # noqa: N802 - logging's own name
        """Begin a new file; where that is refused the old one grows on.

        Windows renames no file that another process has open.
        """
        try:
            super().doRollover()
        except OSError:
            # Another try would push one more of the older files out.
            self.maxBytes = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Lose the line."""

    def close(self) -> None:
        """Let go of the file, also where its last lines do not fit on the disk."""
        with contextlib.suppress(OSError):
            super().close()


class LogSetup:
    """Logging of this process, while it lasts. :meth:`close` undoes it (tests, end)."""

    def __init__(self, log_file: Path) -> None:
        #: Why there is no file, as a sentence; "" where there is one.
        self.problem = ""
        # Without any handler Python would write to the terminal where there is no file.
        self._handlers: list[logging.Handler] = [logging.NullHandler()]
        try:
            made(log_file.parent)
            file = _QuietFile(
                log_file,
                maxBytes=_FILE_BYTES,
                backupCount=_FILES_KEPT,
                encoding="utf-8",
                errors="replace",
                delay=True,
            )
        except (LauncherError, OSError) as error:
            self.problem = str(error)
        else:
            file.setFormatter(logging.Formatter(_FORMAT))
            file.setLevel(logging.DEBUG)
            self._handlers.append(file)
        root = logging.getLogger()
        self._level = root.level
        root.setLevel(logging.INFO)
        for handler in self._handlers:
            root.addHandler(handler)

    def close(self) -> None:
        """Take the handlers off and close the file."""
        root = logging.getLogger()
        root.setLevel(self._level)
        for handler in self._handlers:
            root.removeHandler(handler)
            handler.close()
        self._handlers.clear()


def log_native(event: NativeLog) -> None:
    """A line of llama.cpp into the log. Control characters are shown, never obeyed."""
    text = event.text.rstrip("\n")
    if not text.isprintable():
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    _NATIVE.log(_LEVELS.get(event.level, logging.INFO), "%s", text)
