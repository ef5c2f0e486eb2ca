"""Cancel, Close and Escape of a dialog over something that runs."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from moelauncher.gui.controls.run_dialog import RunDialog


def test_escape_ends_what_runs_once_and_closes_after_that(qtbot: QtBot) -> None:
    dialog = RunDialog("Tune")
    qtbot.addWidget(dialog)
    asked: list[bool] = []
    dialog.cancelled.connect(lambda: asked.append(True))
    dialog.open()
    dialog.set_running(True)
    assert dialog.cancel.text() == "Cancel"
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert asked == [True]
    assert dialog.isVisible()
    assert not dialog.cancel.isEnabled()
    dialog.set_running(False)
    assert dialog.cancel.text() == "Close"
    assert dialog.cancel.isEnabled()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert asked == [True]
    assert not dialog.isVisible()


def test_the_button_does_what_escape_does(qtbot: QtBot) -> None:
    dialog = RunDialog("Tune")
    qtbot.addWidget(dialog)
    dialog.open()
    dialog.set_running(True)
    with qtbot.waitSignal(dialog.cancelled):
        dialog.cancel.click()
    dialog.set_running(False)
    dialog.cancel.click()
    assert not dialog.isVisible()
