"""The window's program: it alone knows all rooms. It wires, and decides nothing.

``build(argv)`` makes everything and shows the window without entering the event loop;
``main(argv)`` is ``build`` plus the loop. What is slow to import (pyqtgraph, llama.cpp)
comes after the first paint.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication

from moelauncher import __version__
from moelauncher.app.arguments import read_arguments
from moelauncher.app.program import Program
from moelauncher.core.paths import app_paths
from moelauncher.core.resources import resource_path
from moelauncher.core.translate import install_translator
from moelauncher.engine.llama_engine import ENGINE_THREAD
from moelauncher.gui.job_threads import LEFT_BEHIND
from moelauncher.gui.uncaught_errors import catch_what_is_left
from moelauncher.meters.windows_foreground import let_server_come_to_front

#: How long a thread may keep the interpreter while another one waits for it.
SWITCH_INTERVAL_S = 0.0005


def build(argv: Sequence[str]) -> Program:
    """The whole program, its window shown, without the event loop.

    ``argv`` as on the command line, with or without the program's own name in front.
    Exits with 2 on wrong arguments. The main thread.
    """
    arguments = read_arguments(argv)
    # The engine's thread needs the interpreter for some microseconds at every token. With the
    # usual 5 ms, painting made it wait as long: 0.73 of the decode rate instead of 0.9 and more.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    app = _application()
    program = Program(app, arguments)
    # Where the interpreter ends under an open window, its threads must have ended before.
    atexit.register(program.close)
    program.start()
    return program


def _application() -> QApplication:
    """The one application object, made at the first call."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["moelauncher"])
    app.setApplicationName("moelauncher")
    app.setApplicationDisplayName("MoE Launcher")
    app.setApplicationVersion(__version__)
    QGuiApplication.setDesktopFileName("moelauncher")
    app.setWindowIcon(QIcon(str(resource_path("icons/moelauncher.svg"))))
    install_translator(partial(QCoreApplication.translate, "core"))
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and run until it is closed; returns the exit status."""
    argv = sys.argv if argv is None else argv
    arguments = read_arguments(argv)
    if _handed_over(arguments) or arguments.quit:
        return 0
    program = build(argv)
    catch_what_is_left(program.window.status)
    # First: a signal must not end a run that already counts as begun.
    _close_on_signals(program)
    program.watch_run()
    try:
        status = program.app.exec()
    finally:
        program.close()
    if LEFT_BEHIND or any(thread.name == ENGINE_THREAD for thread in threading.enumerate()):
        # All is saved. A thread that hangs in the system may come back while the interpreter
        # takes Qt apart under it.
        os._exit(status)
    return status


def _close_on_signals(program: Program) -> None:
    """Ctrl+C in the terminal closes the window as its frame's button does; so do the end of the
    desktop's session and that of the terminal."""

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows knows no SIGHUP
            signal.signal(getattr(signal, name), lambda *_: program.end_soon())


def _handed_over(arguments: argparse.Namespace) -> bool:
    """Whether a window that is open already took the arguments."""
    if arguments.screenshot is not None:
        return False
    from moelauncher.gui.single_instance import LaterStart, hand_over, socket_name

    _application()
    start = LaterStart(
        models=() if arguments.model is None else (arguments.model,),
        demo=arguments.demo,
        quits=arguments.quit,
        activation_token=os.environ.get("XDG_ACTIVATION_TOKEN", ""),
    )
    name = socket_name(app_paths(arguments.basedir).config)
    return hand_over(name, start, let_server_come_to_front)
