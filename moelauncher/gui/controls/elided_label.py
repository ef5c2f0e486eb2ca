"""A label of one line that shortens its text and then tells the whole in its tooltip.

A text of parts ("llama · Q4_K_M · 30 layers") loses whole parts, not half a word.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption, QWidget

from moelauncher.gui.controls.plain_tip import plain_tip

PART = " · "
_MORE = " …"
_STUB = 6


class ElidedLabel(QLabel):
    """Plain text, never rich; takes any width from nothing to its text's."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._tip = ""
        self.set_text(text)

    def set_text(self, text: str, tip: str = "") -> None:
        """Show ``text``; ``tip`` replaces the tooltip that otherwise appears when it is cut."""
        flat = " ".join(text.split())
        if flat == self.text() and tip == self._tip:
            return
        self._tip = tip
        self.setText(flat)
        self._set_tip()

    def elided(self) -> bool:
        """Whether the whole text does not fit."""
        return self.fontMetrics().horizontalAdvance(self.text()) > self.contentsRect().width()

    def _set_tip(self) -> None:
        tip = plain_tip(self._tip or (self.text() if self.elided() else ""))
        if tip != self.toolTip():
            self.setToolTip(tip)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_tip()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        area = self.contentsRect()
        text = shortened(self.text(), QFontMetrics(self.font()), area.width())
        # The style sheet's colour arrives in the palette of the polished widget.
        self.style().drawItemText(
            painter,
            area,
            int(self.alignment()) | Qt.TextFlag.TextSingleLine,
            self.palette(),
            self.isEnabled(),
            text,
            QPalette.ColorRole.WindowText,
        )


def shortened(text: str, metrics: QFontMetrics, room: int) -> str:
    """As much of ``text`` as fits in ``room`` pixels."""
    if metrics.horizontalAdvance(text) <= room:
        return text
    parts = text.split(PART)
    for kept in range(len(parts) - 1, 0, -1):
        shorter = PART.join(parts[:kept]) + _MORE
        if metrics.horizontalAdvance(shorter) <= room:
            return shorter
    cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
    # Of several parts, some letters of the first tell less than the sign that there is more.
    return cut if len(parts) == 1 or len(cut) > _STUB else "…"
