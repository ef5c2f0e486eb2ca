"""The chat that is shown, and the one that is being answered: the one place where they change.

Every change is shown and kept from here. The desks that make them stand on it and it knows none:
:mod:`~moelauncher.gui.chats.turn_desk` (asking, the actions beneath a message),
:mod:`~moelauncher.gui.chats.reply_writer` (what the engine answers) and
:mod:`~moelauncher.gui.chats.kept_chats_desk` (the list). GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QObject, Signal

from moelauncher.core.chats.chat_library import ChatLibrary
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from moelauncher.core.chats.open_chats import OpenChats
from moelauncher.core.chats.sampling_presets import Preset, with_preset
from moelauncher.core.program import settings as keys
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.chat_keeper import ChatKeeper
from moelauncher.gui.chats.chat_settings_desk import ChatSettingsDesk
from moelauncher.gui.chats.draft_desk import DraftDesk
from moelauncher.gui.chats.thinking_choice import ThinkingChoice
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.services import Services


class ChatSession(QObject):
    """One chat, its settings, its draft and its keeper.

    Signals:
        changed(): what is shown is another branch or another chat, or a reply ended.
        left(): what the engine has evaluated last is of a chat that is shown no longer.
        deleted(str): the chat of that id was deleted, or something in it.
    """

    changed = Signal()
    left = Signal()
    deleted = Signal(str)

    def __init__(
        self, window: MainWindow, services: Services, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        #: Who answers; empty: nobody.
        self.model_name = ""
        self._opening = ""  # the id of the chat that is waited for
        self.thinking = ThinkingChoice(window.chat.composer.thinking, services.state, self)
        self.keeper = ChatKeeper(services.paths.chats_file, services.paths.rescue_folders, self)
        self.library = ChatLibrary(services.paths.chat_library_file)
        self.settings = ChatSettingsDesk(window, services.settings, self.library, self)
        #: What is shown, and what is being answered.
        self.open = OpenChats(self._empty())
        self.drafts = DraftDesk(window.chat, self)
        self._wire()

    def _wire(self) -> None:
        chat, chats, keeper = self._window.chat, self._window.chats, self.keeper
        chat.new_chat_requested.connect(self.new_chat)
        chat.answered_chat_requested.connect(self.show_answered)
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
        self.model_name = name
        self.thinking.set_model(path, switches)
        untouched = self.settings.are_usual(self.chat.settings)
        self.settings.set_model(path, metadata)
        if path is not None and untouched and not self.conversation.nodes:
            # Nothing was said yet: the chat begins as chats with this model do.
            self._put(replace(self.chat, settings=self.settings.usual()))
        self.settings.show(self.chat.settings)

    # What is set for it

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

    # Which is shown

    def new_chat(self) -> None:
        """Show an empty chat; it is kept from its first message on."""
        self.show_empty()
        self._window.chat.focus_input()

    def show_empty(self) -> None:
        """Show a chat without turns."""
        self._show(self._empty())

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

    def give_back(self, chat: KeptChat, text: str) -> None:
        """``text`` could not be sent in ``chat``: it is being written there again."""
        self.drafts.give_back(self.chat, chat, text)

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

    def _empty(self) -> KeptChat:
        system = self._services.settings.get(keys.SYSTEM_PROMPT)
        return KeptChat(new_chat_id(), Conversation(system=system), "", self.settings.usual())

    # What changes in it

    def take(self, talk: Conversation) -> None:
        """Keep the conversation that is shown as it is now; whoever changed it shows it."""
        first = not self.conversation.nodes
        self._put(replace(self.chat, conversation=talk))
        if talk.nodes or not first:
            # One whose messages were all deleted is kept, too: else they would come back.
            self.keeper.save(self.chat)
        if first and talk.nodes:
            self.keeper.set_last_shown(self.chat.id)
            self._window.chats.set_current(self.chat.id)

    def change(self, talk: Conversation, held: int | None = None) -> None:
        """Show and keep the conversation that is shown as it is now.

        ``held``: the place in the branch of the turn whose row of actions shall not move.
        """
        self.take(talk)
        self._window.chat.show_turns(self.conversation.shown(), held)
        self.changed.emit()

    def answered(self, talk: Conversation) -> None:
        """The conversation that a reply is being written in, shown or not, is this now.

        It is kept where the reply ended with it; while it goes on, its writer says when.
        """
        answering = self.open.answering
        assert answering is not None
        chat = replace(answering, conversation=talk)
        self.open = self.open.with_answered(chat)
        if not talk.streaming:
            self.keeper.save(chat)

    def reply_closed(self, shown: bool) -> None:
        """The reply ended, in the chat that is ``shown`` or in another one."""
        if shown:
            self._window.chat.show_turns(self.conversation.shown())
        else:
            self.left.emit()
        self.changed.emit()

    def set_title(self, chat_id: str, title: str) -> None:
        """What that chat is called from now on, where it is in hand."""
        self.open = self.open.renamed(chat_id, title)
        # Kept with the chat: a name that cannot be written now is tried again, as text is.
        self.store()

    def store(self) -> None:
        """Keep what is shown and what is being answered as it is now."""
        self._keep(self.chat)
        self._keep(self.elsewhere)

    def refused(self) -> bool:
        """Whether the reply that runs in the chat that is shown stands in the way; it is told."""
        if self.conversation.streaming:
            self.tell_to_wait()
        return self.conversation.streaming

    def tell_to_wait(self) -> None:
        """Say that a reply stands in the way."""
        self._tell(self.tr("Wait for the reply to end, or stop it."), "info")

    # Parts

    def _put(self, chat: KeptChat) -> None:
        self.open = self.open.with_shown(chat)

    def _keep(self, chat: KeptChat | None) -> None:
        if chat is not None and chat.conversation.nodes:
            self.keeper.save(chat)

    def _tell(self, text: str, level: str) -> None:
        self._window.status.set_message(text, level)
