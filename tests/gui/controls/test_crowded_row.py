"""A row leaves out what can be missed, and brings it back."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from moelauncher.gui.chats.composer import Composer
from moelauncher.gui.controls.crowded_row import CrowdedRow


@pytest.fixture
def row(qtbot):
    owner = QWidget()
    qtbot.addWidget(owner)
    layout = QHBoxLayout(owner)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(8)
    buttons = [QPushButton(name, owner) for name in ("needed", "first to go", "second")]
    for button in buttons:
        button.setFixedWidth(100)
        layout.addWidget(button)
    layout.addStretch(1)
    CrowdedRow(layout, (buttons[1], buttons[2]), owner)
    owner.setMinimumWidth(1)
    owner.show()
    return owner, buttons


def test_the_first_ones_go_first_and_come_back(row, qtbot):
    owner, buttons = row
    for width, shown in ((400, [1, 1, 1]), (300, [1, 0, 1]), (200, [1, 0, 0]), (400, [1, 1, 1])):
        owner.resize(width, 40)
        qtbot.waitUntil(lambda shown=shown: [b.isVisible() for b in buttons] == shown)


def test_a_narrow_composer_keeps_what_is_needed(qtbot):
    composer = Composer()
    qtbot.addWidget(composer)
    composer.set_context(1200, 4096)
    composer.setMinimumWidth(1)
    composer.resize(700, 100)
    composer.show()
    assert composer.new_chat.isVisible() and composer.preset.isVisible()
    composer.resize(300, 100)
    qtbot.waitUntil(lambda: not composer.new_chat.isVisible())
    assert composer.settings.isVisible() and composer.send.isVisible()
    inside = composer.rect()
    for widget in (composer.settings, composer.send.parentWidget()):
        qtbot.waitUntil(lambda widget=widget: inside.contains(widget.geometry()))
