"""The user's own message: a bubble on the right, plain text always.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import (
    QPainter,
    QPen,
)

from moelauncher.core.chats.conversation import ShownTurn
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.markdown import (
    ReplyDocument,
    spare_below_line,
    style_plain,
)
from moelauncher.gui.chats.message_view import (
    ACTIONS_PX,
    FOLD_HEIGHT,
    REPLY_MAX_PX,
    SHOWN_CHARS_LIMIT,
    HotSpot,
    MessageView,
    TextPart,
)
from moelauncher.gui.palette import Palette

BUBBLE_PAD_X = 14.0
BUBBLE_PAD_Y = 10.0
BUBBLE_RADIUS = 10.0
#: A pasted file is folded to its beginning: it is the user's own text, not news.
LONG_USER_CHARS = 3000
LONG_USER_LINES = 30
SHOWN_USER_LINES = 12
SHOWN_USER_CHARS = 1000  # about as many lines, where the text has no line breaks of its own


class UserMessage(MessageView):
    """What the user wrote: a bubble on the right, plain text always."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._lines = text.count("\n") + 1
        self._long = len(text) > LONG_USER_CHARS or self._lines > LONG_USER_LINES
        self._open = False
        self._bubble_height = 0.0

    def toggle(self, kind: str) -> None:
        """Unfold or fold a long text."""
        if kind == "more":
            self._open = not self._open
            self.invalidate()

    def searched_parts(self) -> list[TextPart]:
        if self._open or not self._long:
            return super().searched_parts()
        whole = ReplyDocument()
        whole.setPlainText(self._text[:SHOWN_CHARS_LIMIT])
        return [TextPart("user", whole, QPointF())]

    def reveal(self, part: TextPart) -> bool:
        folded = self._long and not self._open
        if folded:
            self.toggle("more")
        return folded

    def _shown(self) -> str:
        if self._open or not self._long:
            return self._text[:SHOWN_CHARS_LIMIT]
        return "\n".join(self._text[:SHOWN_USER_CHARS].split("\n")[:SHOWN_USER_LINES]) + " …"

    def _fold_label(self) -> str:
        if self._open:
            return tr("Show less")
        if self._lines > SHOWN_USER_LINES:
            return tr("Show all {n} lines").format(n=f"{self._lines:,}")
        return tr("Show all {n} characters").format(n=f"{len(self._text):,}")

    def _arrange(self, width: float) -> None:
        document = ReplyDocument()
        document.setPlainText(self._shown())
        style_plain(document, look.theme().colors.text)
        widest = min(width * 0.85, REPLY_MAX_PX) - 2 * BUBBLE_PAD_X
        document.setTextWidth(widest)
        document.setTextWidth(min(widest, document.idealWidth() + 1))
        text_width = document.textWidth()
        fold = FOLD_HEIGHT if self._long else 0.0
        if self._long:
            text_width = max(text_width, min(widest, 220.0))
        left = width - text_width - BUBBLE_PAD_X
        self.parts = [TextPart("user", document, QPointF(left, BUBBLE_PAD_Y))]
        height = document.size().height()
        self.hot_spots = []
        if self._long:
            rect = QRectF(left, BUBBLE_PAD_Y + height + 2, text_width, FOLD_HEIGHT)
            self.hot_spots = [HotSpot("more", rect, self._fold_label())]
        self.height = height + fold + 2 * BUBBLE_PAD_Y
        self._bubble_height = self.height
        if not self._long:
            # Qt adds the extra line height below the text; the bubble shall look even.
            self._bubble_height -= spare_below_line(document)
        self._add_actions(0.0, width, self._bubble_height, width)
        self.height = self._bubble_height + ACTIONS_PX

    def _estimated(self, text_height: float) -> float:
        line_px = look.chat_font("body").pixelSize() * 1.5
        if self._long and not self._open:
            text_height = SHOWN_USER_LINES * line_px + FOLD_HEIGHT
        return text_height + 2 * BUBBLE_PAD_Y + ACTIONS_PX

    def _actions(self, shown: ShownTurn) -> list[tuple[str, str]]:
        found = [("copy_turn", tr("Copy")), ("edit", tr("Edit")), ("delete", tr("Delete"))]
        return [("answer", tr("Answer")), *found] if shown.unanswered else found

    def _paint_part(
        self,
        painter: QPainter,
        part: TextPart,
        clip: QRectF,
        selected: tuple[int, int] | None,
        colors: Palette,
    ) -> None:
        width = (self._width or 0.0) - part.origin.x() + BUBBLE_PAD_X
        bubble = QRectF(part.origin.x() - BUBBLE_PAD_X, 0, width, self._bubble_height)
        painter.setPen(QPen(colors.border, look.BORDER))
        painter.setBrush(colors.raised)
        painter.drawRoundedRect(bubble.adjusted(0.5, 0.5, -0.5, -0.5), BUBBLE_RADIUS, BUBBLE_RADIUS)
        super()._paint_part(painter, part, clip, selected, colors)
