"""The column of messages on the screen: scrolls, follows a streaming reply, paints.

Only what is on the screen is laid out and painted; other heights are estimates that an idle
timer makes exact, without moving what is being read. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessibleInterface, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QPushButton, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.chats.message_column import TOP_PX, MessageColumn
from moelauncher.gui.chats.message_view import HotSpot, MessageView, SelectionOf
from moelauncher.gui.palette import Palette

COLUMN_MAX_PX = 780.0
SIDE_PX = 28.0
#: How long one slice of idle layout may take; the window stays smooth meanwhile.
SLICE_S = 0.008


class MessageScroll(QAbstractScrollArea):
    """Shows a :class:`MessageColumn`; what is selected or hovered is told by the subclass.

    Signals:
        following_changed(bool): whether the view keeps to the end by itself.
    """

    following_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().setSingleStep(24)
        self._column = MessageColumn()
        self._column.set_width(COLUMN_MAX_PX)
        self._follow = True
        self._syncing = False
        self._hint = ""
        #: What a screen reader holds of this view; None: none asked.
        self.accessible: QAccessibleInterface | None = None
        self._idle = QTimer(self, interval=0)
        self._idle.timeout.connect(self._lay_out_some)
        self._chip = QPushButton(self)
        self._chip.setObjectName("newTextChip")
        self._chip.setText(self.tr("↓ New text below"))
        self._chip.setProperty("kind", "chip")
        self._chip.setCursor(Qt.CursorShape.PointingHandCursor)
        self._chip.clicked.connect(self.scroll_to_end)
        self._chip.hide()
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        look.theme().changed.connect(self._restyle)

    @property
    def following(self) -> bool:
        """Whether new text keeps the view at the end."""
        return self._follow

    @property
    def messages(self) -> Sequence[MessageView]:
        """The messages, oldest first."""
        return self._column.messages

    def message_rect(self, number: int | None) -> QRect:
        """Where a message is on the screen; None: the part of the chat that is seen."""
        port = self.viewport()
        corner = port.mapToGlobal(QPoint(0, 0))
        if number is None:
            return QRect(corner, port.size())
        column = self._column
        top = column.tops[number] - self.verticalScrollBar().value()
        size = QSize(round(column.width), round(column.messages[number].height))
        return QRect(corner + QPoint(round(self._left), round(top)), size)

    def show_message(self, number: int) -> None:
        """Scroll to a message."""
        self.verticalScrollBar().setValue(round(self._column.tops[number]) - look.GRID)

    def set_empty_hint(self, text: str) -> None:
        """What an empty chat says."""
        self._hint = text
        self.viewport().update()

    def scroll_to_end(self) -> None:
        """Show the newest text and follow it from now on."""
        self._set_follow(True)
        self._sync()

    # What a subclass may tell

    def _selected_in(self, number: int) -> SelectionOf:
        return lambda part: None

    def _hovered_in(self, number: int) -> HotSpot | None:
        return None

    def _paint_over(self, painter: QPainter, number: int, message: MessageView) -> None:
        """Draw what stands above a message, in its coordinates."""

    def _moved(self) -> None:
        """The user scrolled."""

    # Layout

    @property
    def _left(self) -> float:
        """Where the column of messages begins."""
        return max(SIDE_PX, (self.width() - self._column.width) / 2)

    def _message_at(self, point: QPointF) -> tuple[int, QPointF] | None:
        """The message nearest to a viewport point, and the point in its coordinates."""
        if not self._column.messages:
            return None
        y = point.y() + self.verticalScrollBar().value()
        index = self._column.index_at(y)
        return index, QPointF(point.x() - self._left, y - self._column.tops[index])

    def _sync(self) -> None:
        """Lay out what is on the screen, keep its place, and set the scroll bar."""
        if not self._column.messages:
            self._set_range(0.0, 0)
            self.viewport().update()
            return
        view = self.viewport().height()
        if self._follow:
            self._column.lay_out_end(view + TOP_PX)
            self._set_range(self._column.height, None)
        else:
            value = self.verticalScrollBar().value()
            first = self._column.index_at(value)
            inside = value - self._column.tops[first]
            self._column.lay_out_from(first, view + max(0.0, inside))
            self._set_range(self._column.height, round(self._column.tops[first] + inside))
        self._place_chip()
        if not self._column.exact:
            self._idle.start()
        self.viewport().update()

    def _lower_edge(self, number: int) -> float:
        """Where message ``number`` ends on the screen."""
        column = self._column
        bottom = column.tops[number] + column.messages[number].height
        return bottom - self.verticalScrollBar().value()

    def _hold(self, number: int, edge: float) -> None:
        """Message ``number`` is another one: it ends on the screen where the old one did."""
        self._column.lay_out(number)
        bar = self.verticalScrollBar()
        self._set_follow(False)
        self._set_range(self._column.height, round(self._lower_edge(number) + bar.value() - edge))
        self._sync()
        self._set_follow(bar.value() >= bar.maximum() - 2)
        if self._follow:  # edges are rounded: the end may be a pixel away
            self._sync()

    def _set_range(self, total: float, value: int | None) -> None:
        bar = self.verticalScrollBar()
        page = self.viewport().height()
        self._syncing = True
        bar.setPageStep(page)
        bar.setRange(0, max(0, round(total) - page))
        bar.setValue(bar.maximum() if value is None else value)
        self._syncing = False

    def _lay_out_some(self) -> None:
        """Make estimated heights exact, nearest the end first, a slice at a time."""
        until_s = time.monotonic() + SLICE_S
        bar = self.verticalScrollBar()
        anchor = self._column.index_at(bar.value())
        inside = bar.value() - (self._column.tops[anchor] if self._column.tops else 0.0)
        if not self._column.lay_out_while(lambda: time.monotonic() < until_s):
            self._idle.stop()
            return
        value = None if self._follow else round(self._column.tops[anchor] + inside)
        self._set_range(self._column.height, value)
        self.viewport().update()

    def _last_changed(self, changed_from: float = 0.0) -> None:
        """The last message grew: it alone is laid out, and painted from ``changed_from`` on."""
        self._column.lay_out(len(self._column.messages) - 1)
        top = self._column.tops[-1]
        bar = self.verticalScrollBar()
        self._set_range(self._column.height, None if self._follow else bar.value())
        if not self._follow:
            self._chip.show()
            self._place_chip()
        first = max(0, int(top + changed_from - bar.value()) - 2)
        if first < self.viewport().height():
            self.viewport().update(0, first, self.viewport().width(), self.viewport().height())

    def _changed(self, index: int) -> None:
        """Message ``index`` has another height; what is above it stays where it is."""
        self._column.lay_out(index)
        value = self.verticalScrollBar().value()
        self._set_range(self._column.height, value)
        self._set_follow(value >= self.verticalScrollBar().maximum())
        self._sync()

    def _scrolled(self) -> None:
        if self._syncing:
            return
        bar = self.verticalScrollBar()
        self._set_follow(bar.value() >= bar.maximum() - 2)
        self._moved()
        self._sync()

    def _set_follow(self, follow: bool) -> None:
        if follow:
            self._chip.hide()
        if follow != self._follow:
            self._follow = follow
            self.following_changed.emit(follow)

    def _place_chip(self) -> None:
        size = self._chip.sizeHint()
        x = (self.viewport().width() - size.width()) // 2
        y = self.viewport().height() - size.height() - look.GRID
        self._chip.setGeometry(x, y, size.width(), size.height())
        self._chip.raise_()

    def _restyle(self) -> None:
        for message in self._column.messages:
            message.invalidate()
        self._sync()

    def _paint_hint(self, painter: QPainter, colors: Palette) -> None:
        painter.setFont(look.font("body"))
        painter.setPen(colors.muted)
        room = self.viewport().rect().adjusted(40, 0, -40, 0)
        wide = min(room.width(), 440)
        room.setLeft(room.center().x() - wide // 2)
        room.setWidth(wide)
        flags = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
        painter.drawText(room, flags, self._hint)

    # Qt's own

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = look.theme().colors
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), colors.window)
        if not self._column.messages:
            self._paint_hint(painter, colors)
            return
        value = self.verticalScrollBar().value()
        left = self._left
        clip = QRectF(event.rect()).translated(0, value)
        for number in range(self._column.index_at(clip.top()), len(self._column.messages)):
            message, top = self._column.messages[number], self._column.tops[number]
            if top > clip.bottom():
                break
            if not message.is_laid_out(self._column.width):
                continue
            painter.save()
            painter.translate(left, top - value)
            local = clip.translated(-left, -top)
            message.paint(painter, local, self._selected_in(number), self._hovered_in(number))
            self._paint_over(painter, number, message)
            painter.restore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        # Of the whole view, so that a scroll bar that comes or goes moves nothing.
        room = self.width() - 2 * SIDE_PX
        self._column.set_width(max(160.0, min(COLUMN_MAX_PX, room)))
        self._sync()
