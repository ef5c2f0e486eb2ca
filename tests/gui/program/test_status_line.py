"""gui/program/status_line.py: parts, and one sentence over them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from moelauncher.gui.program.status_line import StatusLine


@pytest.fixture
def line(qtbot) -> StatusLine:
    line = StatusLine()
    qtbot.addWidget(line)
    line.resize(1200, 28)
    line.show()
    line.set_state("generating", "38.4 tok/s")
    line.set_context("context 1.2k of 32k")
    line.set_build("Vulkan · 7 threads")
    return line


def test_parts_that_say_nothing_take_no_room(line: StatusLine) -> None:
    assert line.state.isVisible()
    assert line.context.isVisible()
    assert not line.prompt.isVisible()
    line.set_prompt("prompt 412 tokens")
    assert line.prompt.isVisible()
    line.set_prompt("")
    assert not line.prompt.isVisible()


def test_an_error_stays_until_it_is_clicked(qtbot, line: StatusLine) -> None:
    line.set_message("The file is cut short. Download it again.", "error")
    assert line.message.isVisible()
    assert line.message.property("tone") == "bad"
    assert not line.state.isVisible()
    assert not line._timer.isActive()
    line.set_state("ready")
    assert not line.state.isVisible()
    qtbot.mouseClick(line.message, Qt.MouseButton.LeftButton)
    assert not line.message.isVisible()
    assert line.state.text() == "ready"
    assert line.state.isVisible()


def test_information_goes_by_itself(line: StatusLine) -> None:
    line.set_message("Loaded.", "good")
    assert line.message.isVisible()
    assert line._timer.isActive()
    line._timer.timeout.emit()
    assert not line.message.isVisible()
    assert line.state.isVisible()


def test_a_message_takes_all_the_room_there_is(qtbot, line: StatusLine) -> None:
    line.set_message("A sentence of some length, " * 5, "warning")
    qtbot.wait(1)
    assert line.message.width() > 900
    assert line.message.geometry().right() < line.build.geometry().left()
    line.clear_message()
    qtbot.wait(1)
    assert line.build.geometry().right() > 1150


def test_an_empty_message_clears(line: StatusLine) -> None:
    line.set_message("Something", "warning")
    line.set_message("")
    assert not line.message.isVisible()


def test_a_message_is_plain_text_of_one_line(line: StatusLine) -> None:
    line.set_message("<img src=x>\nsecond line", "error")
    assert line.message.text() == "<img src=x> second line"
    assert line.message.textFormat() == Qt.TextFormat.PlainText


def test_warnings_open_the_log(qtbot, line: StatusLine) -> None:
    assert not line.warnings.isVisible()
    line.set_warnings(1)
    assert line.warnings.text() == "1 warning"
    line.set_warnings(3)
    assert line.warnings.text() == "3 warnings"
    with qtbot.waitSignal(line.warnings_clicked):
        qtbot.mouseClick(line.warnings, Qt.MouseButton.LeftButton)
    line.set_warnings(0)
    assert not line.warnings.isVisible()


def test_a_long_message_is_cut_and_tells_all_in_its_tooltip(line: StatusLine) -> None:
    line.resize(300, 28)
    text = "A sentence that is much too long for so narrow a line, and goes on and on."
    line.set_message(text, "error")
    line.grab()
    assert line.message.toolTip() == text


def test_good_news_leave_the_state_and_its_figures_in_view(qtbot, line: StatusLine) -> None:
    line.set_message("The model is loaded.", "good")
    assert not line.context.isVisible()
    line.set_state("generating", "38.5 tok/s")
    qtbot.wait(1)
    assert line.state.isVisible()
    assert line.state_figures.isVisible()
    assert line.state_figures.geometry().right() < line.message.geometry().left()
    line.set_message("The GPU is full.", "error")
    assert not line.state.isVisible()
    assert not line.state_figures.isVisible()
