"""What was written for an earlier message is not lost by one key."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.chats.draft_desk import DraftDesk


@pytest.fixture
def pane(qtbot):
    widget = ChatPane()
    qtbot.addWidget(widget)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


@pytest.fixture
def desk(pane):
    return DraftDesk(pane, pane)


def test_an_edit_that_was_dropped_comes_back_by_undo(pane, desk, qtbot):
    composer = pane.composer
    composer.field.setPlainText("later")
    desk.begin_edit(3, "One?")
    composer.field.setPlainText("One, and all of it?")
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert (composer.text, desk.editing, composer.edit_line.isVisible()) == ("later", None, False)
    pane.undo.button.click()
    assert (composer.text, desk.editing) == ("One, and all of it?", 3)
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert composer.text == "later" and pane.undo.isVisible()


def test_another_edit_drops_the_first(pane, desk):
    desk.begin_edit(3, "One?")
    pane.composer.field.setPlainText("One, and all of it?")
    desk.begin_edit(5, "Two?")
    assert (pane.composer.text, desk.editing) == ("Two?", 5)
    pane.undo.button.click()
    assert (pane.composer.text, desk.editing) == ("One, and all of it?", 3)
    assert not pane.undo.isVisible()


def test_nothing_is_offered_where_nothing_was_written(pane, desk, qtbot):
    desk.begin_edit(3, "One?")
    desk.begin_edit(5, "Two?")
    qtbot.keyClick(pane.composer.field, Qt.Key.Key_Escape)
    assert desk.editing is None and not pane.undo.isVisible()
