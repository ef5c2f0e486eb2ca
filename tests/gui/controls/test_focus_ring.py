"""gui/controls/focus_ring.py: the keyboard's place is seen, also where it is a large empty one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QTextEdit, QVBoxLayout, QWidget

from moelauncher.gui.controls.focus_ring import FocusRing
from moelauncher.gui.theme import theme


@pytest.fixture
def fields(qtbot) -> Iterator[tuple[QTextEdit, QLineEdit]]:
    window = QWidget()
    column = QVBoxLayout(window)
    large, small = QTextEdit(), QLineEdit()
    column.addWidget(large)
    column.addWidget(small)
    qtbot.addWidget(window)
    window.resize(300, 200)
    with qtbot.waitExposed(window):
        window.show()
    small.setFocus()
    yield large, small


def test_the_ring_comes_with_the_keyboard_and_goes_with_it(fields) -> None:
    large, small = fields
    ring = FocusRing(large)
    large.setFocus(Qt.FocusReason.TabFocusReason)
    assert ring.isVisible()
    assert ring.geometry() == large.rect()
    edge = large.grab().toImage().pixelColor(large.width() // 2, 1)
    assert edge == theme().colors.accent
    small.setFocus(Qt.FocusReason.TabFocusReason)
    assert not ring.isVisible()


def test_a_click_gets_no_ring(fields) -> None:
    large, _ = fields
    ring = FocusRing(large)
    large.setFocus(Qt.FocusReason.MouseFocusReason)
    assert large.hasFocus()
    assert not ring.isVisible()


def test_the_ring_follows_the_size_and_lets_clicks_through(fields, qtbot) -> None:
    large, _ = fields
    ring = FocusRing(large)
    large.setFocus(Qt.FocusReason.BacktabFocusReason)
    large.window().resize(500, 300)
    qtbot.waitUntil(lambda: ring.geometry() == large.rect() and large.width() > 400)
    assert ring.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)


def test_a_program_that_ends_with_its_window_open_ends_in_order() -> None:
    script = (
        "from PySide6.QtWidgets import QApplication, QTextEdit\n"
        "from moelauncher.gui.controls.focus_ring import FocusRing\n"
        "def main():\n"
        "    app = QApplication([])\n"
        "    watched = QTextEdit()\n"
        "    watched.ring = FocusRing(watched)\n"
        "    watched.show()\n"
        "    app.processEvents()\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=240)
    assert ended.returncode == 0
