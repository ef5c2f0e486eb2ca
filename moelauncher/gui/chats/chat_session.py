"""The chat that is shown: asking, branching, and keeping all of it.

It turns what the user does with turns into requests for the engine; what the engine answers
goes through :mod:`~moelauncher.gui.chats.reply_writer` into the chat that asked, while the user
may look at others. The :class:`~moelauncher.gui.session.Session` runs the engine. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from moelauncher.core.chats.chat_library import ChatLibrary
from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from moelauncher.core.chats.open_chats import OpenChats
from moelauncher.core.chats.sampling_presets import Preset, with_preset
from moelauncher.core.chats.turn import Turn
from moelauncher.core.engine_protocol import GenerateRequest, Sampling
from moelauncher.core.program import settings as keys
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.branch_desk import BranchDesk
from moelauncher.gui.chats.chat_keeper import ChatKeeper
from moelauncher.gui.chats.chat_settings_desk import ChatSettingsDesk
from moelauncher.gui.chats.draft_desk import DraftDesk
from moelauncher.gui.chats.kept_chats_desk import KeptChatsDesk
from moelauncher.gui.chats.reply_writer import ReplyWriter
from moelauncher.gui.chats.thinking_choice import ThinkingChoice
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.services import Services


class ChatSession(QObject):
    """One chat, its turns and its keeper.

    Signals:
        reply_wanted(object): a reply was opened; answer this GenerateRequest.
        changed(): what is shown is another branch or another chat, or a reply ended.
        left(): what the engine has evaluated last is of a chat that is shown no longer.
        deleted(str): the chat of that id was deleted, or something in it.
    """

    reply_wanted = Signal(object)
    changed = Signal()
    left = Signal()
    deleted = Signal(str)

    def __init__(
        self, window: MainWindow, services: Services, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        self._model_name = ""
        self._can_answer = False
        self._opening = ""  # the id of the chat that is waited for
        self.thinking = ThinkingChoice(window.chat.composer.thinking, services.state, self)
        self.keeper = ChatKeeper(services.paths.chats_file, self)
        self.library = ChatLibrary(services.paths.chat_library_file)
        self.settings = ChatSettingsDesk(window, services.settings, self.library, self)
        #: What is shown, and what is being answered.
        self.open = OpenChats(self._empty())
        self.reply = ReplyWriter(window, self, self)
        self.drafts = DraftDesk(window.chat, self)
        self.branches = BranchDesk(window.chat.undo, self, self)
        self.kept = KeptChatsDesk(window, self, self)
        self._wire()

    def _wire(self) -> None:
        chat, chats, keeper = self._window.chat, self._window.chats, self.keeper
        chat.new_chat_requested.connect(self.new_chat)
        chat.answered_chat_requested.connect(self.show_answered)
        chat.turn_action.connect(self.act)
        chat.composer.settings_requested.connect(self.edit_settings)
        chat.composer.preset.chosen.connect(self._choose_preset)
        chats.new_requested.connect(self.new_chat)
        chats.open_requested.connect(self.open_chat)
        keeper.started.connect(self._started)
        keeper.loaded.connect(self._loaded)
        keeper.made.connect(self._show)
        keeper.message.connect(self._window.status.set_message)

    @property
    def chat(self) -> KeptChat:
        """The chat that is shown."""
        return self.open.shown

    @property
    def elsewhere(self) -> KeptChat | None:
        """The chat that a reply is being written for while another one is shown."""
        return self.open.away

    @property
    def conversation(self) -> Conversation:
        """All turns of the chat that is shown."""
        return self.chat.conversation

    def start(self) -> None:
        """Look what was shown last; it is shown when it is there."""
        self.keeper.start()
        if self.library.note:
            self._tell(self.library.note, "warning")

    def close(self) -> None:
        """Store what is there. Blocks until it is on the disk."""
        self.reply.cut()
        self.store()
        self.keeper.close()

    def set_model(
        self,
        name: str,
        path: Path | None,
        switches: Sequence[TemplateSwitch],
        metadata: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Who answers (empty: nobody), what its template can switch, what its file says."""
        self._model_name = name
        self.thinking.set_model(path, switches)
        untouched = self.settings.are_usual(self.chat.settings)
        self.settings.set_model(path, metadata)
        if path is not None and untouched and not self.conversation.nodes:
            # Nothing was said yet: the chat begins as chats with this model do.
            self._put(replace(self.chat, settings=self.settings.usual()))
        self.settings.show(self.chat.settings)

    def set_can_answer(self, can: bool) -> None:
        """Whether a reply can be asked for now."""
        self._can_answer = can

    # Asking

    def send(self, text: str) -> None:
        """Ask, or ask otherwise where an earlier message is being edited."""
        if not text.strip() or not self._can_answer:
            return
        editing = self.drafts.take_edit()
        if editing is not None and editing in self.conversation.nodes:
            self._take(self.conversation.edit(editing, text))
            self._window.chat.show_turns(self.conversation.shown())
            self._window.chat.scroll_to_end()
        else:
            self._take(self.conversation.ask(text))
            self._window.chat.add_user_message(text)
        self._begin(self.conversation.begin_reply(self._model_name, self._sampling()))

    def act(self, kind: str, key: int) -> None:
        """One of the actions beneath a message."""
        talk = self.conversation
        if key not in talk.nodes:
            return
        turn = talk.nodes[key].turn
        if kind == "copy_turn":
            QGuiApplication.clipboard().setText(turn.text)
            self._tell(self.tr("The message was copied as Markdown."), "good")
        elif self.refused():
            return
        elif kind in ("older", "newer"):
            self.branches.step(key, -1 if kind == "older" else 1)
        elif kind == "edit":
            self.drafts.begin_edit(key, turn.text)
        elif kind == "delete":
            self.branches.delete(key)
        elif kind == "take_in":
            self.change(talk.take_in([key]))
        elif self.elsewhere is not None:
            text = self.tr("A reply is being written in “{title}”: wait for its end, or stop it.")
            self._tell(text.format(title=self.elsewhere.shown_title), "warning")
        elif not self._can_answer:
            self._tell(self.tr("Launch a model first: nobody is there to answer."), "warning")
        elif kind == "answer" and talk.path[-1].key == key:
            self._begin(talk.begin_reply(self._model_name, self._sampling()))
        elif kind == "regenerate":
            self._begin(talk.regenerate(key, self._model_name, self._sampling()))
        elif kind == "use_chatml":
            self.settings.use_template(CHATML)
            self._tell(self.tr("ChatML is used for this model from now on."), "info")
            self._begin(talk.regenerate(key, self._model_name, self._sampling()))
        elif kind == "go_on" and talk.path[-1].key == key:
            self._begin(talk.go_on(), goes_on=True)

    def regenerate_last(self) -> None:
        """Another version of the last reply, or a reply where the last one was deleted."""
        path = self.conversation.path
        if not path or self.conversation.streaming:
            return
        answered = path[-1].turn.role == "assistant"
        self.act("regenerate" if answered else "answer", path[-1].key)

    def edit_last(self) -> None:
        """Edit the user's newest message."""
        for node in reversed(self.conversation.path):
            if node.turn.role == "user":
                self.act("edit", node.key)
                return

    def prospect(self, text: str) -> Conversation:
        """The conversation as it would be with ``text`` sent now."""
        talk = self.conversation
        if not text.strip() or talk.streaming:
            return talk
        editing = self.drafts.editing
        if editing is not None and editing in talk.nodes:
            return talk.edit(editing, text)
        return talk.ask(text)

    def given_turns(self) -> list[tuple[int, Turn]]:
        """The visible turns that the model is given, with their keys."""
        talk = self.conversation
        return [(n.key, n.turn) for n in talk.path if n.key not in talk.left_out]

    def leave_out(self, left_out: Sequence[int]) -> None:
        """Give the model these turns no longer; they stay to be read, and it can be undone."""
        if not self.refused():
            self.branches.leave_out(left_out)

    def edit_settings(self) -> None:
        """Ask what shall be set for this chat alone."""
        if self.refused():
            return
        self.settings.edit(self.conversation.system, self.chat.settings, self.set_settings)

    def set_settings(self, system: str, values: Mapping[str, object]) -> None:
        """Use this system prompt and these settings from the next reply on."""
        self._put(replace(self.chat, settings=dict(values)))
        self.settings.remember(values)
        self.settings.show(values)
        self.change(replace(self.conversation, system=system))

    def _choose_preset(self, preset: object) -> None:
        if self.refused():
            return
        chosen = preset if isinstance(preset, Preset) else None
        self.set_settings(self.conversation.system, with_preset(self.chat.settings, chosen))

    # Chats

    def new_chat(self) -> None:
        """Show an empty chat; it is kept from its first message on."""
        self.show_empty()
        self._window.chat.focus_input()

    def show_answered(self) -> None:
        """Show the chat that a reply is being written for."""
        if self.elsewhere is not None:
            self._show(self.elsewhere)

    def open_chat(self, chat_id: str) -> None:
        """Show a kept chat."""
        answering = self.open.answering
        if answering is not None and answering.id == chat_id:
            self._show(answering)
        else:
            self._opening = chat_id
            self.keeper.load(chat_id)

    def _started(self, chat: object) -> None:
        # Whoever was quick has begun a chat already.
        if isinstance(chat, KeptChat) and not self.conversation.nodes:
            self._show(chat, starts=True)

    def _loaded(self, chat_id: str, chat: object) -> None:
        if chat_id != self._opening:
            return  # another one was asked for since
        if isinstance(chat, KeptChat):
            self._show(chat)
        else:
            self._tell(self.tr("This chat is not there any more."), "warning")
            self.keeper.refresh()

    # Parts

    def _empty(self) -> KeptChat:
        system = self._services.settings.get(keys.SYSTEM_PROMPT)
        return KeptChat(new_chat_id(), Conversation(system=system), "", self.settings.usual())

    def _sampling(self) -> Sampling:
        return self.settings.for_reply(self.chat.settings).sampling

    def _begin(self, talk: Conversation, goes_on: bool = False) -> None:
        self._take(talk)
        self.reply.begin(self.chat, talk.path[-1].turn if goes_on else None)
        if talk.path[-1].key == talk.next_key - 1 and len(talk.versions(talk.path[-1].key)) == 1:
            self._window.chat.begin_reply(self._model_name)
        self._window.chat.show_turns(talk.shown())
        wanted = self.settings.for_reply(self.chat.settings)
        self.reply_wanted.emit(
            GenerateRequest(
                messages=talk.messages_to_go_on() if goes_on else talk.messages(),
                sampling=wanted.sampling,
                max_tokens=wanted.max_tokens,
                stop=wanted.stop,
                template=self.settings.template(),
                template_values=self.thinking.values(),
                continues=goes_on,
                chat_id=self.chat.id,
            )
        )

    def reply_closed(self, shown: bool) -> None:
        """The reply ended, in the chat that is ``shown`` or in another one."""
        if shown:
            self._window.chat.show_turns(self.conversation.shown())
        else:
            self.left.emit()
        self.changed.emit()

    def change(self, talk: Conversation, held: int | None = None) -> None:
        """Show and keep the conversation that is shown as it is now.

        ``held``: the place in the branch of the turn whose row of actions shall not move.
        """
        self._take(talk)
        self._window.chat.show_turns(self.conversation.shown(), held)
        self.changed.emit()

    def refused(self) -> bool:
        """Whether the reply that runs in the chat that is shown stands in the way; it is told."""
        if self.conversation.streaming:
            self.tell_to_wait()
        return self.conversation.streaming

    def tell_to_wait(self) -> None:
        """Say that a reply stands in the way."""
        self._tell(self.tr("Wait for the reply to end, or stop it."), "warning")

    def show_empty(self) -> None:
        """Show a chat without turns."""
        self._show(self._empty())

    def set_title(self, chat_id: str, title: str) -> None:
        """What that chat is called from now on, where it is in hand."""
        self.open = self.open.renamed(chat_id, title)
        # Kept with the chat: a name that cannot be written now is tried again, as text is.
        self.store()

    def give_back(self, chat: KeptChat, text: str) -> None:
        """``text`` could not be sent in ``chat``: it is being written there again."""
        self.drafts.give_back(self.chat, chat, text)

    def _show(self, chat: KeptChat, starts: bool = False) -> None:
        self._opening = ""
        before = self.open
        self.open = before.show(chat)
        if before.shown.id != self.chat.id and before.answering is None:
            self.left.emit()
        self.drafts.change(before.shown, self.chat, starts)
        self._window.chat.undo.clear()
        self.settings.show(self.chat.settings)
        self._window.chat.show_conversation(self.conversation)
        self._window.chats.set_current(self.chat.id)
        if not starts:
            self.keeper.set_last_shown(self.chat.id if self.conversation.nodes else "")
        self.changed.emit()

    def _put(self, chat: KeptChat) -> None:
        self.open = self.open.with_shown(chat)

    def _take(self, talk: Conversation) -> None:
        first = not self.conversation.nodes
        self._put(replace(self.chat, conversation=talk))
        self._keep(self.chat)
        if first and talk.nodes:
            self.keeper.set_last_shown(self.chat.id)
            self._window.chats.set_current(self.chat.id)

    def store(self) -> None:
        """Keep what is shown and what is being answered as it is now."""
        self._keep(self.chat)
        self._keep(self.elsewhere)

    def _keep(self, chat: KeptChat | None) -> None:
        if chat is not None and chat.conversation.nodes:
            self.keeper.save(chat)

    def _tell(self, text: str, level: str) -> None:
        self._window.status.set_message(text, level)
