"""Other chats are looked at while a reply goes on in its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import (
    Finished,
    GenerateFailed,
    GenerationStats,
    PromptProgress,
    TokenEvent,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats.chat_rows import ChatListModel
from moelauncher.gui.chats.reply_writer import ReplyWriter
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

DONE = GenerationStats("stop", 5, 0, 9, 100.0, 30.0, 0.1, 1.0, 900)
STOPPED = GenerationStats("cancelled", 5, 0, 9, 100.0, 30.0, 0.1, 1.0, 14)


class Chats:
    """A loaded model, an old chat ("Greetings"), and one that is being answered ("A story")."""

    def __init__(self, driver: ScriptedWindow) -> None:
        self.driver = driver
        self.window = driver.window
        self.session = driver.session.chat
        self.turns = driver.session.turns
        driver.launch()
        driver.session.send("Greetings")
        driver.engine.say(TokenEvent(0, "Hello.", "", 1, 0.0), Finished(0, DONE))
        driver.wait(lambda: driver.session.state is SessionState.READY)
        self.old = self.session.chat.id
        self.session.new_chat()
        driver.session.send("A story")
        self.new = self.session.chat.id
        driver.engine.say(PromptProgress(0, 3, 3, 700, 0.1))
        self.say("Once ", n_tokens=1)
        driver.wait(lambda: driver.session.state is SessionState.GENERATING)
        driver.wait(lambda: self.row(self.new).isValid() and self.row(self.old).isValid())

    def say(self, text: str, reasoning: str = "", n_tokens: int = 2) -> None:
        """The model writes this, into the reply that goes on."""
        self.driver.engine.say(TokenEvent(0, text, reasoning, n_tokens, 0.0))
        self.driver.wait(lambda: text in self.answered and reasoning in self.thought)

    def end_and_unload(self) -> None:
        """The reply ends, and then the model is taken out of memory."""
        driver = self.driver
        driver.engine.say(Finished(0, DONE))
        driver.wait(lambda: driver.session.state is SessionState.READY)
        driver.session.unload()
        driver.unloaded()
        driver.wait(lambda: driver.session.state is SessionState.SELECTED)

    @property
    def answered(self) -> str:
        chat = self.session.open.answering
        return chat.conversation.turns[-1].text if chat is not None else ""

    @property
    def thought(self) -> str:
        chat = self.session.open.answering
        return chat.conversation.turns[-1].reasoning if chat is not None else ""

    def row(self, chat_id: str) -> QModelIndex:
        model = self.window.chats.list.model()
        assert isinstance(model, ChatListModel)
        return model.index_of(chat_id)

    def second_line(self, chat_id: str) -> str:
        return str(self.row(chat_id).data(ChatListModel.SECOND_LINE))

    def click(self, chat_id: str) -> None:
        """Click its row, and wait until it is shown."""
        self.window.chats.list.clicked.emit(self.row(chat_id))
        self.driver.wait(lambda: self.session.chat.id == chat_id)

    @property
    def shown(self) -> str:
        return self.window.chat.view.toPlainText()


@pytest.fixture
def chats(qtbot: QtBot, tmp_path: Path) -> Iterator[Chats]:
    driver = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    yield Chats(driver)
    driver.close()


def test_the_reply_goes_on_out_of_sight_and_is_there_on_return(chats: Chats) -> None:
    chats.click(chats.old)
    chats.say("upon ")
    assert "Hello." in chats.shown and "upon" not in chats.shown
    chats.say("a time")
    chats.click(chats.new)
    assert "Once upon a time" in chats.shown
    chats.say(" there was")
    assert "Once upon a time there was" in chats.shown
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.driver.session.state is SessionState.READY)
    assert chats.session.conversation.turns[-1].text == "Once upon a time there was"
    assert "ready" not in chats.driver.window.status.message.text(), "it was seen to end"


def test_the_list_says_where_a_reply_goes_on_and_where_one_was_not_seen(chats: Chats) -> None:
    assert chats.row(chats.new).data(ChatListModel.DOT)
    assert chats.second_line(chats.new) == "a reply is being written"
    chats.click(chats.old)
    assert chats.row(chats.new).data(ChatListModel.DOT)
    assert not chats.row(chats.old).data(ChatListModel.DOT)
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.second_line(chats.new).startswith("new reply"))
    assert "new reply" in chats.row(chats.new).data(Qt.ItemDataRole.AccessibleTextRole)
    assert chats.driver.window.status.message.text() == "The reply in “A story” is ready."
    chats.driver.window.status.offer.click()
    chats.driver.wait(lambda: chats.session.chat.id == chats.new)
    assert not chats.row(chats.new).data(ChatListModel.DOT)
    assert "new reply" not in chats.second_line(chats.new)


def test_send_waits_for_the_other_reply_and_says_so(chats: Chats) -> None:
    pane, composer = chats.window.chat, chats.window.chat.composer
    assert not pane.elsewhere.isVisible() and composer.stop.isVisible()
    chats.click(chats.old)
    composer.field.setPlainText("And you?")
    assert pane.elsewhere.isVisible()
    assert pane.elsewhere.text.text().startswith("A reply is being written in “A story”")
    assert composer.send.isVisible() and not composer.send.isEnabled()
    assert "“A story”" in composer.send.toolTip()
    with chats.driver.signal(composer.held_back):
        composer.field.submitted.emit()
    assert "“A story”" in chats.driver.window.status.message.text()
    assert composer.text == "And you?" and len(chats.driver.engine.replies) == 2
    chats.turns.act("regenerate", chats.session.conversation.path[-1].key)
    assert "“A story”" in chats.driver.window.status.message.text()
    assert len(chats.driver.engine.replies) == 2
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(composer.send.isEnabled)
    assert not pane.elsewhere.isVisible() and "Enter" in composer.send.toolTip()
    composer.send.click()
    assert chats.driver.engine.replies[-1].chat_id == chats.old


def test_the_line_leads_there_and_ends_the_reply(chats: Chats) -> None:
    pane = chats.window.chat
    chats.click(chats.old)
    pane.composer.field.escaped.emit()
    assert chats.driver.engine.stops == 0, "Escape ends what is in view"
    pane.elsewhere.stop.click()
    assert chats.driver.engine.stops == 1
    chats.driver.engine.say(Finished(0, STOPPED))
    chats.driver.wait(lambda: not pane.elsewhere.isVisible())
    assert not chats.row(chats.new).data(ChatListModel.DOT), "whoever stops it knows of it"
    chats.click(chats.new)
    assert chats.session.conversation.turns[-1].can_go_on


def test_what_fails_out_of_sight_is_said_with_its_chat(chats: Chats) -> None:
    chats.click(chats.old)
    chats.driver.engine.say(GenerateFailed(0, LauncherError("The device was lost.")))
    chats.driver.wait(lambda: chats.session.elsewhere is None)
    told = chats.driver.window.status.message.text()
    assert told == "In “A story”: The device was lost."
    assert "device" not in chats.shown
    chats.click(chats.new)
    assert "The device was lost." in chats.shown and "Once" in chats.shown


def test_numbers_of_the_context_are_those_of_the_chat_in_view(chats: Chats) -> None:
    use = chats.window.chat.composer.context
    chats.driver.wait(lambda: "704" in use.toolTip())
    chats.click(chats.old)
    assert "900" in use.toolTip()
    chats.say("upon ")
    assert "900" in use.toolTip()
    chats.click(chats.new)
    assert "705" in use.toolTip()


def test_the_prompts_progress_is_there_on_return(chats: Chats) -> None:
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.driver.session.state is SessionState.READY)
    chats.driver.session.send("A long one")
    chats.driver.engine.say(PromptProgress(0, 250, 1000, 0, 1.0))
    chats.driver.wait(lambda: "250" in chats.shown)
    chats.click(chats.old)
    assert "250" not in chats.shown
    chats.click(chats.new)
    assert "250" in chats.shown


def test_thinking_goes_on_counting_out_of_sight(chats: Chats) -> None:
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.driver.session.state is SessionState.READY)
    clock = [50.0]
    (writer,) = chats.driver.session.findChildren(ReplyWriter)
    writer._thought._clock = lambda: clock[0]
    chats.driver.session.send("Think")
    chats.say("", "hm")
    chats.click(chats.old)
    clock[0] = 62.0
    chats.say("", " well")
    chats.click(chats.new)
    assert "12 s" in chats.shown
    chats.say("So.")
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.session.open.answering is None)
    assert chats.session.conversation.turns[-1].thought_s == 12.0


def test_a_chat_that_is_being_answered_is_renamed_and_copied_but_not_deleted(chats: Chats) -> None:
    pane = chats.window.chats
    chats.click(chats.old)
    pane.delete_requested.emit(chats.new)
    assert "Wait for the reply" in chats.driver.window.status.message.text()
    pane.rename_requested.emit(chats.new, "Fairy tale")
    assert chats.session.elsewhere is not None
    assert chats.session.elsewhere.title == "Fairy tale"
    pane.duplicate_requested.emit(chats.new)
    chats.driver.wait(lambda: chats.session.chat.id not in (chats.old, chats.new))
    copy = chats.session.conversation.turns[-1]
    assert (copy.state, copy.text) == (TurnState.CUT, "Once ")
    chats.say("upon ")
    assert chats.session.conversation.turns[-1].text == "Once "
    pane.delete_requested.emit(chats.old)
    chats.driver.wait(lambda: not chats.row(chats.old).isValid())
    assert chats.session.elsewhere is not None


def test_a_new_chat_is_begun_meanwhile(chats: Chats) -> None:
    chats.session.new_chat()
    assert chats.session.elsewhere is not None and not chats.session.conversation.nodes
    chats.say("upon ")
    assert chats.shown.startswith("The model is answering in another chat")
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.session.open.answering is None)
    chats.driver.session.send("Another")
    assert chats.driver.engine.replies[-1].chat_id == chats.session.chat.id != chats.new


def test_the_engine_keeps_the_answered_chat_once_it_is_answered_and_left(chats: Chats) -> None:
    kept = chats.driver.engine.kept_chats
    chats.click(chats.old)
    chats.click(chats.new)
    chats.click(chats.old)
    assert chats.driver.engine.kept_chats == kept, "its context is being written"
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.driver.engine.kept_chats == kept + 1)


def test_both_are_on_the_disk_at_the_end(qtbot: QtBot, tmp_path: Path) -> None:
    driver = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    chats = Chats(driver)
    chats.click(chats.old)
    chats.say("upon ")
    driver.close()
    store = ChatStore.open(driver.paths.chats_file)
    kept = store.load(chats.new)
    assert kept is not None
    assert kept.conversation.turns[-1].text == "Once upon "
    assert kept.conversation.turns[-1].state is TurnState.CUT
    assert store.last_shown == chats.old
    store.close()


def test_the_newest_click_wins(chats: Chats) -> None:
    chats.session.open_chat(chats.old)
    chats.session.open_chat(chats.new)
    chats.session.new_chat()
    empty = chats.session.chat.id
    with chats.driver.signal(chats.session.keeper.loaded):
        pass
    assert chats.session.chat.id == empty


def test_what_is_written_stays_with_its_chat(chats: Chats) -> None:
    field = chats.window.chat.composer.field
    field.setPlainText("for the story")
    chats.click(chats.old)
    assert field.toPlainText() == ""
    field.setPlainText("for greetings")
    chats.click(chats.new)
    assert field.toPlainText() == "for the story"
    chats.session.new_chat()
    assert field.toPlainText() == "for the story", "it goes along into a new chat"
    chats.click(chats.old)
    assert field.toPlainText() == "for greetings"
    chats.click(chats.new)
    assert field.toPlainText() == ""
    chats.session.new_chat()
    assert field.toPlainText() == "for the story"


def test_an_edit_waits_for_its_chat(chats: Chats) -> None:
    chats.click(chats.old)
    composer = chats.window.chat.composer
    composer.field.setPlainText("later")
    chats.turns.edit_last()
    composer.field.setPlainText("Greetings to all")
    chats.click(chats.new)
    assert not composer.edit_line.isVisible() and composer.text == ""
    chats.driver.engine.say(Finished(0, DONE))
    chats.driver.wait(lambda: chats.session.open.answering is None)
    chats.click(chats.old)
    assert composer.edit_line.isVisible() and composer.text == "Greetings to all"
    composer.send.click()
    assert composer.text == "later"
    assert [shown.n_versions for shown in chats.session.conversation.shown()] == [2, 1]


def test_a_message_that_waits_for_the_model_stays_in_its_chat(chats: Chats) -> None:
    driver, notice = chats.driver, chats.window.findChild(QLabel, "chatNotice")
    chats.end_and_unload()
    driver.session.send("And then?")
    assert notice.text() == "Your message is sent as soon as the model is loaded."
    chats.click(chats.old)
    n_asked = len(driver.engine.replies)
    driver.loaded()
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert len(driver.engine.replies) == n_asked
    chats.click(chats.new)
    assert chats.window.chat.composer.text == "And then?" and notice.isHidden()


def test_a_message_that_waited_in_vain_is_in_the_field_again(chats: Chats) -> None:
    driver, notice = chats.driver, chats.window.findChild(QLabel, "chatNotice")
    chats.end_and_unload()
    driver.session.send("And then?")
    assert notice.isVisible()
    driver.failed()
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    assert chats.window.chat.composer.text == "And then?" and notice.isHidden()


def test_a_question_without_an_answer_offers_one(chats: Chats) -> None:
    driver = chats.driver
    driver.engine.say(Finished(0, DONE))
    driver.wait(lambda: chats.session.open.answering is None)
    question, reply = (node.key for node in chats.session.conversation.path)

    def actions(number: int) -> list[str]:
        message = chats.window.chat.view.messages[number]
        message.lay_out(500)
        return [spot.kind for spot in message.hot_spots]

    assert "answer" not in actions(0)
    chats.turns.act("delete", reply)
    assert actions(0)[0] == "answer"
    chats.window.chat.turn_action.emit("answer", question)
    assert chats.session.conversation.streaming
    assert "answer" not in actions(0)


def test_a_chat_whose_messages_were_all_deleted_stays_empty(chats: Chats) -> None:
    chats.click(chats.old)
    first = chats.session.conversation.path[0].key
    chats.turns.act("delete", first)
    chats.window.chat.undo.undo()
    chats.click(chats.new)
    chats.click(chats.old)
    assert "Hello." in chats.shown
    chats.turns.act("delete", first)
    chats.click(chats.new)
    chats.click(chats.old)
    assert not chats.session.conversation.nodes
    chats.driver.wait(lambda: chats.row(chats.old).data() == "Empty chat")
