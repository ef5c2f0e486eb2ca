"""A template that does not work is said, and ChatML or one's own stands in, for that model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats.template_dialog import TemplateDialog
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.window_driver import WindowDriver, settings_file

BROKEN = "{{ raise_exception('Roles must be something else') }}"


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path) -> Iterator[WindowDriver]:
    model = write_tiny_model(tmp_path / "m" / "broken.gguf", "dense", chat_template=BROKEN)
    settings_file(tmp_path / "base", "[sampling]\ntemperature = 0.0\nmax_tokens = 4\n")
    made = WindowDriver(qtbot, [str(model), "--basedir", str(tmp_path / "base")])
    try:
        made.launch()
        yield made
    finally:
        made.close()


def opened(driver: WindowDriver) -> TemplateDialog:
    driver.press("chatSettingsButton")
    driver.press("templateButton")
    dialog = driver.window.findChild(QDialog, "templateDialog")
    assert isinstance(dialog, TemplateDialog)
    return dialog


def test_chatml_is_offered_where_a_template_raises(driver: WindowDriver) -> None:
    chat = driver.program.session.chat
    driver.ask("Hello?")
    driver.wait(lambda: "Roles must be something else" in driver.chat_text())
    driver.wait_for_state(SessionState.READY)
    (message,) = [m for m in driver.window.chat.view._column.messages if m.shown.key == 2]
    assert "Use ChatML for this model" in [spot.label for spot in message.hot_spots]
    driver.window.chat.turn_action.emit("use_chatml", 2)
    driver.wait(lambda: chat.conversation.last_reply.stats is not None)
    assert chat.conversation.last_reply.stats.completion_tokens > 0
    assert chat.settings.template() == CHATML
    chat.new_chat()
    driver.ask("Once more?")
    driver.wait(lambda: chat.conversation.last_reply is not None)
    driver.wait_for_state(SessionState.READY)
    assert chat.conversation.last_reply.stats is not None, "it is remembered"


def test_a_template_that_loops_ends_with_stop_and_freezes_nothing(
    qtbot: QtBot, tmp_path: Path
) -> None:
    turn = "{% for j in range(90000) %}" * 3 + "{% endfor %}" * 3
    model = write_tiny_model(tmp_path / "m" / "loop.gguf", "dense", chat_template=turn)
    driver = WindowDriver(qtbot, [str(model), "--basedir", str(tmp_path / "base")])
    try:
        driver.launch()
        driver.ask("Hello?")
        driver.wait_for_state(SessionState.PREFILL)
        ticks = []
        clock = QTimer(driver.window, interval=5)
        clock.timeout.connect(lambda: ticks.append(1))
        clock.start()
        driver.wait(lambda: len(ticks) > 20)  # the window lives meanwhile
        clock.stop()
        driver.press("stopButton")
        driver.wait_for_state(SessionState.READY)
    finally:
        driver.close()


def test_a_template_of_ones_own_with_its_prompt(driver: WindowDriver) -> None:
    dialog = opened(driver)
    assert dialog.field.toPlainText() == BROKEN
    driver.wait(lambda: "Roles must be something else" in dialog.problem.text())
    assert dialog.use_chatml.isVisible()
    dialog.use_chatml.click()
    driver.wait(lambda: "<|im_start|>user\nHello!<|im_end|>" in dialog.preview.toPlainText())
    assert not dialog.use_chatml.isVisible()
    dialog.field.setPlainText("{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}")
    assert dialog.choice.currentData() == "text"
    driver.wait(lambda: dialog.preview.toPlainText() == "[user] Hello! ")
    dialog.field.setPlainText("{% for m in messages %}")
    driver.wait(lambda: "endfor" in dialog.problem.text())
    dialog.field.setPlainText("{% for m in messages %}<{{ m.content }}>{% endfor %}")
    dialog.accept()
    driver.window.findChild(QDialog, "chatSettings").reject()
    chat = driver.program.session.chat
    driver.ask("Hello?")
    driver.wait(lambda: chat.conversation.last_reply is not None)
    driver.wait_for_state(SessionState.READY)
    assert chat.conversation.last_reply.stats is not None
    again = opened(driver)
    assert again.choice.currentData() == "text"
    again.choice.setCurrentIndex(0)
    assert again.field.toPlainText() == BROKEN
    again.accept()
    assert chat.settings.template() is None


def test_a_template_of_ones_own_brings_its_switch(driver: WindowDriver) -> None:
    session = driver.program.session
    chip = driver.window.chat.composer.thinking
    assert chip.isHidden()
    choose(driver, "text", "{% if enable_thinking %}<think>{% endif %}{{ messages[-1].content }}")
    driver.wait(chip.isVisible)
    session.unload()
    driver.wait(chip.isHidden)
    driver.launch()
    driver.wait(chip.isVisible)
    driver.press(chip.objectName())
    assert session.chat.thinking.values() == {"enable_thinking": True}
    choose(driver, "chatml")
    driver.wait(chip.isHidden)


def choose(driver: WindowDriver, kind: str, text: str = "") -> None:
    dialog = opened(driver)
    dialog.choice.setCurrentIndex(dialog.choice.findData(kind))
    if text:
        dialog.field.setPlainText(text)
    dialog.accept()
    driver.window.findChild(QDialog, "chatSettings").reject()
