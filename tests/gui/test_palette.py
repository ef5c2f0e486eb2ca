"""gui/palette.py: colours that can be read."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage, QPainter

from moelauncher.gui.palette import (
    DARK,
    LIGHT,
    SEGMENT,
    Palette,
    contrast,
    hatch_brush,
    mixed,
    text_on,
)
from moelauncher.gui.speed.setting_plot import UNFIT_SHADE

TEXTS = (
    "text",
    "muted",
    "disabled",
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


@pytest.mark.parametrize("colors", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_reads_on_every_background(colors: Palette, name: str) -> None:
    for background in (colors.window, colors.surface, colors.raised):
        assert contrast(getattr(colors, name), background) >= 4.5


@pytest.mark.parametrize("kind", vars(SEGMENT))
def test_text_on_a_segment_reads(kind: str) -> None:
    color = SEGMENT.of(kind)
    assert contrast(text_on(color), color) >= 4.5


@pytest.mark.parametrize("grey", range(0, 256, 5))
def test_text_on_anything_reads(grey: int) -> None:
    color = QColor(grey, grey, grey)
    assert contrast(text_on(color), color) >= 4.5


@pytest.mark.parametrize("colors", [DARK, LIGHT], ids=["dark", "light"])
def test_the_primary_button_reads(colors: Palette) -> None:
    assert contrast(text_on(colors.accent), colors.accent) >= 4.5


def test_the_hatch_has_two_colours(qapp) -> None:
    image = QImage(32, 32, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.fillRect(image.rect(), hatch_brush())
    painter.end()
    found = {image.pixel(x, y) for x in range(32) for y in range(32)}
    assert SEGMENT.over.rgb() in found
    assert len(found) > 1


@pytest.mark.parametrize("colors", [DARK, LIGHT], ids=["dark", "light"])
def test_the_words_on_the_shade_of_what_does_not_fit_read(colors: Palette) -> None:
    shade = mixed(colors.window, SEGMENT.over, UNFIT_SHADE)
    assert contrast(colors.bad, shade) >= 4.5
