"""gui/chats/chats_pane.py: the list of chats gives way before what is above it does."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from moelauncher.gui.chats.chats_pane import ChatsPane
from moelauncher.gui.theme import apply_theme
from tests.helpers.layout_faults import layout_faults


def test_at_its_least_height_nothing_lies_on_another(qtbot: QtBot, qapp: QApplication) -> None:
    apply_theme(qapp, "dark")
    window = QWidget()
    qtbot.addWidget(window)
    pane = ChatsPane(window)  # a window of its own would not become that low
    pane.setGeometry(0, 0, 300, pane.minimumSizeHint().height())
    window.resize(pane.size())
    with qtbot.waitExposed(window):
        window.show()
    assert layout_faults(window) == []
