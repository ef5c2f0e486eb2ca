"""Every colour of the window, in the dark and the light scheme, and what is mixed from them.

In: nothing. Out: colours, and the brush for what does not fit. GUI thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPixmap


@dataclass(frozen=True)
class Palette:
    """The colours of one scheme. Text keeps a contrast of 4.5 on the three backgrounds."""

    dark: bool
    window: QColor
    surface: QColor
    raised: QColor
    border: QColor
    text: QColor
    muted: QColor
    accent: QColor
    accent_text: QColor  # the accent where it is read as text
    hover: QColor
    pressed: QColor
    selected: QColor
    disabled: QColor
    good: QColor
    warn: QColor
    bad: QColor
    mark: QColor  # placement changes in plots; the experts' orange, readable as text
    code_keyword: QColor
    code_function: QColor
    code_string: QColor
    code_number: QColor
    code_comment: QColor


def _palette(dark: bool, **colors: str) -> Palette:
    return Palette(dark=dark, **{name: QColor(value) for name, value in colors.items()})


DARK = _palette(
    True,
    window="#15171C",
    surface="#1D2027",
    raised="#262A33",
    border="#323743",
    text="#E6E8EC",
    muted="#9AA3B2",
    accent="#6EA8FE",
    accent_text="#6EA8FE",
    hover="#2E333E",
    pressed="#222630",
    selected="#262A33",
    disabled="#8891A1",
    good="#2FC08F",
    warn="#E9A820",
    bad="#FF8A5B",
    mark="#E69F00",
    code_keyword="#C792EA",
    code_function="#82AAFF",
    code_string="#A5D68A",
    code_number="#F2A272",
    code_comment="#9AA3B2",
)

LIGHT = _palette(
    False,
    window="#F6F7F9",
    surface="#FFFFFF",
    raised="#FFFFFF",
    border="#D9DEE6",
    text="#1B1F27",
    muted="#5B6575",
    accent="#2F6FEB",
    accent_text="#2560D8",
    hover="#EEF1F5",
    pressed="#E3E8EF",
    selected="#FFFFFF",
    disabled="#687180",
    good="#007A58",
    warn="#8A5A00",
    bad="#A64200",
    mark="#8A5A00",
    code_keyword="#8127C7",
    code_function="#1F5FD6",
    code_string="#2E7031",
    code_number="#A34A00",
    code_comment="#5B6575",
)


@dataclass(frozen=True)
class SegmentColors:
    """What memory is used for, in gauge, layer strip and plots (Okabe-Ito, both schemes)."""

    others: QColor
    lent: QColor
    driver: QColor
    dense: QColor
    experts: QColor
    kv: QColor
    recurrent: QColor
    compute: QColor
    over: QColor

    def of(self, kind: str) -> QColor:
        """The colour of ``kind``, one of the field names."""
        color: QColor = getattr(self, kind)
        return color


SEGMENT = SegmentColors(
    others=QColor("#7A828F"),
    lent=QColor("#A9B2C0"),
    driver=QColor("#4B5362"),
    dense=QColor("#0072B2"),
    experts=QColor("#E69F00"),
    kv=QColor("#009E73"),
    recurrent=QColor("#56B4E9"),
    compute=QColor("#CC79A7"),
    over=QColor("#D55E00"),
)


def _luminance(color: QColor) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(c) for c in (color.redF(), color.greenF(), color.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: QColor, second: QColor) -> float:
    """WCAG contrast ratio, 1 to 21."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def text_on(background: QColor) -> QColor:
    """White where it reads well on ``background``, else black (always 4.5 or more)."""
    white = QColor("#FFFFFF")
    return white if contrast(white, background) >= 4.5 else QColor("#000000")


def mixed(first: QColor, second: QColor, share: float) -> QColor:
    """``first`` with ``share`` (0 to 1) of ``second`` mixed in."""
    keep = 1.0 - share
    return QColor.fromRgbF(
        first.redF() * keep + second.redF() * share,
        first.greenF() * keep + second.greenF() * share,
        first.blueF() * keep + second.blueF() * share,
    )


def faded(color: QColor, alpha: float) -> QColor:
    """``color`` with an opacity of ``alpha`` (0 to 1)."""
    result = QColor(color)
    result.setAlphaF(alpha)
    return result


@lru_cache(maxsize=8)
def _hatch_tile(rgb: int, device_pixel_ratio: float) -> QPixmap:
    side = 8
    tile = QPixmap(round(side * device_pixel_ratio), round(side * device_pixel_ratio))
    tile.setDevicePixelRatio(device_pixel_ratio)
    color = QColor(rgb)
    tile.fill(color)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(mixed(color, QColor("#000000"), 0.45), 2.4))
    for shift in (-side, 0, side):
        painter.drawLine(shift - 1, side + 1, shift + side + 1, -1)
    painter.end()
    return tile


def hatch_brush(color: QColor | None = None, device_pixel_ratio: float = 1.0) -> QBrush:
    """A brush of diagonal stripes: what does not fit is hatched, never only coloured."""
    return QBrush(_hatch_tile((color or SEGMENT.over).rgb(), device_pixel_ratio))
