"""Whatever the user does with chats, trees stay valid and the prompt is the visible branch."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moelauncher.core.chats.chat_export import read_chat, to_json
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.conversation import ROOT, Conversation
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.open_chats import OpenChats
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.engine.chat_template import ChatTemplate
from tests.helpers.kept_chats import same_talk

TEXTS = st.sampled_from(["hi", "and then?", "東京 🙂", "a\n\nb", "x"])
TEMPLATE = ChatTemplate(None, "", "")


def stats(reason: str) -> GenerationStats:
    return GenerationStats(reason, 3, 0, 2, None, None, None, 0.1, 5)


class AnyChat(RuleBasedStateMachine):
    """Interleaves everything that the window offers, and keeps the chats in a store."""

    @initialize(system=st.sampled_from(["", "Be brief."]))
    def begin(self, system: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = ChatStore.open(Path(self.folder.name) / "chats.sqlite3")
        self.system = system
        self.n_chats = 0
        self.chats = OpenChats(self.empty())
        #: What each chat should hold, shown or not.
        self.held: dict[str, Conversation] = {}
        self.undo: tuple[Conversation, int] | None = None

    def empty(self) -> KeptChat:
        self.n_chats += 1
        return KeptChat(f"chat {self.n_chats}", Conversation(system=self.system))

    @property
    def talk(self) -> Conversation:
        return self.chats.shown.conversation

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    def keep(self, talk: Conversation) -> None:
        """The chat that is shown is ``talk`` now."""
        chat = replace(self.chats.shown, conversation=talk)
        self.chats = self.chats.with_shown(chat)
        self.save(chat)

    def write(self, talk: Conversation) -> None:
        """The chat that is being answered is ``talk`` now."""
        assert self.chats.answering is not None
        chat = replace(self.chats.answering, conversation=talk)
        self.chats = self.chats.with_answered(chat)
        self.save(chat)

    def save(self, chat: KeptChat) -> None:
        self.store.save(chat)
        if chat.conversation.nodes or chat.id in self.held:
            self.held[chat.id] = chat.conversation

    @property
    def reply(self) -> Conversation:
        assert self.chats.answering is not None
        return self.chats.answering.conversation

    def some_key(self, data: st.DataObject, role: str) -> int | None:
        keys = [node.key for node in self.talk.path if node.turn.role == role]
        return data.draw(st.sampled_from(keys)) if keys else None

    #: No reply goes on, so one can be asked for.
    idle = precondition(lambda self: self.chats.answering is None)
    #: None goes on in the chat that is shown.
    resting = precondition(lambda self: not self.talk.streaming)
    answering = precondition(lambda self: self.chats.answering is not None)

    @rule(data=st.data())
    def show_another(self, data: st.DataObject) -> None:
        """A chat of the list, which is read from the disk, or a new one."""
        chat_id = data.draw(st.sampled_from([*sorted(self.held), ""]))
        chat = self.store.load(chat_id) or self.empty()
        self.chats = self.chats.show(chat)
        assert same_talk(self.talk, self.held.get(chat_id, Conversation()))
        self.undo = None

    @idle
    @rule(text=TEXTS)
    def ask(self, text: str) -> None:
        self.keep(self.talk.ask(text).begin_reply("m"))

    @answering
    @rule(text=TEXTS, thought=st.sampled_from(["", "hm "]))
    def stream(self, text: str, thought: str) -> None:
        self.write(self.reply.append(text, thought))

    @answering
    @rule(reason=st.sampled_from(["stop", "cancelled", "length"]))
    def end(self, reason: str) -> None:
        self.write(self.reply.finish(stats(reason)))

    @answering
    @rule()
    def fail(self) -> None:
        self.write(self.reply.fail(LauncherError("It broke.")))

    @idle
    @rule(data=st.data(), text=TEXTS)
    def edit(self, data: st.DataObject, text: str) -> None:
        key = self.some_key(data, "user")
        if key is not None:
            self.keep(self.talk.edit(key, text).begin_reply("m"))

    @idle
    @rule(data=st.data())
    def regenerate(self, data: st.DataObject) -> None:
        key = self.some_key(data, "assistant")
        if key is not None:
            self.keep(self.talk.regenerate(key, "m"))

    @idle
    @rule()
    def go_on(self) -> None:
        if self.talk.turns and self.talk.turns[-1].can_go_on:
            before = self.talk.turns[-1]
            self.keep(self.talk.go_on())
            begun = self.talk.messages_to_go_on()[-1]
            assert (begun.content, begun.reasoning) == (before.text, before.reasoning)

    @resting
    @rule(data=st.data())
    def switch_branch(self, data: st.DataObject) -> None:
        if self.talk.path:
            node = data.draw(st.sampled_from(self.talk.path))
            self.keep(self.talk.choose(data.draw(st.sampled_from(self.talk.versions(node.key)))))

    @resting
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.talk.path:
            key = data.draw(st.sampled_from(self.talk.path)).key
            self.undo = (self.talk, key)
            self.keep(self.talk.delete(key))
            assert key not in self.talk.nodes

    @resting
    @rule()
    def take_back(self) -> None:
        if self.undo is not None:
            before, key = self.undo
            self.undo = None
            parent = before.nodes[key].parent
            self.keep(self.talk.undelete(before, key))
            if parent == ROOT or parent in self.talk.nodes:
                assert before.beneath(key) <= set(self.talk.nodes)

    @resting
    @rule(data=st.data())
    def leave_out(self, data: st.DataObject) -> None:
        if self.talk.path:
            self.keep(self.talk.leave_out([data.draw(st.sampled_from(self.talk.path)).key]))

    @rule()
    def place_anew(self) -> None:
        """Another placement loads the model anew: the chat is not concerned."""

    @rule()
    def end_the_program(self) -> None:
        """The next start finds everything; what was being written is cut."""
        self.store.close()
        self.store = ChatStore.open(Path(self.folder.name) / "chats.sqlite3")
        for chat_id, talk in self.held.items():
            kept = self.store.load(chat_id)
            assert kept is not None and same_talk(kept.conversation, talk.cut())
            self.held[chat_id] = kept.conversation
        shown = self.chats.shown.id
        self.chats = OpenChats(self.store.load(shown) or self.empty())
        self.undo = None

    @invariant()
    def one_reply_goes_on_and_no_chat_sees_what_happens_in_others(self) -> None:
        if not hasattr(self, "held"):
            return
        for chat in (self.chats.shown, self.chats.away):
            if chat is not None and chat.conversation.nodes:
                assert same_talk(chat.conversation, self.held[chat.id])
        streaming = [chat_id for chat_id, talk in self.held.items() if talk.streaming]
        answering = self.chats.answering
        assert streaming == ([answering.id] if answering is not None else [])

    @invariant()
    def the_tree_is_valid(self) -> None:
        if not hasattr(self, "held"):
            return
        talk = self.talk
        for node in talk.nodes.values():
            above = talk.nodes.get(node.parent)
            assert (above is None) == (node.parent == ROOT)
            role = "user" if above is None or above.turn.role == "assistant" else "assistant"
            assert node.turn.role == role
            assert node.parent < node.key < talk.next_key
        for parent, child in talk.chosen.items():
            assert talk.nodes[child].parent == parent
        assert talk.left_out <= set(talk.nodes)
        writing = [n for n in talk.nodes.values() if n.turn.state is TurnState.STREAMING]
        assert writing == ([talk.path[-1]] if talk.streaming else [])
        for shown, node in zip(talk.shown(), talk.path, strict=True):
            assert talk.versions(node.key)[shown.version - 1] == node.key
            assert len(talk.versions(node.key)) == shown.n_versions

    @invariant()
    def the_prompt_is_the_visible_branch(self) -> None:
        if not hasattr(self, "held"):
            return
        talk = self.talk
        said: list[list[str]] = [["system", talk.system]] if talk.system else []
        for node in talk.path:
            turn = node.turn
            if node.key in talk.left_out or not turn.text.strip():
                continue
            if said and said[-1][0] == turn.role:
                said[-1][1] += f"\n\n{turn.text}"
            else:
                said.append([turn.role, turn.text])
        expected = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in said)
        assert TEMPLATE.render(talk.messages(), {}, open_reply=False) == expected

    @invariant()
    def it_can_leave_as_a_file_and_come_back(self) -> None:
        if hasattr(self, "held") and self.talk.nodes:
            again = read_chat("a.json", to_json(KeptChat("a", self.talk)).encode()).conversation
            assert same_talk(again, self.talk.cut())


AnyChat.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestAnyChat = AnyChat.TestCase
