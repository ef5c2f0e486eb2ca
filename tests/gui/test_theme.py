"""gui/theme.py: colours that can be read, and one style sheet made from them."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from moelauncher.gui import theme as look

TEXTS = (
    "text",
    "muted",
    "accent_text",
    "good",
    "warn",
    "bad",
    "mark",
    "code_keyword",
    "code_function",
    "code_string",
    "code_number",
    "code_comment",
)


@pytest.fixture
def styled(qapp: QApplication):
    font = QFont(qapp.font())
    yield qapp
    look.apply_theme(qapp, "light")
    qapp.setFont(font)


@pytest.mark.parametrize("colors", [look.DARK, look.LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_reads_on_every_background(colors: look.Palette, name: str) -> None:
    for background in (colors.window, colors.surface, colors.raised):
        assert look.contrast(getattr(colors, name), background) >= 4.5


@pytest.mark.parametrize("kind", vars(look.SEGMENT))
def test_text_on_a_segment_reads(kind: str) -> None:
    color = look.SEGMENT.of(kind)
    assert look.contrast(look.text_on(color), color) >= 4.5


@pytest.mark.parametrize("grey", range(0, 256, 5))
def test_text_on_anything_reads(grey: int) -> None:
    color = QColor(grey, grey, grey)
    assert look.contrast(look.text_on(color), color) >= 4.5


@pytest.mark.parametrize("colors", [look.DARK, look.LIGHT], ids=["dark", "light"])
def test_the_primary_button_reads(colors: look.Palette) -> None:
    assert look.contrast(look.text_on(colors.accent), colors.accent) >= 4.5


@pytest.mark.parametrize("colors", [look.DARK, look.LIGHT], ids=["dark", "light"])
def test_every_token_of_the_style_sheet_is_filled_in(colors: look.Palette) -> None:
    sheet = look.style_sheet(colors)
    assert re.findall(r"\$\w+", sheet) == []
    assert colors.accent.name() in sheet


def test_a_mode_changes_colours_palette_and_style_sheet_and_says_so(styled, qtbot) -> None:
    look.apply_theme(styled, "light")
    with qtbot.waitSignal(look.theme().changed):
        look.apply_theme(styled, "dark")
    assert look.theme().dark
    assert styled.palette().window().color() == look.DARK.window
    assert look.DARK.raised.name() in styled.styleSheet()
    look.apply_theme(styled, "light")
    assert not look.theme().dark
    assert styled.palette().window().color() == look.LIGHT.window


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
    assert label.palette().windowText().color() == look.DARK.bad
    assert label.font().pixelSize() == size
    look.set_tone(label, "")
    assert label.palette().windowText().color() == look.DARK.text


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


def test_the_hatch_has_two_colours(qapp) -> None:
    image = QImage(32, 32, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.fillRect(image.rect(), look.hatch_brush())
    painter.end()
    found = {image.pixel(x, y) for x in range(32) for y in range(32)}
    assert look.SEGMENT.over.rgb() in found
    assert len(found) > 1
