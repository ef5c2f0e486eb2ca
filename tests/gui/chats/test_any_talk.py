"""Whatever a person does with chats in the window: it shows what it keeps, and asks what it shows.

The model says what the dice say; each seed is another afternoon.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import Finished, GenerateFailed, GenerationStats, TokenEvent
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats.message_view import ACTIONS
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.kept_chats import same_talk
from tests.helpers.scripted_session import ScriptedWindow

N_STEPS = 60
TEXTS = ("hi", "and then?", "東京 🙂", "    a\n\nb", "*x*")


class Person:
    """Does one thing after the other, and remembers what each chat should hold."""

    def __init__(self, driver: ScriptedWindow, dice: random.Random) -> None:
        self.driver, self.dice = driver, dice
        self.pane, self.chats = driver.window.chat, driver.window.chats
        self.session = driver.session.chat
        self.held: dict[str, Conversation] = {}
        #: The chat that was deleted last, as it was.
        self.deleted: tuple[str, Conversation] | None = None
        self.n_tokens = 0

    @property
    def talk(self) -> Conversation:
        return self.session.conversation

    @property
    def answering(self) -> bool:
        return self.session.open.answering is not None

    def do_something(self) -> None:
        if self.answering and self.dice.random() < 0.6:
            self.dice.choice((self.stream, self.stream, self.end))()
        else:
            things = (self.ask, self.ask, self.act, self.act, self.act, self.undo, self.switch)
            self.dice.choice((*things, self.list_action))()
        self.settle()
        self.look()

    def look(self) -> None:
        """The view shows the visible branch, and what is in hand is what should be kept."""
        for chat in (self.session.chat, self.session.elsewhere):
            if chat is not None and (chat.conversation.nodes or chat.id in self.held):
                self.held[chat.id] = chat.conversation
        shown = [message.source_text for message in self.pane.view.messages]
        said = [turn.text for turn in self.talk.turns]
        assert [text.lstrip("\n") for text in shown] == [text.lstrip("\n") for text in said]
        assert self.pane.composer.stop.isEnabled() == self.talk.streaming

    # What the model does

    def stream(self) -> None:
        text, thought = self.dice.choice(TEXTS), self.dice.choice(("", "hm "))
        self.n_tokens += 1
        before = self.answered()
        self.driver.engine.say(TokenEvent(0, text, thought, self.n_tokens, 0.0))
        self.driver.wait(lambda: self.answered() == (before[0] + text, before[1] + thought))

    def answered(self) -> tuple[str, str]:
        chat = self.session.open.answering
        assert chat is not None
        turn = chat.conversation.turns[-1]
        return turn.text, turn.reasoning

    def end(self) -> None:
        answered, said = self.session.open.answering, self.answered()
        reason = self.dice.choice(("stop", "cancelled", "length", "failed"))
        if reason == "cancelled":
            self.driver.session.stop()
        stats = GenerationStats(reason, 3, 0, 2, None, None, None, 0.1, 5)
        failed = GenerateFailed(0, LauncherError("It broke."))
        self.driver.engine.say(failed if reason == "failed" else Finished(0, stats))
        self.driver.wait(lambda: self.driver.session.state is SessionState.READY)
        assert not self.answering
        if answered is not None and answered.id != self.session.chat.id:
            # It ended out of sight: it is what is kept of it.
            with self.driver.signal(self.session.keeper.loaded) as loaded:
                self.session.keeper.load(answered.id)
            kept = loaded.args[1].conversation
            assert (kept.turns[-1].text, kept.turns[-1].reasoning) == said
            assert kept.turns[-1].state in (TurnState.DONE, TurnState.FAILED)
            self.held[answered.id] = kept

    # What the person does

    def ask(self) -> None:
        self.pane.composer.field.setPlainText(self.dice.choice(TEXTS))
        self.asked(self.pane.composer.send.click)

    def asked(self, press: object) -> None:
        """Where ``press`` (a callable) opens a reply, the visible branch is what is asked."""
        assert callable(press)
        replies = self.driver.engine.replies
        n_before, answering = len(replies), self.answering
        press()
        if len(replies) > n_before:
            assert not answering and self.talk.streaming
            wanted = replies[-1]
            assert wanted.chat_id == self.session.chat.id
            if not wanted.continues:
                assert wanted.messages == self.talk.messages()

    def act(self) -> None:
        if not self.talk.path:
            return
        number = self.dice.randrange(len(self.talk.path))
        self.pane.view._column.lay_out(number)
        message = self.pane.view.messages[number]
        kinds = sorted({spot.kind for spot in message.hot_spots} & ACTIONS)
        if kinds:
            kind, key = self.dice.choice(kinds), self.talk.path[number].key
            self.asked(lambda: self.pane.turn_action.emit(kind, key))

    def undo(self) -> None:
        if self.dice.random() < 0.5:
            before = set(self.talk.nodes)
            self.pane.undo.undo()
            assert before <= set(self.talk.nodes)
        elif self.chats.undo.isVisible() and self.deleted is not None:
            chat_id, talk = self.deleted
            self.chats.undo.undo()
            self.held[chat_id] = talk

    def switch(self) -> None:
        chat_id = self.dice.choice([*self.held, ""])
        if not chat_id:
            self.chats.new_requested.emit()
        elif self.session.chat.id != chat_id:
            self.chats.open_requested.emit(chat_id)
            self.driver.wait(lambda: self.session.chat.id == chat_id)
            assert same_talk(self.talk, self.held[chat_id])

    def list_action(self) -> None:
        if not self.held:
            return
        chat_id = self.dice.choice(list(self.held))
        answered = self.session.open.answering
        what = self.dice.choice(("delete", "rename", "duplicate", "leave out"))
        if what == "rename":
            self.chats.rename_requested.emit(chat_id, self.dice.choice(TEXTS))
        elif what == "leave out":
            self.driver.session.turns.leave_out([node.key for node in self.talk.path[:2]])
        elif what == "duplicate" and self.held[chat_id].nodes:
            with self.driver.signal(self.session.keeper.made) as made:
                self.chats.duplicate_requested.emit(chat_id)
            assert same_talk(made.args[0].conversation, self.held[chat_id].cut())
        elif what == "delete" and (answered is None or answered.id != chat_id):
            self.deleted = chat_id, self.held.pop(chat_id)
            self.chats.delete_requested.emit(chat_id)

    def settle(self) -> None:
        """All is on the disk: a chat that was emptied before it ever was cannot be opened."""
        done: list[object] = []
        self.session.keeper._do(lambda store: None, done.append)
        self.driver.wait(lambda: bool(done))


@pytest.mark.parametrize("seed", range(3))
def test_an_afternoon_of_chats(qtbot: QtBot, tmp_path: Path, seed: int) -> None:
    driver = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    driver.launch()
    person = Person(driver, random.Random(seed))
    for _ in range(N_STEPS):
        person.do_something()
    driver.close()
    store = ChatStore.open(driver.paths.chats_file)
    for chat_id, talk in person.held.items():
        kept = store.load(chat_id)
        assert kept is not None and same_talk(kept.conversation, talk.cut())
    assert {row.id for row in store.rows()} == set(person.held)
    store.close()
