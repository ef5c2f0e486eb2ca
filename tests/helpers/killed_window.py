"""A window in a process of its own, which is ended in the middle of a reply.

Run as ``python -m tests.helpers.killed_window BASEDIR in_view|elsewhere``: loads the sample model,
asks for a long story, looks at it or at an empty chat, prints how many characters of it are there
from time to time, a number a line, and never ends by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QPushButton

from moelauncher import app
from moelauncher.core.session_state import SessionState

ROOT = Path(__file__).resolve().parents[2]


def started(basedir: Path, looks: str) -> subprocess.Popen[str]:
    """Start it. Each line that it prints is the number of characters there."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.killed_window", str(basedir), looks],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def main(basedir: str, looks: str) -> None:
    program = app.build(["--demo", "--basedir", basedir])
    program.watch_run()
    launch = program.window.findChild(QPushButton, "launchButton")
    field = program.window.findChild(QPlainTextEdit, "chatInput")
    send = program.window.findChild(QPushButton, "sendButton")
    assert launch is not None and field is not None and send is not None

    def live_until(condition) -> None:  # type: ignore[no-untyped-def]
        while not condition():
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)

    live_until(launch.isEnabled)
    launch.click()
    live_until(lambda: program.session.state is SessionState.READY)
    field.setPlainText("Count from one to one thousand, a number a line.")
    send.click()
    live_until(lambda: program.session.state is SessionState.GENERATING)
    if looks == "elsewhere":
        program.session.chat.new_chat()

    def tell() -> None:
        chat = program.session.chat.open.answering
        reply = chat.conversation.last_reply if chat is not None else None
        sys.stdout.write(f"{len(reply.text) if reply else 0}\n")
        sys.stdout.flush()

    clock = QTimer()
    clock.timeout.connect(tell)
    clock.start(50)
    live_until(lambda: False)


if __name__ == "__main__":
    main(*sys.argv[1:])
