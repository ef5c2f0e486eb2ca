"""Comparing answers in the window, with a scripted check: the dialog, what it asks and shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTableWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.session_state import SessionState
from moelauncher.core.speed.same_answers import (
    AnswersJob,
    AnswersProgress,
    Comparison,
    PromptAnswer,
    SameAnswers,
)
from moelauncher.gui.chats.parted_texts import PartedTexts
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

PARTED = PromptAnswer("Why?", ("It ", "is ", "so."), ("It ", "was ", "so."), 1, (0.0, 0.02, 0.01))
SAME = PromptAnswer("2 + 2", ("4",), ("4",), None, (0.001,))
FOUND = SameAnswers(
    Comparison((PromptAnswer("Why?", ("It ",), ("It ",), None, (1e-4,)), SAME)),
    Comparison((SAME, PARTED)),
)


class Check:
    """Plays a check; remembers the job."""

    def __init__(self) -> None:
        self.job: AnswersJob | None = None
        self.error: LauncherError | None = None
        self.waits = False

    def __call__(
        self, job: AnswersJob, cancelled: Callable[[], bool]
    ) -> Iterator[AnswersProgress | SameAnswers]:
        self.job = job
        yield AnswersProgress("reference", 0.0)
        if self.error is not None:
            raise self.error
        while self.waits:
            if cancelled():
                raise Cancelled
            QTest.qSleep(5)
        yield FOUND


@pytest.fixture
def check() -> Check:
    return Check()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, check: Check) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.compare = check
    yield made
    made.close()


def open_it(window: ScriptedWindow):
    window.window.chats.compare_requested.emit()
    return window.session.answers.dialog


def start(window: ScriptedWindow) -> None:
    window.window.findChild(QPushButton, "answersStartButton").click()


def test_a_check_shows_its_verdict_and_where_texts_part(
    window: ScriptedWindow, check: Check
) -> None:
    dialog = open_it(window)
    assert dialog.isVisible()
    assert "KV f16" in dialog.reference.text()
    assert dialog.kv.currentText() == "q8_0"
    dialog.flash.setCurrentIndex(2)
    start(window)
    window.wait(lambda: bool(dialog.verdict.text()))
    assert "1 of 2 answers part" in dialog.verdict.text()
    assert check.job is not None
    assert check.job.change.request.context.kv_type == "q8_0"
    assert check.job.change.flash_attention is False
    assert check.job.noise is not None
    table = dialog.findChild(QTableWidget, "answersTable")
    texts = [[table.item(row, column).text() for column in range(4)] for row in range(2)]
    assert texts[0] == ["2 + 2", "the same", "0.001", "0.0001"]
    assert texts[1][1:3] == ["part at token 2", "0.01"]
    # The first that parts is shown, both texts with the place marked.
    other = dialog.findChild(QPlainTextEdit, "answersOtherText")
    assert other.toPlainText() == "It was so."
    marked = [selection.cursor.selectedText() for selection in other.extraSelections()]
    assert marked == ["was ", "so."]
    assert "q8_0" in dialog.texts.right.title.text()
    table.selectRow(0)
    assert other.toPlainText() == "4"
    assert [one.cursor.selectedText() for one in other.extraSelections()] == ["", ""]
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_what_is_loaded_goes_first_and_comes_back(window: ScriptedWindow) -> None:
    window.launch()
    dialog = open_it(window)
    start(window)
    assert window.engine.unloads == 1
    assert not dialog.verdict.text()
    window.unloaded()
    window.wait(lambda: bool(dialog.verdict.text()))
    window.wait(lambda: len(window.engine.loads) == 2)
    window.loaded()
    window.wait(lambda: window.session.state is SessionState.READY)


def test_a_check_asked_for_while_a_model_loads_waits_for_it(window: ScriptedWindow) -> None:
    dialog = open_it(window)
    window.session.launch()
    start(window)
    assert window.engine.unloads == 0
    window.loaded()
    window.wait(lambda: window.engine.unloads == 1)
    window.unloaded()
    window.wait(lambda: bool(dialog.verdict.text()))
    window.loaded()
    window.wait(lambda: window.session.state is SessionState.READY)


def test_a_check_that_breaks_says_why(window: ScriptedWindow, check: Check) -> None:
    check.error = LauncherError("The answers could not be compared: no.", "Try another.")
    dialog = open_it(window)
    start(window)
    window.wait(lambda: "could not be compared" in dialog.verdict.text())
    assert dialog.start.isEnabled()


def test_cancel_ends_a_check_and_then_closes(window: ScriptedWindow, check: Check) -> None:
    check.waits = True
    dialog = open_it(window)
    start(window)
    window.wait(lambda: dialog.progress.text != "")
    assert not dialog.start.isEnabled()
    dialog.cancel.click()
    window.wait(lambda: dialog.start.isEnabled())
    assert dialog.isVisible() and not dialog.verdict.text()
    dialog.cancel.click()
    assert not dialog.isVisible()


def test_the_layers_of_the_other_setting_can_be_chosen(
    window: ScriptedWindow, check: Check
) -> None:
    dialog = open_it(window)
    assert not dialog.layers.isHidden()
    dialog.kv.setCurrentText("f16")
    dialog.layers.setValue(2)
    start(window)
    window.wait(lambda: bool(dialog.verdict.text()))
    assert check.job is not None and check.job.noise is None
    assert check.job.change.placement.cpu_moe == 2
    assert "rounding alone" in dialog.verdict.text()


def test_texts_of_any_characters_are_marked_in_the_right_place(qtbot: QtBot) -> None:
    texts = PartedTexts()
    qtbot.addWidget(texts)
    answer = PromptAnswer("?", ("😀\r\n", "", "é", "x"), ("😀\r\n", "", "ß", "y"), 1, (0.0,) * 4)
    texts.set_answer(answer)
    marked = [one.cursor.selectedText() for one in texts.right.text.extraSelections()]
    assert marked == ["ß", "y"]
    texts.set_answer(None)
    assert texts.left.text.toPlainText() == ""
