"""Small drawings in a reply that are no text: caret, prompt bar, rails beside quotes.

Coordinates are those of the message. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QTextDocument

from moelauncher.gui import theme as look
from moelauncher.gui.chats.markdown import QUOTE_INDENT_PX, quote_level
from moelauncher.gui.chats.message_view import REPLY_MAX_PX, TextPart

RAIL_PX = 3.0
PROGRESS_TEXT_PX = 22.0
PROGRESS_BAR_PX = 4.0


def paint_caret(painter: QPainter, part: TextPart) -> None:
    """Draw the accent bar where the streamed text ends."""
    block = part.document.lastBlock()
    line = block.layout().lineForTextPosition(block.length() - 1)
    if not line.isValid():
        return
    # The text's width, not the cursor's place: asking for that costs ten times as much.
    text_px = line.naturalTextWidth()
    if block.textDirection() == Qt.LayoutDirection.RightToLeft:
        x = line.x() + line.width() - text_px - 4
    else:
        x = line.x() + text_px + 2
    height = QFontMetricsF(look.chat_font("body")).height()
    place = part.document.documentLayout().blockBoundingRect(block).topLeft() + part.origin
    top = place.y() + line.y() + max(0.0, line.height() - height - 2)
    painter.fillRect(QRectF(place.x() + x, top, 2, height), look.theme().colors.accent)


def paint_progress(painter: QPainter, area: QRectF, text: str, share: float | None) -> None:
    """Draw what the model does before its first token; ``share`` 0..1, None: no bar."""
    colors = look.theme().colors
    painter.setFont(look.chat_font("small", figures=True))
    painter.setPen(colors.muted)
    painter.drawText(
        QRectF(area.left(), area.top(), REPLY_MAX_PX, PROGRESS_TEXT_PX),
        Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
        text,
    )
    if share is None:
        return
    track = QRectF(area.left(), area.bottom() - 8, area.width(), PROGRESS_BAR_PX)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colors.raised if colors.dark else colors.border)
    painter.drawRoundedRect(track, 2, 2)
    track.setWidth(max(PROGRESS_BAR_PX, track.width() * min(1.0, max(0.0, share))))
    painter.setBrush(colors.accent)
    painter.drawRoundedRect(track, 2, 2)


def quoted_blocks(document: QTextDocument) -> tuple[tuple[int, int], ...]:
    """The text blocks within quotes: (block number, depth)."""
    found = []
    block = document.begin()
    while block.isValid():
        depth = quote_level(block)
        if depth:
            found.append((block.blockNumber(), depth))
        block = block.next()
    return tuple(found)


def quote_rails(part: TextPart, clip: QRectF) -> Iterator[QRectF]:
    """The bars beside the quotes of ``part`` that ``clip`` shows."""
    layout = part.document.documentLayout()
    for number, depth in part.quotes:
        rect = layout.blockBoundingRect(part.document.findBlockByNumber(number))
        rect.translate(part.origin)
        if not rect.adjusted(0, -4, 0, 4).intersects(clip):
            continue
        for level in range(depth):
            left = part.origin.x() + QUOTE_INDENT_PX * level
            yield QRectF(left, rect.top() - 2, RAIL_PX, rect.height() + 4)
