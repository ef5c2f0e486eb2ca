"""gui/program/log_pane.py: bounded lines, copied whole, never rendered."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from moelauncher.gui.program.log_pane import MAXIMUM_LINES, LogPane


@pytest.fixture
def log(qtbot) -> LogPane:
    log = LogPane()
    qtbot.addWidget(log)
    log.resize(600, 200)
    log.show()
    return log


def test_levels_are_written_out(log: LogPane) -> None:
    log.append("info", "load_tensors: offloaded")
    log.append("warning", "mmap is slow")
    log.append("error", "out of memory\n")
    assert log.text.toPlainText().split("\n") == [
        "  load_tensors: offloaded",
        "W mmap is slow",
        "E out of memory",
    ]


def test_markup_stays_text(log: LogPane) -> None:
    log.append("info", "<b>bold</b> &amp;")
    assert log.text.toPlainText() == "  <b>bold</b> &amp;"


def test_old_lines_go(log: LogPane) -> None:
    for i in range(MAXIMUM_LINES + 10):
        log.append("debug", str(i))
    assert log.text.document().blockCount() == MAXIMUM_LINES
    assert log.text.toPlainText().endswith(str(MAXIMUM_LINES + 9))


def test_it_follows_the_end_only_from_the_end(log: LogPane) -> None:
    for i in range(100):
        log.append("info", str(i))
    bar = log.text.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(10)
    log.append("info", "more")
    assert bar.value() == 10


def test_copy_and_folder(qtbot, log: LogPane) -> None:
    log.append("info", "a line")
    qtbot.mouseClick(log.copy, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == "  a line"
    with qtbot.waitSignal(log.folder_requested):
        qtbot.mouseClick(log.folder, Qt.MouseButton.LeftButton)
