"""How an error stands in a reply: a sentence, what to do, folded details, and the rail beside it.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import code_font
from moelauncher.gui.chats.markdown import ReplyDocument, style_plain
from moelauncher.gui.chats.message_view import FOLD_HEIGHT, SHOWN_CHARS_LIMIT, HotSpot, TextPart

#: Where its text begins, right of the rail.
_LEFT_PX = 14.0
_RAIL_PX = 3.0
_ERROR_KINDS = frozenset({"error", "hint", "details"})


def error_parts(
    error: LauncherError, top: float, column: float, details_open: bool
) -> tuple[list[TextPart], list[HotSpot], float]:
    """The parts and folds of ``error`` from ``top`` on, and how tall they are together."""
    colors = look.theme().colors
    parts: list[TextPart] = []
    spots: list[HotSpot] = []
    y = top

    def add(kind: str, text: str, ink: QColor, font: QFont | None = None) -> float:
        document = ReplyDocument()
        if font is not None:
            document.setDefaultFont(font)
        document.setPlainText(text)
        style_plain(document, ink)
        document.setTextWidth(column - _LEFT_PX)
        parts.append(TextPart(kind, document, QPointF(_LEFT_PX, y)))
        return document.size().height()

    for kind, text, ink in (
        ("error", error.message, colors.text),
        ("hint", error.hint, colors.muted),
    ):
        if text:
            y += add(kind, text, ink) + 2
    details = error.details.strip()
    if details:
        label = ("▾ " if details_open else "▸ ") + tr("details")
        spots.append(HotSpot("details", QRectF(_LEFT_PX, y, column - _LEFT_PX, FOLD_HEIGHT), label))
        y += FOLD_HEIGHT
        if details_open:
            y += add("details", details[:SHOWN_CHARS_LIMIT], colors.muted, code_font())
    return parts, spots, y - top


def rails(parts: Iterable[TextPart], spots: Iterable[HotSpot]) -> list[tuple[QRectF, bool]]:
    """The lines at the left of thinking and errors: where, and whether it is an error's."""
    found: dict[bool, QRectF] = {}
    places = [(part.kind, part.rect) for part in parts]
    places += [(spot.kind, spot.rect) for spot in spots if spot.kind == "details"]
    for kind, rect in places:
        is_error = kind in _ERROR_KINDS
        if is_error or kind == "reasoning":
            found[is_error] = found[is_error].united(rect) if is_error in found else rect
    return [
        (QRectF(0, rect.top(), _RAIL_PX, rect.height()), is_error)
        for is_error, rect in found.items()
    ]
