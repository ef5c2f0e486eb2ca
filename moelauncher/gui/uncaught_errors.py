"""Errors that nobody caught, and Qt's own messages: into the log, each kind once to the user.

In: nothing. Out: hooks of this process, until it ends. The window's thread.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QtMsgType, qInstallMessageHandler

from moelauncher.gui.program.status_line import StatusLine

_log = logging.getLogger(__name__)

_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def catch_what_is_left(status: StatusLine) -> None:
    """Send what nobody caught to the log: each kind of error is shown once."""
    shown: set[str] = set()

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.error("not caught", exc_info=(kind, error, trace))
        if kind.__name__ not in shown:
            shown.add(kind.__name__)
            text = QCoreApplication.translate(
                "app", "Something went wrong inside the program: {error}. The log has the details."
            )
            status.set_message(text.format(error=error), "error")

    def tell_of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            _log.error(
                "not caught in a thread",
                exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
            )

    sys.excepthook = tell
    threading.excepthook = tell_of_thread
    qInstallMessageHandler(
        lambda kind, _, text: logging.getLogger("qt").log(_QT_LEVELS.get(kind, 20), "%s", text)
    )
