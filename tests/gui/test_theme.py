"""gui/theme.py: the scheme in force, fonts, and one style sheet."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QProxyStyle,
    QPushButton,
    QStyle,
    QToolButton,
)

from moelauncher.gui import theme as look
from moelauncher.gui.palette import DARK, LIGHT, Palette


@pytest.fixture
def styled(qapp: QApplication):
    font = QFont(qapp.font())
    yield qapp
    look.apply_theme(qapp, "light")
    qapp.setFont(font)


@pytest.mark.parametrize("colors", [DARK, LIGHT], ids=["dark", "light"])
def test_every_token_of_the_style_sheet_is_filled_in(colors: Palette) -> None:
    sheet = look.style_sheet(colors)
    assert re.findall(r"\$\w+", sheet) == []
    assert colors.accent.name() in sheet


def test_a_mode_changes_colours_palette_and_style_sheet_and_says_so(styled, qtbot) -> None:
    look.apply_theme(styled, "light")
    with qtbot.waitSignal(look.theme().changed):
        look.apply_theme(styled, "dark")
    assert look.theme().dark
    assert styled.palette().window().color() == DARK.window
    assert DARK.raised.name() in styled.styleSheet()
    look.apply_theme(styled, "light")
    assert not look.theme().dark
    assert styled.palette().window().color() == LIGHT.window


def test_system_follows_the_system(styled) -> None:
    look.apply_theme(styled, "system")
    system_is_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    assert look.theme().dark == system_is_dark


def test_a_tone_that_comes_late_colours_the_label_and_keeps_its_font(styled, qtbot) -> None:
    look.apply_theme(styled, "dark")
    label = QLabel("text")
    qtbot.addWidget(label)
    label.setFont(look.font("figure", bold=True))
    label.show()
    size = label.font().pixelSize()
    look.set_tone(label, "bad")
    assert label.palette().windowText().color() == DARK.bad
    assert label.font().pixelSize() == size
    look.set_tone(label, "")
    assert label.palette().windowText().color() == DARK.text


def test_controls_are_32_pixels_high_with_and_without_focus(styled, qtbot) -> None:
    look.apply_theme(styled, "dark")
    button = QPushButton("Launch")
    qtbot.addWidget(button)
    button.show()
    assert button.sizeHint().height() == look.CONTROL_HEIGHT
    button.setFocus()
    assert button.sizeHint().height() == look.CONTROL_HEIGHT


def test_tabular_asks_for_digits_of_one_width(styled) -> None:
    font = look.tabular(QApplication.font())
    assert font.isFeatureSet(QFont.Tag("tnum"))
    metrics = QFontMetricsF(font)
    assert metrics.horizontalAdvance("111") == metrics.horizontalAdvance("000")


class DesktopStyle(QProxyStyle):
    """A desktop whose dialogs have icons on their buttons."""

    def styleHint(self, hint, option=None, widget=None, answer=None):
        if hint == QStyle.StyleHint.SH_DialogButtonBox_ButtonsHaveIcons:
            return 1
        return super().styleHint(hint, option, widget, answer)


def test_buttons_of_dialogs_have_no_icons_whatever_the_desktop_does(styled, qtbot) -> None:
    look.apply_theme(styled, "dark")
    styled.setStyle(DesktopStyle("Fusion"))
    try:
        buttons = QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        plain = QDialogButtonBox(buttons)
        qtbot.addWidget(plain)
        plain.show()
        assert all(button.icon().isNull() for button in plain.buttons())
    finally:
        styled.setStyle("Fusion")


def test_the_cross_that_clears_a_field_stands_in_its_middle(styled, qtbot) -> None:
    look.apply_theme(styled, "dark")
    field = QLineEdit("text")
    field.setClearButtonEnabled(True)
    qtbot.addWidget(field)
    field.resize(240, look.CONTROL_HEIGHT)
    field.show()
    cross = field.findChild(QToolButton)
    assert cross.height() < look.CONTROL_HEIGHT
    assert abs(cross.geometry().center().y() - field.rect().center().y()) <= 1
