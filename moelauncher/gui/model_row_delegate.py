"""Draws one row of the model list: name and size, facts, verdict with its dot.

All rows are equally tall and are painted from the row's values; there is no widget a row.
GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from moelauncher.gui import theme as look
from moelauncher.gui.model_list_model import ModelListModel, ModelRow

PAD_Y = 11
LINE_GAP = 4
DOT_PX = 8
BAR_PX = 3


class ModelRowDelegate(QStyledItemDelegate):
    """Paints a :class:`ModelRow`; takes every text from the model."""

    def __init__(self, model: ModelListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model

    @staticmethod
    def row_height() -> int:
        """How tall a row is, in logical pixels."""
        name = QFontMetricsF(look.font("body", bold=True)).height()
        small = QFontMetricsF(look.font("small")).height()
        return round(name + 2 * small) + 2 * PAD_Y + 2 * LINE_GAP

    def _paint_row(self, painter: QPainter, area: QRectF, row: ModelRow) -> None:
        colors = look.theme().colors
        dimmed = bool(row.entry.problem)
        bold, small = look.font("body", bold=True), look.font("small", figures=True)
        y = area.top() + PAD_Y

        size = self._model.size_text(row.entry)
        size_font = look.font("body", figures=True)
        size_px = QFontMetricsF(size_font).horizontalAdvance(size)
        height = QFontMetricsF(bold).height()
        name_room = QRectF(area.left(), y, area.width() - size_px - 2 * look.GRID, height)
        name_ink = colors.muted if dimmed else colors.text
        self._text(painter, name_room, row.entry.name, bold, name_ink)
        size_room = QRectF(area.right() - size_px, y, size_px + 1, height)
        self._text(painter, size_room, size, size_font, colors.muted)
        y += height + LINE_GAP

        height = QFontMetricsF(small).height()
        facts = self._model.facts_line(row.entry)
        self._text(
            painter, QRectF(area.left(), y, area.width(), height), facts, small, colors.muted
        )
        y += height + LINE_GAP

        text, level = self._model.verdict_line(row)
        left = area.left()
        if level:
            tone = {"good": colors.good, "warn": colors.warn, "bad": colors.bad}.get(level)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tone or colors.muted)
            painter.drawEllipse(QRectF(left, y + (height - DOT_PX) / 2, DOT_PX, DOT_PX))
            left += DOT_PX + 6
        room = QRectF(left, y, area.right() - left, height)
        self._text(painter, room, text, small, colors.muted)

    def _text(self, painter: QPainter, room: QRectF, text: str, font: QFont, ink: QColor) -> None:
        painter.setFont(font)
        painter.setPen(ink)
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        flags = Qt.AlignmentFlag.AlignVCenter.value | Qt.TextFlag.TextSingleLine.value
        painter.drawText(room, flags, shown)

    # Qt's own

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        row = index.data(ModelListModel.ROW)
        if not isinstance(row, ModelRow):
            return
        colors = look.theme().colors
        rect = QRectF(option.rect)
        state = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colors.selected)
            painter.fillRect(QRectF(rect.left(), rect.top(), BAR_PX, rect.height()), colors.accent)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colors.surface)
        self._paint_row(painter, rect.adjusted(look.PANE_MARGIN, 0, -look.PANE_MARGIN, 0), row)
        keyboard = QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_KeyboardFocusChange
        if state & keyboard == keyboard:
            painter.setPen(QPen(colors.accent, look.BORDER))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(200, self.row_height())
