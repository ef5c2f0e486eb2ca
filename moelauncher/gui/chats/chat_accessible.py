"""The chat for screen readers: a list of messages, each with its text to walk through.

Messages are painted, so Qt knows nothing of them; here each gets an interface of its own, made when
a screen reader first asks for it. Nothing is made where none runs. GUI thread only.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QAccessibleInterface,
    QAccessibleTextInterface,
    QColor,
    QWindow,
)
from PySide6.QtWidgets import QAccessibleWidget

from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.message_scroll import MessageScroll
from moelauncher.gui.chats.message_view import MessageView
from moelauncher.gui.chats.user_message import UserMessage

#: A name is read in one breath; the whole is in the text.
_NAME_CHARS = 300


class _MessageText(QAccessibleTextInterface):
    """A message's words, for reading by character, word and line."""

    def __init__(self, message: MessageView, owner: MessageAccessible) -> None:
        super().__init__()
        self._message = message
        self._owner = owner
        self._cursor = 0

    def text(self, start: int, end: int) -> str:
        whole = self._message.plain_text
        return whole[start : len(whole) if end < 0 else end]

    def characterCount(self) -> int:
        return len(self._message.plain_text)

    def cursorPosition(self) -> int:
        return self._cursor

    def setCursorPosition(self, position: int) -> None:
        self._cursor = position

    def selectionCount(self) -> int:
        return 0

    def addSelection(self, start: int, end: int) -> None:
        """Text is selected with the mouse, or all of it."""

    def removeSelection(self, selection: int) -> None:
        """There is none."""

    def setSelection(self, selection: int, start: int, end: int) -> None:
        """See :meth:`addSelection`."""

    def characterRect(self, offset: int) -> QRect:
        return self._owner.rect()

    def offsetAtPoint(self, point: QPoint) -> int:
        return 0 if self._owner.rect().contains(point) else -1

    def scrollToSubstring(self, start: int, end: int) -> None:
        self._owner.show()


class MessageAccessible(QAccessibleInterface):
    """One message."""

    def __init__(self, view: MessageScroll, message: MessageView) -> None:
        super().__init__()
        self._view = view
        self._message = message
        self._text = _MessageText(message, self)

    @property
    def number(self) -> int:
        """Which message of the chat it is; -1: none any more."""
        messages = self._view.messages
        return messages.index(self._message) if self._message in messages else -1

    def show(self) -> None:
        """Scroll it into view."""
        if self.number >= 0:
            self._view.show_message(self.number)

    def isValid(self) -> bool:
        return self.number >= 0

    def object(self) -> QObject | None:  # type: ignore[override]
        return None

    def window(self) -> QWindow | None:  # type: ignore[override]
        return self._view.window().windowHandle()

    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._view)

    def child(self, index: int) -> QAccessibleInterface | None:  # type: ignore[override]
        return None

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:  # type: ignore[override]
        return None

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def rect(self) -> QRect:
        return self._view.message_rect(self.number) if self.number >= 0 else QRect()

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        state.readOnly = state.multiLine = state.selectableText = True
        state.invalid = self.number < 0
        state.offscreen = not self.rect().intersects(self._view.message_rect(None))
        return state

    def text(self, kind: QAccessible.Text) -> str:
        if kind == QAccessible.Text.Value:
            return self._message.plain_text
        if kind != QAccessible.Text.Name:
            return ""
        who = tr("You") if isinstance(self._message, UserMessage) else tr("Reply")
        return f"{who}: {' '.join(self._message.plain_body[:_NAME_CHARS].split())}"

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Nothing of a message is written by a screen reader."""

    def interface_cast(self, kind: QAccessible.InterfaceType) -> Any:
        if kind == QAccessible.InterfaceType.TextInterface:
            return self._text
        return super().interface_cast(kind)

    def foregroundColor(self) -> QColor:
        return look.theme().colors.text

    def backgroundColor(self) -> QColor:
        return look.theme().colors.window


class ChatAccessible(QAccessibleWidget):
    """The view: a list whose rows are the messages."""

    def __init__(self, view: MessageScroll) -> None:
        super().__init__(view, QAccessible.Role.List)
        self._view = view
        self._rows: dict[int, tuple[int, MessageView, MessageAccessible]] = {}
        view.destroyed.connect(partial(_delete_all, self._rows))

    def childCount(self) -> int:
        return len(self._view.messages)

    def child(self, index: int) -> QAccessibleInterface | None:  # type: ignore[override]
        messages = self._view.messages
        return self._row(messages[index]) if 0 <= index < len(messages) else None

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:  # type: ignore[override]
        for number, message in enumerate(self._view.messages):
            if self._view.message_rect(number).contains(x, y):
                return self._row(message)
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return child.number if isinstance(child, MessageAccessible) else -1

    def focusChild(self) -> QAccessibleInterface | None:  # type: ignore[override]
        return None

    def forget_gone(self) -> None:
        """Drop what stood for messages that are not there any more."""
        there = {id(message) for message in self._view.messages}
        for key in [key for key in self._rows if key not in there]:
            QAccessible.deleteAccessibleInterface(self._rows.pop(key)[0])

    def _row(self, message: MessageView) -> MessageAccessible:
        known = self._rows.get(id(message))
        if known is None:
            made = MessageAccessible(self._view, message)
            known = (QAccessible.registerAccessibleInterface(made), message, made)
            self._rows[id(message)] = known
        return known[2]


def _delete_all(rows: dict[int, tuple[int, MessageView, MessageAccessible]]) -> None:
    for number, _, _ in rows.values():
        QAccessible.deleteAccessibleInterface(number)
    rows.clear()


def install(view_type: type[MessageScroll]) -> None:
    """Let screen readers find the messages of every ``view_type``."""

    def interface_for(name: str, item: QObject | None) -> QAccessibleInterface | None:
        if not isinstance(item, view_type):
            return None
        # The view keeps it: Qt deletes it with the view.
        item.accessible = ChatAccessible(item)
        return item.accessible

    QAccessible.installFactory(interface_for)


def say(view: MessageScroll, text: str) -> None:
    """Let a screen reader say ``text`` at once, where one runs."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(view, text))


def tell_messages_changed(view: MessageScroll) -> None:
    """Other messages are shown; a screen reader that knows the old ones asks anew."""
    if isinstance(view.accessible, ChatAccessible):
        view.accessible.forget_gone()
        QAccessible.updateAccessibility(QAccessibleEvent(view, QAccessible.Event.ObjectReorder))
