"""The list of chats as a model, and how one row is painted. GUI thread only."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QDateTime,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from moelauncher.core.chats.kept_chat import ChatRow
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look

PAD_Y = 7
LINE_GAP = 2
BAR_PX = 3
DOT_PX = 8

Index = QModelIndex | QPersistentModelIndex


class ChatListModel(QAbstractListModel):
    """The rows, and which chat is open.

    Signals:
        renamed(str, str): the user gave this chat this title.
    """

    renamed = Signal(str, str)
    ROW = Qt.ItemDataRole.UserRole + 1
    #: Whether the row has a dot: it is being answered, or holds a reply that was not seen.
    DOT = ROW + 1
    SECOND_LINE = ROW + 2

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[ChatRow] = []
        self._answering = ""
        self._unread: set[str] = set()

    def set_rows(self, rows: Sequence[ChatRow]) -> None:
        """Show these; a row that only changed its words keeps its place and selection."""
        if [row.id for row in rows] == [row.id for row in self.rows]:
            for number, (old, new) in enumerate(zip(self.rows, rows, strict=True)):
                if old != new:
                    self.rows[number] = new
                    self.dataChanged.emit(self.index(number), self.index(number))
            return
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def set_answering(self, chat_id: str) -> None:
        """The chat that a reply is being written for; empty: none."""
        before, self._answering = self._answering, chat_id
        self._changed(before)
        self._changed(chat_id)

    def set_unread(self, chat_id: str, unread: bool) -> None:
        """Whether a chat holds a reply that was not seen."""
        if unread:
            self._unread.add(chat_id)
        else:
            self._unread.discard(chat_id)
        self._changed(chat_id)

    def _changed(self, chat_id: str) -> None:
        index = self.index_of(chat_id)
        if index.isValid():
            self.dataChanged.emit(index, index)

    def index_of(self, chat_id: str) -> QModelIndex:
        """Where a chat stands; an invalid index if it is not listed."""
        for number, row in enumerate(self.rows):
            if row.id == chat_id:
                return self.index(number)
        return QModelIndex()

    # Qt's own

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not 0 <= index.row() < len(self.rows):
            return None
        row = self.rows[index.row()]
        if role == self.ROW:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return None  # a title may look like HTML, which tooltips would show as such
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{row.title}, {self._second_line(row)}"
        if role == self.SECOND_LINE:
            return self._second_line(row)
        if role == self.DOT:
            return row.id == self._answering or row.id in self._unread
        return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not isinstance(value, str):
            return False
        row = self.rows[index.row()]
        if value.strip() != row.title:
            self.renamed.emit(row.id, value.strip())
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def _second_line(self, row: ChatRow) -> str:
        if row.id == self._answering:
            return tr("a reply is being written")
        told = second_line(row)
        return tr("new reply · {told}").format(told=told) if row.id in self._unread else told


def second_line(row: ChatRow) -> str:
    """When and with which model; where the search found something, that."""
    if row.snippet:
        return row.snippet
    return " · ".join(part for part in (when_text(row.updated_s), row.label) if part)


def when_text(then_s: float, now_s: float | None = None) -> str:
    """A time of day for today, else a date, as the user's country writes them."""
    then = QDateTime.fromSecsSinceEpoch(int(then_s))
    today = QDateTime.fromSecsSinceEpoch(int(time.time() if now_s is None else now_s)).date()
    if then.date() == today:
        return QLocale().toString(then.time(), QLocale.FormatType.ShortFormat)
    if then.date().daysTo(today) == 1:
        return tr("yesterday")
    return QLocale().toString(then.date(), QLocale.FormatType.ShortFormat)


class ChatRowDelegate(QStyledItemDelegate):
    """Title and a small second line."""

    @staticmethod
    def row_height() -> int:
        """How tall a row is, in logical pixels."""
        title = QFontMetricsF(look.font("body")).height()
        small = QFontMetricsF(look.font("small")).height()
        return round(title + small) + 2 * PAD_Y + LINE_GAP

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ChatListModel.ROW)
        if not isinstance(row, ChatRow):
            return
        colors = look.theme().colors
        rect = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        if chosen:
            painter.fillRect(rect, colors.selected)
            painter.fillRect(QRectF(rect.left(), rect.top(), BAR_PX, rect.height()), colors.accent)
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colors.surface)
        area = rect.adjusted(look.PANE_MARGIN, PAD_Y, -look.PANE_MARGIN, -PAD_Y)
        if index.data(ChatListModel.DOT):
            centre = QPointF(area.right() - DOT_PX / 2, area.center().y())
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.accent)
            painter.drawEllipse(centre, DOT_PX / 2, DOT_PX / 2)
            area.setRight(area.right() - DOT_PX - look.GRID)
        flags = Qt.AlignmentFlag.AlignVCenter.value | Qt.TextFlag.TextSingleLine.value
        for text, font, ink in (
            (row.title, look.font("body"), colors.text),
            (index.data(ChatListModel.SECOND_LINE), look.font("small", figures=True), colors.muted),
        ):
            metrics = QFontMetricsF(font)
            line = QRectF(area.left(), area.top(), area.width(), metrics.height())
            painter.setFont(font)
            painter.setPen(ink)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, line.width())
            painter.drawText(line, flags, shown)
            area.setTop(line.bottom() + LINE_GAP)
        keyboard = QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_KeyboardFocusChange
        if option.state & keyboard == keyboard:
            painter.setPen(QPen(colors.accent, look.BORDER))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(200, self.row_height())

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName(tr("Title of the chat"))
        return editor

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        rect = option.rect
        height = look.CONTROL_HEIGHT
        top = rect.top() + (rect.height() - height) // 2
        editor.setGeometry(rect.left() + look.GRID, top, rect.width() - 2 * look.GRID, height)
