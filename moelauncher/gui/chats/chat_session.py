"""The chat that is shown: asking, answering, branching, and keeping all of it.

It turns what the user does with turns into requests for the engine, and what the engine
answers into turns; the :class:`~moelauncher.gui.session.Session` runs the engine. GUI thread
only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication

from moelauncher.core.chats.chat_library import ChatLibrary
from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from moelauncher.core.chats.sampling_presets import Preset, with_preset
from moelauncher.core.chats.turn import Turn
from moelauncher.core.engine_protocol import GenerateRequest, GenerationStats, Sampling
from moelauncher.core.errors import LauncherError
from moelauncher.core.program import settings as keys
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.chat_keeper import ChatKeeper
from moelauncher.gui.chats.chat_settings_desk import ChatSettingsDesk
from moelauncher.gui.chats.kept_chats_desk import KeptChatsDesk
from moelauncher.gui.chats.thinking_choice import ThinkingChoice
from moelauncher.gui.chats.thought_clock import ThoughtClock
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.services import Services

#: A reply in progress is stored this often.
STORE_MS = 700


class ChatSession(QObject):
    """One chat, its turns and its keeper.

    Signals:
        reply_wanted(object): a reply was opened; answer this GenerateRequest.
        changed(): what is shown is another branch or another chat.
        left(): another chat takes the place of the one that was shown.
        deleted(str): the chat of that id was deleted, or something in it.
    """

    reply_wanted = Signal(object)
    changed = Signal()
    left = Signal()
    deleted = Signal(str)

    def __init__(
        self,
        window: MainWindow,
        services: Services,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        self._model_name = ""
        self._can_answer = False
        self._thought = ThoughtClock(clock)
        self._editing: int | None = None
        self.thinking = ThinkingChoice(window.chat.composer.thinking, services.state, self)
        self.keeper = ChatKeeper(services.paths.chats_file, self)
        self.library = ChatLibrary(services.paths.chat_library_file)
        self.settings = ChatSettingsDesk(window, services.settings, self.library, self)
        self.chat = self._empty()
        self._storing = QTimer(self, interval=STORE_MS)
        self._storing.timeout.connect(self.store)
        self.kept = KeptChatsDesk(window, self, self)
        self._wire()

    def _wire(self) -> None:
        chat, chats, keeper = self._window.chat, self._window.chats, self.keeper
        chat.new_chat_requested.connect(self.new_chat)
        chat.turn_action.connect(self.act)
        chat.composer.settings_requested.connect(self.edit_settings)
        chat.composer.preset.chosen.connect(self._choose_preset)
        chat.edit_cancelled.connect(self._forget_edit)
        chats.new_requested.connect(self.new_chat)
        chats.open_requested.connect(self.open_chat)
        keeper.started.connect(self._started)
        keeper.loaded.connect(self._loaded)
        keeper.message.connect(self._window.status.set_message)

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
        self._storing.stop()
        self._take(self.conversation.cut())
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
            self.chat = replace(self.chat, settings=self.settings.usual())
        self.settings.show(self.chat.settings)

    def set_can_answer(self, can: bool) -> None:
        """Whether a reply can be asked for now."""
        self._can_answer = can

    # Asking

    def send(self, text: str) -> None:
        """Ask, or ask otherwise where an earlier message is being edited."""
        if not text.strip() or not self._can_answer:
            return
        editing, self._editing = self._editing, None
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
        elif talk.streaming:
            self._tell(self.tr("Wait for the reply to end, or stop it."), "warning")
        elif kind in ("older", "newer"):
            self._step(key, -1 if kind == "older" else 1)
        elif kind == "edit":
            self._editing = key
            self._window.chat.begin_edit(turn.text)
        elif kind == "delete":
            self._delete_turn(key)
        elif kind == "take_in":
            self._change(talk.take_in([key]))
        elif not self._can_answer:
            self._tell(self.tr("Launch a model first: nobody is there to answer."), "warning")
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
        if path[-1].turn.role == "assistant":
            self.act("regenerate", path[-1].key)
        elif self._can_answer:
            self._begin(self.conversation.begin_reply(self._model_name, self._sampling()))

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
        if self._editing is not None and self._editing in talk.nodes:
            return talk.edit(self._editing, text)
        return talk.ask(text)

    def given_turns(self) -> list[tuple[int, Turn]]:
        """The visible turns that the model is given, with their keys."""
        talk = self.conversation
        return [(n.key, n.turn) for n in talk.path if n.key not in talk.left_out]

    def leave_out(self, left_out: Sequence[int]) -> None:
        """Give the model these turns no longer; they stay to be read, and it can be undone."""
        if self.refused():
            return
        self._change(self.conversation.leave_out(left_out))
        text = self.tr("{n} messages are given to the model no longer").format(n=len(left_out))
        self._offer_undo(text, lambda talk: talk.take_in(left_out))

    def edit_settings(self) -> None:
        """Ask what shall be set for this chat alone."""
        if self.refused():
            return
        self.settings.edit(self.conversation.system, self.chat.settings, self.set_settings)

    def set_settings(self, system: str, values: Mapping[str, object]) -> None:
        """Use this system prompt and these settings from the next reply on."""
        self.chat = replace(self.chat, settings=dict(values))
        self.settings.remember(values)
        self.settings.show(values)
        self._change(replace(self.conversation, system=system))

    def _choose_preset(self, preset: object) -> None:
        if self.refused():
            return
        chosen = preset if isinstance(preset, Preset) else None
        self.set_settings(self.conversation.system, with_preset(self.chat.settings, chosen))

    # Answering

    def append(self, text: str, reasoning: str) -> None:
        """What the engine wrote in one frame."""
        if not (text or reasoning) or not self.conversation.streaming:
            return
        self._thought.hear(text, reasoning)
        self._take(self.conversation.append(text, reasoning), store=False)
        self._window.chat.append(text, reasoning)

    def finish(self, stats: GenerationStats, placement_text: str) -> None:
        """The reply is complete, or was stopped."""
        if not self.conversation.streaming:
            return
        self._take(self.conversation.finish(stats, placement_text, self._thought.end()))
        self._window.chat.finish_reply(stats, placement_text)
        self._closed()

    def fail(self, error: LauncherError) -> None:
        """The reply ended with an error."""
        if not self.conversation.streaming:
            return
        self._take(self.conversation.fail(error))
        self._window.chat.fail_reply(error)
        self._closed()

    # Chats

    def new_chat(self) -> None:
        """Show an empty chat; it is kept from its first message on."""
        if self.refused():
            return
        self.show_empty()
        self._window.chat.focus_input()

    def open_chat(self, chat_id: str) -> None:
        """Show a kept chat."""
        if self.refused():
            self._window.chats.set_current(self.chat.id)
        else:
            self.keeper.load(chat_id)

    def _started(self, chat: object) -> None:
        # Whoever was quick has begun a chat already.
        if isinstance(chat, KeptChat) and not self.conversation.nodes:
            self._show(chat, remember=False)

    def _loaded(self, chat: object) -> None:
        if self.conversation.streaming:
            return
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
        self._thought.begin(talk.path[-1].turn if goes_on else None)
        self._take(talk)
        if talk.path[-1].key == talk.next_key - 1 and len(talk.versions(talk.path[-1].key)) == 1:
            self._window.chat.begin_reply(self._model_name)
        self._window.chat.show_turns(talk.shown())
        self._storing.start()
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

    def _closed(self) -> None:
        self._storing.stop()
        self._window.chat.show_turns(self.conversation.shown())
        self.changed.emit()

    def _step(self, key: int, step: int) -> None:
        versions = self.conversation.versions(key)
        at = versions.index(key) + step
        if 0 <= at < len(versions):
            self._change(self.conversation.choose(versions[at]))

    def _delete_turn(self, key: int) -> None:
        before = self.conversation
        n_gone = len(before.beneath(key))
        self._change(before.delete(key))
        self.deleted.emit(self.chat.id)
        if n_gone == 1:
            text = self.tr("1 message was deleted")
        else:
            text = self.tr("{n} messages were deleted").format(n=n_gone)
        self._offer_undo(text, lambda talk: talk.undelete(before, key))

    def _offer_undo(self, text: str, back: Callable[[Conversation], Conversation]) -> None:
        chat_id = self.chat.id

        def take_back() -> None:
            if self.chat.id != chat_id:
                return
            if self.refused():
                self._window.chat.undo.offer(text, take_back)
            else:
                self._change(back(self.conversation))

        self._window.chat.undo.offer(text, take_back)

    def _change(self, talk: Conversation) -> None:
        """Show and keep the conversation as it is now."""
        self._take(talk)
        self._window.chat.show_turns(self.conversation.shown())
        self.changed.emit()

    def _forget_edit(self) -> None:
        self._editing = None

    def refused(self) -> bool:
        """Whether a reply that runs stands in the way of another chat; it is told."""
        if self.conversation.streaming:
            self._tell(self.tr("Wait for the reply to end, or stop it."), "warning")
        return self.conversation.streaming

    def show_empty(self) -> None:
        """Show a chat without turns."""
        self._show(self._empty())

    def set_title(self, title: str) -> None:
        """What the chat that is shown is called from now on."""
        self.chat = replace(self.chat, title=title)

    def _show(self, chat: KeptChat, remember: bool = True) -> None:
        self._window.chat.undo.clear()
        self._window.chat.end_edit()
        self._editing = None
        if chat.id != self.chat.id:
            self.left.emit()
        self.chat = chat
        self.settings.show(chat.settings)
        self._window.chat.show_conversation(chat.conversation)
        self._window.chats.set_current(chat.id)
        if remember:
            self.keeper.set_last_shown(chat.id if chat.conversation.nodes else "")
        self.changed.emit()

    def _take(self, talk: Conversation, store: bool = True) -> None:
        first = not self.conversation.nodes
        self.chat = replace(self.chat, conversation=talk)
        if store:
            self.store()
        if first and talk.nodes:
            self.keeper.set_last_shown(self.chat.id)
            self._window.chats.set_current(self.chat.id)

    def store(self) -> None:
        """Keep the chat as it is now."""
        if self.conversation.nodes:
            self.keeper.save(self.chat)

    def _tell(self, text: str, level: str) -> None:
        self._window.status.set_message(text, level)
