"""Mouse and keys in the chat: selecting, copying, folding, and what can be done with a turn.

GUI thread only.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QPointF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPen,
    QTextCursor,
)
from PySide6.QtWidgets import QMenu, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.chats.chat_accessible import say
from moelauncher.gui.chats.chat_selection import ChatSelection, TextPlace
from moelauncher.gui.chats.link_question import ask_and_open
from moelauncher.gui.chats.message_scroll import MessageScroll
from moelauncher.gui.chats.message_view import ACTIONS, HotSpot, MessageView, SelectionOf
from moelauncher.gui.chats.reply_message import ReplyMessage
from moelauncher.gui.chats.user_message import UserMessage
from moelauncher.gui.palette import Palette

COPIED_MS = 1500


class ChatPointer(MessageScroll):
    """A column of messages that can be selected, copied, folded and acted upon.

    Signals:
        action_requested(str, int): one of the message's ACTIONS, and the key of its turn.
    """

    action_requested = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.viewport().setMouseTracking(True)
        self._selection = ChatSelection()
        self._selecting = False
        self._hover: tuple[int, HotSpot] | None = None
        self._under: MessageView | None = None  # the message under the mouse
        self._focused: tuple[int, int] | None = None  # message, hot spot in it
        self._copied_in: ReplyMessage | None = None
        self._copied_timer = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied_timer.timeout.connect(self._forget_copied)
        self._drag_scroll = QTimer(self, interval=40)
        self._drag_scroll.timeout.connect(self._scroll_with_drag)

    # Selection and copy

    def selected_text(self) -> str:
        """The selected text, parts and messages on lines of their own."""
        return self._selection.text(self._column.messages)

    def copy(self) -> None:
        """Put the selected text on the clipboard, if there is any."""
        text = self.selected_text()
        if text:
            QGuiApplication.clipboard().setText(text)

    def select_all(self) -> None:
        """Select every message."""
        if not self._column.messages:
            return
        self._column.lay_out_all()
        self._sync()
        last = self._column.messages[-1]
        part = max((i for i, p in enumerate(last.parts) if p.selectable), default=0)
        end = last.parts[part].document.characterCount() - 1 if last.parts else 0
        self._selection.set(
            TextPlace(0, 0, 0), TextPlace(len(self._column.messages) - 1, part, end)
        )
        self.viewport().update()

    # Mouse and keyboard

    def _spot_at(self, point: QPointF) -> tuple[int, HotSpot] | None:
        at = self._message_at(point)
        if at is None:
            return None
        for spot in self._column.messages[at[0]].hot_spots:
            if spot.rect.contains(at[1]):
                return at[0], spot
        return None

    def _place_at(self, point: QPointF) -> TextPlace | None:
        at = self._message_at(point)
        if at is None:
            return None
        self._column.lay_out(at[0])
        part = self._column.messages[at[0]].part_at(at[1])
        return None if part is None else TextPlace(at[0], *part)

    def _activate(self, index: int, spot: HotSpot) -> None:
        message = self._column.messages[index]
        if spot.kind == "copy" and isinstance(message, ReplyMessage):
            QGuiApplication.clipboard().setText(spot.payload)
            self._forget_copied()
            message.set_copied(spot)
            self._copied_in = message
            self._copied_timer.start()
            self.viewport().update()
        elif spot.kind in ACTIONS:
            if message.shown is not None:
                self.action_requested.emit(spot.kind, message.shown.key)
        elif isinstance(message, (ReplyMessage, UserMessage)):
            # Parts are renumbered by a fold, so a selection would move by itself.
            self._selection.clear()
            message.toggle(spot.kind)
            self._changed(index)

    def _forget_copied(self) -> None:
        if self._copied_in is not None:
            self._copied_in.set_copied(None)
            self._copied_in = None
            self.viewport().update()

    def _scroll_with_drag(self) -> None:
        point = self.viewport().mapFromGlobal(self.cursor().pos())
        over = min(0, point.y()) + max(0, point.y() - self.viewport().height())
        if not self._selecting or not over:
            self._drag_scroll.stop()
            return
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + max(-60, min(60, over)))
        self._extend_selection(QPointF(point))

    def _extend_selection(self, point: QPointF) -> None:
        place = self._place_at(point)
        if place is not None and place != self._selection.head:
            self._selection.head = place
            self.viewport().update()

    def _focus_spot(self, step: int) -> bool:
        order = self._column.hot_spots()
        if not order:
            return False
        if self._focused in order:
            wanted = order.index(self._focused) + step
        else:
            wanted = 0 if step > 0 else len(order) - 1
        if not 0 <= wanted < len(order):
            self._focused = None
            self.viewport().update()
            return False
        self._focused = order[wanted]
        number, index = self._focused
        spot = self._column.messages[number].hot_spots[index]
        # It is painted: nobody else tells a screen reader where the focus went.
        say(self, spot.label)
        rect = spot.rect
        top = self._column.tops[number] + rect.top()
        bar = self.verticalScrollBar()
        if not bar.value() <= top <= bar.value() + self.viewport().height() - rect.height():
            bar.setValue(round(top) - self.viewport().height() // 3)
        self.viewport().update()
        return True

    def _context_actions(self, point: QPointF, menu: QMenu) -> None:
        copy = menu.addAction(self.tr("Copy selected text"), self.copy)
        copy.setEnabled(bool(self.selected_text()))
        at = self._message_at(point)
        if at is not None:
            message = self._column.messages[at[0]]
            for label, text in (
                (self.tr("Copy message as text"), message.plain_body),
                (self.tr("Copy message as Markdown"), message.source_text),
            ):
                whole = menu.addAction(label, partial(QGuiApplication.clipboard().setText, text))
                whole.setEnabled(bool(text))
            link = self._column.messages[at[0]].link_at(at[1])
            if link:
                menu.addAction(
                    self.tr("Copy link address"),
                    lambda: QGuiApplication.clipboard().setText(link),
                )
            self._add_turn_actions(self._column.messages[at[0]], menu)
        menu.addSeparator()
        menu.addAction(self.tr("Select all"), self.select_all)

    def _add_turn_actions(self, message: MessageView, menu: QMenu) -> None:
        spots = [spot for spot in message.hot_spots if spot.kind in ACTIONS - {"copy_turn"}]
        if message.shown is None or not spots:
            return
        menu.addSeparator()
        names = {"older": self.tr("Older version"), "newer": self.tr("Newer version")}
        for spot in spots:
            action = menu.addAction(names.get(spot.kind, spot.label))
            action.triggered.connect(
                partial(self.action_requested.emit, spot.kind, message.shown.key)
            )

    def _mark_last(self) -> None:
        """The last message shows its actions without being pointed at."""
        last = self._column.last
        for message in self._column.messages:
            message.actions_seen = message is last or message is self._under

    def _point_at(self, point: QPointF | None) -> None:
        at = self._message_at(point) if point is not None else None
        under = self._column.messages[at[0]] if at is not None else None
        if under is not self._under:
            self._under = under
            self._mark_last()
            self.viewport().update()

    # What the scrolling asks for

    def _selected_in(self, number: int) -> SelectionOf:
        return partial(self._selection.span, self._column.messages, number)

    def _hovered_in(self, number: int) -> HotSpot | None:
        return self._hover[1] if self._hover and self._hover[0] == number else None

    def _paint_over(self, painter: QPainter, number: int, message: MessageView) -> None:
        if self._focused is not None and self._focused[0] == number and self.hasFocus():
            self._paint_focus(painter, message, self._focused[1], look.theme().colors)

    def _moved(self) -> None:
        self._hover = None

    # Qt's own

    def _paint_focus(
        self, painter: QPainter, message: MessageView, index: int, colors: Palette
    ) -> None:
        if index >= len(message.hot_spots):
            return
        painter.setPen(QPen(colors.accent, look.FOCUS_RING))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        rect = message.hot_spots[index].rect.adjusted(-3, 1, 1, -1)
        painter.drawRoundedRect(rect, look.HALF, look.HALF)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._point_at(None)
            if self._hover is not None:
                self._hover = None
                self.viewport().update()
        return super().viewportEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._focused = None
        if self._spot_at(event.position()) is not None:
            return
        place = self._place_at(event.position())
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._selection.anchor:
            self._selection.head = place or self._selection.head
        else:
            self._selection.set(place, place)
        self._selecting = place is not None
        self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._selecting and event.buttons() & Qt.MouseButton.LeftButton:
            self._extend_selection(event.position())
            if not self.viewport().rect().contains(event.position().toPoint()):
                self._drag_scroll.start()
            return
        self._point_at(event.position())
        spot = self._spot_at(event.position())
        if spot != self._hover:
            self._hover = spot
            self.viewport().update()
        self.viewport().setCursor(self._cursor_at(event.position(), spot is not None))

    def _cursor_at(self, point: QPointF, on_spot: bool) -> Qt.CursorShape:
        at = self._message_at(point)
        if on_spot or (at is not None and self._column.messages[at[0]].link_at(at[1])):
            return Qt.CursorShape.PointingHandCursor
        if at is not None and self._column.messages[at[0]].text_at(at[1]):
            return Qt.CursorShape.IBeamCursor
        return Qt.CursorShape.ArrowCursor

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        was_selecting, self._selecting = self._selecting, False
        self._drag_scroll.stop()
        spot = self._spot_at(event.position())
        if spot is not None and not was_selecting:
            self._activate(*spot)
            return
        at = self._message_at(event.position())
        if at is not None and self._selection.empty:
            link = self._column.messages[at[0]].link_at(at[1])
            if link:
                ask_and_open(link, self)
        clipboard = QGuiApplication.clipboard()
        if clipboard.supportsSelection() and not self._selection.empty:
            clipboard.setText(self.selected_text(), clipboard.Mode.Selection)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place is None or self._spot_at(event.position()) is not None:
            return
        cursor = QTextCursor(self._column.messages[place.message].parts[place.part].document)
        cursor.setPosition(place.position)
        cursor.select(QTextCursor.SelectionType.WordUnderCursor)
        self._selection.set(
            TextPlace(place.message, place.part, cursor.selectionStart()),
            TextPlace(place.message, place.part, cursor.selectionEnd()),
        )
        self.viewport().update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._context_actions(QPointF(self.viewport().mapFromGlobal(event.globalPos())), menu)
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and (
            self._focused in self._column.hot_spots()
        ):
            number, index = self._focused or (0, 0)
            self._activate(number, self._column.messages[number].hot_spots[index])
        elif event.key() == Qt.Key.Key_Escape and not self._selection.empty:
            self._selection.clear()
            self.viewport().update()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        if self.hasFocus() and self._focus_spot(1 if forward else -1):
            return True
        return super().focusNextPrevChild(forward)
