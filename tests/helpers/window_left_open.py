"""The program with all its dialogs open, whose process then ends without closing any of them.

Run as ``python -m tests.helpers.window_left_open BASEDIR quit|exit|fall``, over a base folder
with the sample model: the event loop is told to quit; or ``sys.exit`` is called within it; or
there is none, and the script comes to its end. Prints the dialogs that are not open, one a line.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QInputDialog, QMessageBox

from moelauncher import app
from moelauncher.app.program import Program
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.session_state import SessionState
from moelauncher.gui import jobs
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog
from moelauncher.gui.chats.link_question import ask_and_open
from moelauncher.gui.jobs import JobRunner


def live_until(condition: Callable[[], bool]) -> None:
    while not condition():
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)


def open_everything(program: Program) -> None:
    """Every dialog there is, over a window whose own bars and pages are open too."""
    session, window = program.session, program.window
    live_until(lambda: session.state is SessionState.SELECTED)
    facts = session.planner.facts
    assert facts is not None
    window.model_list.menus.trash.emit(entry_of(facts.path))
    live_until(lambda: session.library.actions.question is not None)
    launch = window.placement.launch
    live_until(launch.isEnabled)
    launch.click()
    live_until(lambda: session.state is SessionState.READY)
    session.outcome.show_report()
    session.chat.edit_settings()
    chat_settings = window.findChild(ChatSettingsDialog)
    assert chat_settings is not None
    chat_settings.presets.save.click()
    session.chat.settings.template_requested.emit(window)
    session.cards.open_selected()
    session.downloads.open()
    window.speed.tune_button.click()
    window.chats.compare_requested.emit()
    ask_and_open("https://example.org", window)
    session.profiles.menu.aboutToShow.emit()
    next(a for a in session.profiles.menu.actions() if a.text() == "Save as…").trigger()
    for wish in ("settings", "doctor", "about", "welcome", "log"):
        getattr(program.desk.menu, wish).emit()
    window.chat.find_bar.open()
    for undo in (window.chats.undo, window.chat.undo):
        undo.offer("1 message was deleted", lambda: None)
    runners = program.findChildren(JobRunner)
    live_until(lambda: not any(runner._running for runner in runners))


def unseen() -> Iterator[str]:
    """The kinds of dialogs that are not open."""
    open_now = [type(window) for window in QApplication.topLevelWidgets() if window.isVisible()]
    kinds: list[type] = [QDialog]
    for kind in kinds:
        kinds += kind.__subclasses__()
    own = [kind for kind in kinds if kind.__module__.startswith("moelauncher.")]
    leaves = [kind for kind in own if not kind.__subclasses__()]
    for kind in (*leaves, QInputDialog, QMessageBox):
        if kind not in open_now:
            yield kind.__name__


def main(basedir: str, how: str) -> int:
    # Jobs of a busy machine are waited for: what is left behind ends the process untidily.
    jobs.CLOSE_LIMIT_S = 300
    argv = ["--demo", "--basedir", basedir]
    build = app.build

    def leave(program: Program) -> None:
        try:
            open_everything(program)
        except Exception:
            # The window would go on, with a line in its log.
            traceback.print_exc()
            os._exit(1)
        sys.stdout.writelines(f"{name}\n" for name in unseen())
        sys.stdout.flush()
        if how == "quit":
            program.app.quit()
        elif how == "exit":
            sys.exit(0)

    if how == "fall":
        leave(build(argv))
        return 0

    def build_and_leave(argv: list[str]) -> Program:
        program = build(argv)
        QTimer.singleShot(0, program, lambda: leave(program))
        return program

    app.build = build_and_leave
    return app.main(argv)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
