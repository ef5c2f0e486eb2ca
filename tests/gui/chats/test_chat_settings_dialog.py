"""gui/chats/chat_settings_dialog.py: every word in it is explained, also what is left empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_library import ChatLibrary
from moelauncher.core.program.settings import Settings
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog


@pytest.fixture
def dialog(qtbot: QtBot, tmp_path: Path) -> ChatSettingsDialog:
    settings = Settings.load(tmp_path / "settings.toml")
    library = ChatLibrary(tmp_path / "library.json")
    made = ChatSettingsDialog("", {}, settings, library, {})
    qtbot.addWidget(made)
    return made


def test_each_label_explains_its_field(dialog: ChatSettingsDialog) -> None:
    tips = {label.text(): label.toolTip() for label in dialog.findChildren(QLabel) if label.text()}
    assert tips["Temperature"] == dialog.numbers["temperature"].toolTip()
    assert "likeliest" in tips["Temperature"]
    assert [name for name, tip in tips.items() if not tip] == []


def test_an_empty_field_says_what_it_stands_for(dialog: ChatSettingsDialog) -> None:
    shown = {name: field.placeholderText() for name, field in dialog.numbers.items()}
    assert shown["temperature"] == "as usual: 0.8"
    assert shown["seed"] == "as usual: another each time"
    assert shown["max_tokens"] == "as usual: until it is complete"
