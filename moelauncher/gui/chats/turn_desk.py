"""What the user does with turns: asks, edits, has one answered again, deletes.

In: a message that is sent, the actions beneath the messages. Out: changes of the chat that is
shown (:class:`~moelauncher.gui.chats.chat_session.ChatSession`, which keeps them) and requests
for the engine, which the :class:`~moelauncher.gui.session.Session` runs. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.turn import Turn
from moelauncher.core.engine_protocol import GenerateRequest, Sampling
from moelauncher.gui.chats.branch_desk import BranchDesk
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.main_window import MainWindow


class TurnDesk(QObject):
    """Works on the chat that is shown.

    Signals:
        reply_wanted(object): a reply was opened; answer this GenerateRequest.
    """

    reply_wanted = Signal(object)

    def __init__(
        self, window: MainWindow, chat: ChatSession, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._chat = chat
        self._branches = BranchDesk(window.chat.undo, chat, self)
        self._can_answer = False
        window.chat.turn_action.connect(self.act)

    def set_can_answer(self, can: bool) -> None:
        """Whether a reply can be asked for now."""
        self._can_answer = can

    def send(self, text: str) -> None:
        """Ask, or ask otherwise where an earlier message is being edited."""
        if not text.strip() or not self._can_answer:
            return
        chat, view = self._chat, self._window.chat
        editing = chat.drafts.take_edit()
        if editing is not None and editing in chat.conversation.nodes:
            chat.take(chat.conversation.edit(editing, text))
            view.show_turns(chat.conversation.shown())
            view.scroll_to_end()
        else:
            chat.take(chat.conversation.ask(text))
            view.add_user_message(text)
        self._begin(chat.conversation.begin_reply(chat.model_name, self._sampling()))

    def act(self, kind: str, key: int) -> None:
        """One of the actions beneath a message."""
        chat, talk = self._chat, self._chat.conversation
        if key not in talk.nodes:
            return
        turn = talk.nodes[key].turn
        if kind == "copy_turn":
            QGuiApplication.clipboard().setText(turn.text)
            self._tell(self.tr("The message was copied as Markdown."), "good")
        elif chat.refused():
            return
        elif kind in ("older", "newer"):
            self._branches.step(key, -1 if kind == "older" else 1)
        elif kind == "edit":
            chat.drafts.begin_edit(key, turn.text)
        elif kind == "delete":
            self._branches.delete(key)
        elif kind == "take_in":
            chat.change(talk.take_in([key]))
        elif chat.elsewhere is not None:
            text = self.tr("A reply is being written in “{title}”: wait for its end, or stop it.")
            self._tell(text.format(title=chat.elsewhere.shown_title), "info")
        elif not self._can_answer:
            self._tell(self.tr("Launch a model first: nobody is there to answer."), "info")
        elif kind == "answer" and talk.path[-1].key == key:
            self._begin(talk.begin_reply(chat.model_name, self._sampling()))
        elif kind == "regenerate":
            self._begin(talk.regenerate(key, chat.model_name, self._sampling()))
        elif kind == "use_chatml":
            chat.settings.use_template(CHATML)
            self._tell(self.tr("ChatML is used for this model from now on."), "info")
            self._begin(talk.regenerate(key, chat.model_name, self._sampling()))
        elif kind == "go_on" and talk.path[-1].key == key:
            self._begin(talk.go_on(), goes_on=True)

    def regenerate_last(self) -> None:
        """Another version of the last reply, or a reply where the last one was deleted."""
        talk = self._chat.conversation
        if not talk.path or talk.streaming:
            return
        last = talk.path[-1]
        self.act("regenerate" if last.turn.role == "assistant" else "answer", last.key)

    def edit_last(self) -> None:
        """Edit the user's newest message."""
        for node in reversed(self._chat.conversation.path):
            if node.turn.role == "user":
                self.act("edit", node.key)
                return

    def leave_out(self, left_out: Sequence[int]) -> None:
        """Give the model these turns no longer; they stay to be read, and it can be undone."""
        if not self._chat.refused():
            self._branches.leave_out(left_out)

    def prospect(self, text: str) -> Conversation:
        """The conversation as it would be with ``text`` sent now."""
        talk = self._chat.conversation
        if not text.strip() or talk.streaming:
            return talk
        editing = self._chat.drafts.editing
        if editing is not None and editing in talk.nodes:
            return talk.edit(editing, text)
        return talk.ask(text)

    def given_turns(self) -> list[tuple[int, Turn]]:
        """The visible turns that the model is given, with their keys."""
        talk = self._chat.conversation
        return [(n.key, n.turn) for n in talk.path if n.key not in talk.left_out]

    # Parts

    def _sampling(self) -> Sampling:
        return self._chat.settings.for_reply(self._chat.chat.settings).sampling

    def _begin(self, talk: Conversation, goes_on: bool = False) -> None:
        chat, view = self._chat, self._window.chat
        chat.take(talk)
        if talk.path[-1].key == talk.next_key - 1 and len(talk.versions(talk.path[-1].key)) == 1:
            view.begin_reply(chat.model_name)
        view.show_turns(talk.shown())
        wanted = chat.settings.for_reply(chat.chat.settings)
        self.reply_wanted.emit(
            GenerateRequest(
                messages=talk.messages_to_go_on() if goes_on else talk.messages(),
                sampling=wanted.sampling,
                max_tokens=wanted.max_tokens,
                stop=wanted.stop,
                template=chat.settings.template(),
                template_values=chat.thinking.values(),
                continues=goes_on,
                chat_id=chat.chat.id,
            )
        )

    def _tell(self, text: str, level: str) -> None:
        self._window.status.set_message(text, level)
