"""``--screenshot FILE``: a picture of the settled window, then the program ends.

In: the window, what must have happened before the picture, and the file. Out: the picture,
and an exit status: 1 where the window did not settle in time or the file could not be
written. For documentation, and for the check of a built package. The window's thread.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, QTimer
from PySide6.QtWidgets import QWidget

_log = logging.getLogger(__name__)

_LOOK_EVERY_MS = 250
#: So often in a row it must look settled: bars move for a moment, meters come once a second.
_SETTLED_LOOKS = 6
_PATIENCE_LOOKS = 480


class Screenshot(QObject):
    """Takes the one picture, then closes the window and ends the event loop."""

    def __init__(self, window: QWidget, is_settled: Callable[[], bool], file: Path) -> None:
        super().__init__(window)
        self._window = window
        self._is_settled = is_settled
        self._file = file
        self._settled = self._looks = 0
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_EVERY_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        self._looks += 1
        self._settled = self._settled + 1 if self._is_settled() else 0
        if self._settled >= _SETTLED_LOOKS:
            self._take()
        elif self._looks >= _PATIENCE_LOOKS:
            self._fail("no screenshot: the window did not settle")

    def _take(self) -> None:
        if self._window.grab().save(str(self._file)):
            self._end(0)
        else:
            self._fail(f"the screenshot could not be written to {self._file}")

    def _fail(self, why: str) -> None:
        _log.error("%s", why)
        if sys.stderr is not None:  # a Windows program without a console has none
            sys.stderr.write(f"moelauncher: {why}\n")
        self._end(1)

    def _end(self, status: int) -> None:
        self._timer.stop()
        self._window.close()
        QCoreApplication.exit(status)
