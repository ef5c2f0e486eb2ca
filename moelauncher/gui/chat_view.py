"""The chat: messages come in, and are selected, copied, folded and followed by mouse and keys.

How they scroll and are painted stands in :mod:`moelauncher.gui.message_scroll`. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QPointF, Qt, QTimer
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
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

from moelauncher.core.conversation import Conversation
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.gui import theme as look
from moelauncher.gui.chat_selection import ChatSelection, TextPlace
from moelauncher.gui.link_question import ask_and_open
from moelauncher.gui.message_scroll import MessageScroll
from moelauncher.gui.message_view import HotSpot, MessageView, SelectionOf
from moelauncher.gui.reply_message import ReplyMessage
from moelauncher.gui.user_message import UserMessage

COPIED_MS = 1500
ANNOUNCED_CHARS = 2000


class ChatView(MessageScroll):
    """All messages of a chat: what is said, selected, clicked and typed."""

    def __init__(
        self, parent: QWidget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self.setObjectName("chatView")
        self.setAccessibleName(self.tr("Chat"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self._clock = clock
        self._selection = ChatSelection()
        self._selecting = False
        self._hover: tuple[int, HotSpot] | None = None
        self._focused: tuple[int, int] | None = None  # message, hot spot in it
        self._copied_in: ReplyMessage | None = None
        self._copied_timer = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied_timer.timeout.connect(self._forget_copied)
        self._drag_scroll = QTimer(self, interval=40)
        self._drag_scroll.timeout.connect(self._scroll_with_drag)

    # What is shown

    def toPlainText(self) -> str:
        """The whole visible chat as plain text."""
        self._column.lay_out_all()
        self._sync()
        texts = (message.plain_text for message in self._column.messages)
        return "\n\n".join(texts) or self._hint

    @property
    def n_messages(self) -> int:
        """How many messages the chat has."""
        return len(self._column.messages)

    def clear(self) -> None:
        """Forget all messages."""
        self._column.set_messages(())
        self._selection.clear()
        self._hover = self._focused = self._copied_in = None
        self._idle.stop()
        self._set_follow(True)
        self._chip.hide()
        self._sync()

    def show_conversation(self, conversation: Conversation) -> None:
        """Replace the chat by a kept one; only the end of it is laid out now."""
        self.clear()
        messages: list[MessageView] = []
        label = ""
        for turn in conversation.turns:
            if turn.role == "user":
                messages.append(UserMessage(turn.text))
            else:
                differs = bool(label) and turn.label != label
                messages.append(ReplyMessage.of_turn(turn, differs))
                label = turn.label
        self._column.set_messages(messages)
        self._sync()

    def add_user_message(self, text: str) -> None:
        """Add a bubble, and go to the end: whoever sends wants to see the reply."""
        self._set_follow(True)
        self._add(UserMessage(text))

    def begin_reply(self, label: str) -> None:
        """Add an empty reply; ``label`` is shown where it differs from the reply before."""
        before = next(
            (m.label for m in reversed(self._column.messages) if isinstance(m, ReplyMessage)), label
        )
        self._add(ReplyMessage(label, before != label))

    def append(self, text: str, reasoning: str) -> None:
        """Add coalesced text to the open reply. Called by a paint timer, not per token."""
        reply = self._open_reply()
        if reply is None or not (text or reasoning):
            return
        changed_from = reply.append(text, reasoning, self._clock())
        self._last_changed(changed_from)

    def set_prompt_progress(
        self, done: int, total: int, tok_s: float | None, left_s: float | None
    ) -> None:
        """Show how much of the prompt the model has read."""
        reply = self._open_reply()
        if reply is not None:
            reply.set_progress(done, total, tok_s, left_s)
            self._last_changed()

    def finish_reply(self, stats: GenerationStats, placement_text: str) -> None:
        """Close the open reply: Markdown, and its numbers beneath."""
        reply = self._open_reply()
        if reply is not None:
            reply.finish(stats, placement_text)
            self._last_changed()
            self._announce(reply.source_text)

    def fail_reply(self, error: LauncherError) -> None:
        """Close the open reply (or a new one) with an error."""
        if self._open_reply() is None:
            self.begin_reply("")
        reply = self._open_reply()
        if reply is not None:
            reply.fail(error)
            self._last_changed()
            self._announce(error.sentence)

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

    # Messages

    def _add(self, message: MessageView) -> None:
        self._column.add(message)
        self._sync()
        if not self._follow:
            self._chip.show()

    def _open_reply(self) -> ReplyMessage | None:
        last = self._column.last
        return last if isinstance(last, ReplyMessage) and last.streaming else None

    def _announce(self, text: str) -> None:
        self.setAccessibleDescription(text[:ANNOUNCED_CHARS])
        if QAccessible.isActive():
            event = QAccessibleAnnouncementEvent(self, text[:ANNOUNCED_CHARS])
            QAccessible.updateAccessibility(event)

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
        rect = self._column.messages[number].hot_spots[index].rect
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
            source = self._column.messages[at[0]].source_text
            whole = menu.addAction(
                self.tr("Copy message"), lambda: QGuiApplication.clipboard().setText(source)
            )
            whole.setEnabled(bool(source))
            link = self._column.messages[at[0]].link_at(at[1])
            if link:
                menu.addAction(
                    self.tr("Copy link address"),
                    lambda: QGuiApplication.clipboard().setText(link),
                )
        menu.addSeparator()
        menu.addAction(self.tr("Select all"), self.select_all)

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
        self, painter: QPainter, message: MessageView, index: int, colors: look.Palette
    ) -> None:
        if index >= len(message.hot_spots):
            return
        painter.setPen(QPen(colors.accent, look.FOCUS_RING))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        rect = message.hot_spots[index].rect.adjusted(-3, 1, 1, -1)
        painter.drawRoundedRect(rect, look.HALF, look.HALF)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave and self._hover is not None:
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
