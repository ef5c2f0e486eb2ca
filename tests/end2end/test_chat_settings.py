"""What is set for one chat is used for its replies, kept with it, and remembered for the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QInputDialog, QMenu, QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog
from tests.helpers.window_driver import WindowDriver, sample_basedir


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, session_cache: Path) -> Iterator[WindowDriver]:
    base = sample_basedir(tmp_path / "base", session_cache)
    made = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    try:
        made.launch()
        yield made
    finally:
        made.close()


def test_settings_of_one_chat(driver: WindowDriver) -> None:
    driver.press("chatSettingsButton")
    dialog = driver.window.findChild(QDialog, "chatSettings")
    assert isinstance(dialog, ChatSettingsDialog)
    dialog.prompt.setPlainText("You are a helpful assistant.")
    dialog.numbers["max_tokens"].setText("many")
    dialog.accept()
    assert dialog.isVisible()
    assert "“many” cannot be used" in dialog.problem.text()
    dialog.numbers["max_tokens"].setText("5")
    dialog.numbers["seed"].setText("7")
    dialog.accept()
    driver.ask("Tell me a story.")
    driver.wait_for_state(SessionState.READY)
    chat = driver.program.session.chat
    reply = chat.conversation.last_reply
    assert reply is not None and reply.stats is not None and reply.sampling is not None
    assert (reply.stats.completion_tokens, reply.stats.finish_reason) == (5, "length")
    assert reply.sampling.seed == 7
    assert chat.conversation.messages()[0].content == "You are a helpful assistant."
    kept = chat.chat
    chat.new_chat()
    # A new chat with this model begins as the last one, but for what was its own alone.
    assert (dict(chat.chat.settings), chat.conversation.system) == ({"max_tokens": 5}, "")
    chat.open_chat(kept.id)
    driver.wait(lambda: chat.chat.id == kept.id)
    assert chat.chat.settings == {"max_tokens": 5, "seed": 7}
    assert chat.conversation.system == "You are a helpful assistant."


def test_presets_and_prompts(driver: WindowDriver) -> None:
    chip = driver.widget(QPushButton, "presetButton")
    assert chip.accessibleName() == "Preset: usual"
    menu = QMenu()
    driver.window.chat.composer.preset.fill_menu(menu)
    next(action for action in menu.actions() if action.text() == "creative").trigger()
    menu.deleteLater()
    assert chip.accessibleName() == "Preset: creative"
    driver.press("chatSettingsButton")
    dialog = driver.window.findChild(QDialog, "chatSettings")
    assert isinstance(dialog, ChatSettingsDialog)
    assert dialog.presets.combo.currentText() == "creative"
    assert not dialog.presets.delete.isEnabled()
    dialog.numbers["temperature"].setText("0.45")
    assert dialog.presets.combo.currentText() == "own numbers"
    dialog.presets.save.click()
    naming = dialog.presets.findChild(QInputDialog)
    assert naming is not None
    naming.setTextValue("  my & own ")
    naming.accept()
    assert dialog.presets.combo.currentText() == "my & own"
    assert dialog.presets.delete.isEnabled()
    dialog.prompt.setPlainText("Answer in verse.")
    dialog.prompts.save_requested.emit("Verse")
    dialog.prompt.setPlainText("")
    dialog.prompts.chosen.emit("")
    dialog.prompts.combo.setCurrentIndex(dialog.prompts.combo.findData("Verse"))
    dialog.prompts.combo.activated.emit(dialog.prompts.combo.currentIndex())
    assert dialog.prompt.toPlainText() == "Answer in verse."
    dialog.numbers["max_tokens"].setText("4")
    dialog.accept()
    assert chip.accessibleName() == "Preset: my & own"
    driver.ask("Tell me a story.")
    driver.wait_for_state(SessionState.READY)
    chat = driver.program.session.chat
    reply = chat.conversation.last_reply
    assert reply is not None and reply.sampling is not None
    assert (reply.sampling.temperature, reply.sampling.top_k) == (0.45, 100)
    chat.new_chat()
    assert chip.accessibleName() == "Preset: my & own"
    assert chat.conversation.system == ""
    driver.press("chatSettingsButton")
    again = driver.window.findChildren(QDialog, "chatSettings")[-1]
    assert isinstance(again, ChatSettingsDialog)
    again.presets.delete.click()
    again.reject()
    assert chip.accessibleName() == "Preset: own numbers"
