"""Whatever takes the keyboard says to a screen reader what it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import Finished, GenerationStats, TokenEvent
from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

DONE = GenerationStats("length", 5, 0, 9, 100.0, 30.0, 0.1, 1.0, 900)
#: Roles that one operates.
OPERATED = {
    QAccessible.Role.Button,
    QAccessible.Role.CheckBox,
    QAccessible.Role.RadioButton,
    QAccessible.Role.ComboBox,
    QAccessible.Role.EditableText,
    QAccessible.Role.SpinBox,
    QAccessible.Role.Slider,
    QAccessible.Role.List,
    QAccessible.Role.ListItem,
    QAccessible.Role.Tree,
    QAccessible.Role.TreeItem,
    QAccessible.Role.Table,
    QAccessible.Role.PageTab,
    QAccessible.Role.Link,
    QAccessible.Role.MenuItem,
}


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    """A window with a loaded model and a chat of two turns."""
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.launch()
    made.session.send("Tell me a story.")
    made.engine.say(TokenEvent(0, "Once ", "hm", 1, 0.0), Finished(0, DONE))
    made.wait(lambda: made.session.state is SessionState.READY)
    yield made
    made.close()


def tree(top: QAccessibleInterface, path: str = "") -> Iterator[tuple[str, QAccessibleInterface]]:
    """Everything beneath ``top`` that is to be seen, with the way to it."""
    for number in range(top.childCount()):
        child = top.child(number)
        if child is None or not child.isValid() or child.state().invisible:
            continue
        widget = child.object()
        name = (widget.objectName() or type(widget).__name__) if widget is not None else "part"
        here = f"{path}/{name}"
        yield here, child
        yield from tree(child, here)


def unnamed(window: QWidget) -> list[str]:
    """What one can operate in ``window`` without being told what it is."""
    top = QAccessible.queryAccessibleInterface(window)
    found = list(tree(top))
    assert len(found) > 5
    return [
        f"{where} ({part.role().name})"
        for where, part in found
        if part.role() in OPERATED and not part.text(QAccessible.Text.Name).strip()
    ]


def test_everything_in_the_window_has_a_name(driver: ScriptedWindow) -> None:
    driver.window.chat.find_bar.open()
    driver.window.chats.undo.offer("Deleted “x”", lambda: None)
    driver.window.chat.undo.offer("1 message was deleted", lambda: None)
    driver.window.chat.offer.offer(1900, 2048, True)
    driver.window.chat.elsewhere.set_title("A story", True)
    assert unnamed(driver.window) == []


@pytest.mark.parametrize("what", ["chat settings", "template", "card", "tune", "answers"])
def test_everything_in_dialogs_has_a_name(driver: ScriptedWindow, what: str) -> None:
    if what == "chat settings":
        driver.session.chat.edit_settings()
    elif what == "template":
        driver.session.chat.settings.template_requested.emit(driver.window)
    elif what == "card":
        driver.session.cards.open_selected()
    elif what == "tune":
        driver.window.speed.tune_button.click()
    else:
        driver.window.chats.compare_requested.emit()
    shown: list[QWidget] = []

    def is_shown() -> bool:
        shown[:] = [w for w in QApplication.topLevelWidgets() if w.isVisible()]
        shown.remove(driver.window)
        return bool(shown)

    driver.wait(is_shown)
    for window in shown:
        assert unnamed(window) == []
        window.close()


def test_every_setting_of_a_chat_says_what_it_does(driver: ScriptedWindow) -> None:
    driver.session.chat.edit_settings()
    dialog = driver.window.findChild(ChatSettingsDialog)
    assert dialog is not None
    kinds = (QLineEdit, QPlainTextEdit, QComboBox, QAbstractSpinBox, QCheckBox)
    fields = [field for kind in kinds for field in dialog.findChildren(kind)]
    fields = [field for field in fields if not isinstance(field.parent(), QAbstractSpinBox)]
    assert len(fields) > 10

    def tip(field: QWidget) -> str:
        # A part of a control shows its control's.
        return field.toolTip() or field.parentWidget().toolTip()

    assert [field.objectName() for field in fields if not tip(field)] == []
    dialog.reject()
