"""The chat: turns come in and are shown as messages, a streaming one among them.

How they scroll and are painted stands in :mod:`moelauncher.gui.chats.message_scroll`, what mouse
and keys do in :mod:`moelauncher.gui.chats.chat_pointer`. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from moelauncher.core.chats.conversation import Conversation, ShownTurn
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.gui.chats.chat_accessible import install, say, tell_messages_changed
from moelauncher.gui.chats.chat_find import ChatFind
from moelauncher.gui.chats.chat_pointer import ChatPointer
from moelauncher.gui.chats.message_view import MessageView
from moelauncher.gui.chats.reply_message import ReplyMessage
from moelauncher.gui.chats.user_message import UserMessage
from moelauncher.gui.controls.focus_ring import FocusRing

ANNOUNCED_CHARS = 2000


class ChatView(ChatPointer):
    """All messages of a chat.

    Signals:
        hits_changed(): a search that goes on finds other places: the chat is another, or grew.
    """

    hits_changed = Signal()

    def __init__(
        self, parent: QWidget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self.setObjectName("chatView")
        self.setAccessibleName(self.tr("Chat"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self._clock = clock
        self._find = ChatFind(self._column)

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
        self._find_again()
        tell_messages_changed(self)
        self._selection.clear()
        self._hover = self._focused = self._copied_in = self._under = None
        self._idle.stop()
        self._set_follow(True)
        self._chip.hide()
        self._sync()

    def show_conversation(self, conversation: Conversation) -> None:
        """Replace the chat by a kept one; only the end of it is laid out now."""
        self.clear()
        self.show_turns(conversation.shown())

    def show_turns(self, turns: Sequence[ShownTurn], held: int | None = None) -> None:
        """Show these turns; messages that are there already stay as they are, and where.

        ``held``: the number of the message whose lower edge stays where it is on the screen.
        """
        old = self._column.messages
        edge = self._lower_edge(held) if held is not None and held < len(old) else None
        messages: list[MessageView] = []
        label = ""
        for shown in turns:
            number = len(messages)
            there = old[number] if number < len(old) else None
            if there is None or not _shows(there, shown):
                differs = bool(label) and shown.turn.label != label
                there = _message_for(shown, differs)
            if shown.turn.role == "assistant":
                label = shown.turn.label or label
            there.set_shown(shown)
            messages.append(there)
        first_new = next(
            (
                n
                for n, pair in enumerate(zip(old, messages, strict=False))
                if pair[0] is not pair[1]
            ),
            min(len(old), len(messages)),
        )
        if first_new < max(len(old), len(messages)):
            self._selection.clear()
        self._hover = self._focused = self._copied_in = self._under = None
        self._column.set_messages(messages)
        self._find_again()
        self._mark_last()
        if held is not None and edge is not None and held < len(messages):
            self._hold(held, edge)
        else:
            self._sync()
        tell_messages_changed(self)

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

    def set_prompt_progress(self, reading: PromptReading) -> None:
        """Show how much of the prompt the model has read."""
        reply = self._open_reply()
        if reply is not None and reply.set_progress(reading):
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

    # Search

    @property
    def hits(self) -> tuple[int, int]:
        """How many places the search found, and which of them is shown (from 0)."""
        return self._find.n_hits, self._find.at

    def find_text(self, text: str) -> None:
        """Mark every place of ``text``, and show the last; an empty one ends the search."""
        self._find.search(text)
        self._show_hit()

    def step_hit(self, step: int) -> None:
        """Show the next place that was found, or the one before."""
        self._find.step(step)
        self._show_hit()

    def _restyle(self) -> None:
        super()._restyle()
        self._find_again()

    def _find_again(self) -> None:
        self._find.again()
        self.hits_changed.emit()

    def _show_hit(self) -> None:
        unfolded = self._find.reveal()
        if unfolded is not None:
            # Parts are renumbered by a fold, so a selection would move by itself.
            self._selection.clear()
            self._changed(unfolded)
            self._find.again()
        self._sync()
        y = self._find.y()
        if y is not None:
            bar, page = self.verticalScrollBar(), self.viewport().height()
            if not bar.value() + 24 <= y <= bar.value() + page - 48:
                bar.setValue(round(y) - page // 3)
        self.viewport().update()

    # Messages

    def _add(self, message: MessageView) -> None:
        self._column.add(message)
        self._mark_last()
        self._sync()
        tell_messages_changed(self)
        if not self._follow:
            self._chip.show()

    def _open_reply(self) -> ReplyMessage | None:
        last = self._column.last
        return last if isinstance(last, ReplyMessage) and last.streaming else None

    def _announce(self, text: str) -> None:
        self.setAccessibleDescription(text[:ANNOUNCED_CHARS])
        say(self, text[:ANNOUNCED_CHARS])


install(ChatView)


def _shows(message: MessageView, shown: ShownTurn) -> bool:
    """Whether ``message`` is already what ``shown`` would be made into."""
    turn = shown.turn
    if turn.role == "user":
        return isinstance(message, UserMessage) and message.source_text == turn.text
    if not isinstance(message, ReplyMessage):
        return False
    if message.shown is not None and message.shown.key != shown.key:
        return False
    # The beginning may differ by line breaks, which are not shown.
    same = message.source_text.lstrip("\n") == turn.text.lstrip("\n")
    return same and message.streaming == (turn.state is TurnState.STREAMING)


def _message_for(shown: ShownTurn, differs: bool) -> MessageView:
    if shown.turn.role == "user":
        return UserMessage(shown.turn.text)
    return ReplyMessage.of_turn(shown.turn, differs)
