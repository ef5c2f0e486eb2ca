"""Draws one row of the model list: name and size, facts, verdict with its dot.

Quantisations of one model lie under one name: the first of them that is visible carries it.
Rows are painted from their values; there is no widget a row. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from moelauncher.gui import theme as look
from moelauncher.gui.library.model_list_model import ModelListModel
from moelauncher.gui.library.model_row import ModelRow

PAD_Y = 11
LINE_GAP = 4
DOT_PX = 8
#: How far the quantisations of a model stand in.
INDENT_PX = 12
BAR_PX = 3


class ModelRowDelegate(QStyledItemDelegate):
    """Paints a :class:`ModelRow`; takes every text from the model."""

    def __init__(self, model: ModelListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._heights: dict[str, int] = {}
        look.theme().changed.connect(self._heights.clear)

    @staticmethod
    def row_height() -> int:
        """How tall a row is, in logical pixels."""
        name = QFontMetricsF(look.font("body", bold=True)).height()
        small = QFontMetricsF(look.font("small")).height()
        return round(name + 2 * small) + 2 * PAD_Y + 2 * LINE_GAP

    @classmethod
    def member_height(cls) -> int:
        """How tall a quantisation under its model's name is."""
        name = QFontMetricsF(look.font("body")).height()
        small = QFontMetricsF(look.font("small")).height()
        return round(name + small) + 2 * (PAD_Y - 4) + LINE_GAP

    @classmethod
    def heading_height(cls) -> int:
        """How tall the name over the quantisations of a model is."""
        name = QFontMetricsF(look.font("body", bold=True)).height()
        small = QFontMetricsF(look.font("small")).height()
        return round(name + small) + PAD_Y + LINE_GAP + 2

    def place_in_group(self, index: QModelIndex | QPersistentModelIndex) -> str:
        """ "alone", "first" of several quantisations that are visible, or "later"."""
        if index.model().rowCount() == self._model.rowCount():
            # Nothing is filtered out: a long list is measured without asking Qt for neighbours.
            return self._model.place_in_group(index.row())
        row = index.data(ModelListModel.ROW)
        group = row.group if isinstance(row, ModelRow) else ""
        if not group:
            return "alone"
        before = index.sibling(index.row() - 1, 0).data(ModelListModel.ROW)
        if isinstance(before, ModelRow) and before.group == group:
            return "later"
        after = index.sibling(index.row() + 1, 0).data(ModelListModel.ROW)
        return "first" if isinstance(after, ModelRow) and after.group == group else "alone"

    def _paint_row(self, painter: QPainter, area: QRectF, row: ModelRow) -> None:
        colors = look.theme().colors
        dimmed = bool(row.entry.problem)
        bold, small = look.font("body", bold=True), look.font("small", figures=True)
        y = area.top() + PAD_Y
        name_ink = colors.muted if dimmed else colors.text
        y = self._name_and_size(painter, area, y, row, row.entry.name, bold, name_ink)
        height = QFontMetricsF(small).height()
        facts = self._model.facts_line(row.entry)
        self._text(
            painter, QRectF(area.left(), y, area.width(), height), facts, small, colors.muted
        )
        self._verdict(painter, area, y + height + LINE_GAP, row)

    def _paint_heading(self, painter: QPainter, area: QRectF, row: ModelRow) -> None:
        colors = look.theme().colors
        y = area.top() + PAD_Y
        name, shared = self._model.group_lines(row)
        for text, font, ink in (
            (name, look.font("body", bold=True), colors.text),
            (shared, look.font("small", figures=True), colors.muted),
        ):
            height = QFontMetricsF(font).height()
            self._text(painter, QRectF(area.left(), y, area.width(), height), text, font, ink)
            y += height + LINE_GAP

    def _paint_member(self, painter: QPainter, area: QRectF, row: ModelRow) -> None:
        ink = look.theme().colors.text
        inner = area.adjusted(INDENT_PX, 0, 0, 0)
        text = self._model.quant_text(row.entry)
        y = area.top() + PAD_Y - 4
        y = self._name_and_size(painter, inner, y, row, text, look.font("body"), ink)
        self._verdict(painter, inner, y, row)

    def _name_and_size(
        self,
        painter: QPainter,
        area: QRectF,
        y: float,
        row: ModelRow,
        name: str,
        font: QFont,
        ink: QColor,
    ) -> float:
        """Returns where the next line begins."""
        size = self._model.size_text(row.entry)
        size_font = look.font("body", figures=True)
        size_px = QFontMetricsF(size_font).horizontalAdvance(size)
        height = QFontMetricsF(font).height()
        name_room = QRectF(area.left(), y, area.width() - size_px - 2 * look.GRID, height)
        self._text(painter, name_room, name, font, ink)
        size_room = QRectF(area.right() - size_px, y, size_px + 1, height)
        self._text(painter, size_room, size, size_font, look.theme().colors.muted)
        return y + height + LINE_GAP

    def _verdict(self, painter: QPainter, area: QRectF, y: float, row: ModelRow) -> None:
        colors = look.theme().colors
        small = look.font("small", figures=True)
        height = QFontMetricsF(small).height()
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
        place = self.place_in_group(index)
        margins = (look.PANE_MARGIN, 0, -look.PANE_MARGIN, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if place == "first":
            self._paint_heading(painter, rect.adjusted(*margins), row)
            rect.setTop(rect.top() + self.heading_height())
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colors.selected)
            painter.fillRect(QRectF(rect.left(), rect.top(), BAR_PX, rect.height()), colors.accent)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colors.surface)
        paint_body = self._paint_row if place == "alone" else self._paint_member
        paint_body(painter, rect.adjusted(*margins), row)
        keyboard = QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_KeyboardFocusChange
        if state & keyboard == keyboard:
            painter.setPen(QPen(colors.accent, look.BORDER))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        if not self._heights:
            # Kept: a long list asks thousands of times, and fonts are slow to measure.
            member = self.member_height()
            self._heights["alone"] = self.row_height()
            self._heights["first"] = self.heading_height() + member
            self._heights["later"] = member
        return QSize(200, self._heights[self.place_in_group(index)])
