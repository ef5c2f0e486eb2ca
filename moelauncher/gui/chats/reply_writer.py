"""Writes a reply into the chat that asked for it, whether that is in view or another one is.

In: what the engine wrote, once a frame, and the reply's end. Out: the chat's turn, stored about
once a second; its text in the view while the chat is shown, and else a word when it is done.
Stands behind :class:`~moelauncher.gui.chats.chat_session.ChatSession`. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.thought_clock import ThoughtClock
from moelauncher.gui.main_window import MainWindow

#: A reply in progress is stored this often.
STORE_MS = 700


class ReplyWriter(QObject):
    """One reply after the other; what comes without an open one is dropped."""

    def __init__(
        self,
        window: MainWindow,
        session: ChatSession,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._session = session
        self._thought = ThoughtClock(clock)
        self._storing = QTimer(self, interval=STORE_MS)
        self._storing.timeout.connect(self._store)

    def begin(self, goes_on: bool) -> None:
        """The chat that is shown has opened a reply; ``goes_on``: one that is there in part."""
        chat = self._session.chat
        self._thought.begin(chat.conversation.path[-1].turn if goes_on else None)
        self._storing.start()
        self._window.chats.set_answering(chat.id)

    def append(self, text: str, reasoning: str) -> None:
        """What the engine wrote in one frame."""
        chat = self._session.open.answering
        if chat is None or not (text or reasoning):
            return
        thought_s = self._thought.hear(text, reasoning)
        self._session.answered(chat.conversation.append(text, reasoning, thought_s))
        if self._session.elsewhere is None:
            self._window.chat.append(text, reasoning)

    def finish(self, stats: GenerationStats, placement_text: str) -> None:
        """The reply is complete, or was stopped."""
        chat = self._session.open.answering
        if chat is None:
            return
        shown = self._session.elsewhere is None
        self._session.answered(chat.conversation.finish(stats, placement_text, self._thought.end()))
        if shown:
            self._window.chat.finish_reply(stats, placement_text)
        elif stats.finish_reason != "cancelled":
            text = self.tr("The reply in “{title}” is ready.").format(title=chat.shown_title)
            self._announce(chat, text, "good")
        self._closed(shown)

    def fail(self, error: LauncherError) -> None:
        """The reply ended with an error."""
        chat = self._session.open.answering
        if chat is None:
            return
        shown = self._session.elsewhere is None
        self._session.answered(chat.conversation.fail(error))
        if shown:
            self._window.chat.fail_reply(error)
        else:
            text = self.tr("In “{title}”: {what}").format(
                title=chat.shown_title, what=error.sentence
            )
            self._announce(chat, text, "error")
        self._closed(shown)

    def cut(self) -> None:
        """Nobody writes on: the program ends."""
        chat = self._session.open.answering
        if chat is not None:
            self._session.answered(chat.conversation.cut())
        self._storing.stop()

    # Parts

    def _store(self) -> None:
        chat = self._session.open.answering
        if chat is not None:
            self._session.keeper.save(chat)

    def _announce(self, chat: KeptChat, text: str, level: str) -> None:
        self._window.chats.set_unread(chat.id)
        self._window.status.set_message(
            text, level, self.tr("Show"), lambda: self._session.open_chat(chat.id)
        )

    def _closed(self, shown: bool) -> None:
        self._storing.stop()
        self._window.chats.set_answering("")
        self._session.reply_closed(shown)
