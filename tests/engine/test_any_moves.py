"""Whatever is asked, branched and moved in whichever order, the model reads the visible branch.

With a real engine: :mod:`tests.engine.test_any_conversation` does the same without one, and more of
it.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.engine_protocol import GenerateRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, load_request, run
from tests.helpers.gguf_files import write_tiny_model

TEXTS = st.sampled_from(["hi", "and then? " * 12, "東京 🙂", "a\n\nb", "x" * 40])
SETTINGS = ContextSettings(n_ctx=2048, n_ubatch=64, n_threads=1)
#: What a move can change without a GPU: the context anew, and the whole model anew.
MOVES = st.sampled_from(
    [
        {"n_ctx": 1536},
        {"n_ctx": 2048},
        {"n_ubatch": 32},
        {"kv_type": "q8_0"},
        {"kv_type": "f16"},
    ]
)


class AnyMoves(RuleBasedStateMachine):
    """One chat and one engine, whose model goes to and fro."""

    @initialize(kind=st.sampled_from(["dense", "sliding", "hybrid"]))
    def begin(self, kind: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        base = Path(self.folder.name)
        self.request = load_request(write_tiny_model(base / "tiny.gguf", kind), SETTINGS)
        kept = KeptStates(base / "states", lambda: 64 << 20, least_tokens=64)
        self.engine = LlamaEngine(kept_states=kept)
        run(self.engine, self.request)
        self.talk = Conversation(system="Be brief.")
        self.chat_id = "a"

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.close()
            self.folder.cleanup()

    talked = precondition(lambda self: bool(self.talk.path))

    def answer(self, opened: Conversation, n_tokens: int = 3) -> None:
        """Let the model answer, and see what it has read."""
        outcome = run(
            self.engine,
            GenerateRequest(
                messages=opened.messages(),
                sampling=GREEDY,
                max_tokens=n_tokens,
                ignore_end_of_generation=True,
                chat_id=self.chat_id,
            ),
        )
        self.talk = opened.append(outcome.text).finish(outcome.stats)
        running = self.engine._resident.running
        assert running is not None
        model = running.model
        text = model.template.render(opened.messages(), {})
        prompt = model.vocabulary.tokenise_prompt(text)
        read = running.evaluated.tokens
        assert read[: len(prompt)] == prompt
        assert len(read) == len(prompt) + n_tokens - 1
        assert outcome.stats.cached_tokens + outcome.evaluated == len(prompt)
        lib, memory = model.native.lib, running.context.memory
        assert lib.llama_memory_seq_pos_max(memory, 0) == len(read) - 1

    @rule(text=TEXTS, n_tokens=st.integers(1, 4))
    def ask(self, text: str, n_tokens: int) -> None:
        self.answer(self.talk.ask(text).begin_reply(), n_tokens)

    @talked
    @rule(data=st.data(), text=TEXTS)
    def edit(self, data: st.DataObject, text: str) -> None:
        keys = [node.key for node in self.talk.path if node.turn.role == "user"]
        if keys:
            self.answer(self.talk.edit(data.draw(st.sampled_from(keys)), text).begin_reply())

    @talked
    @rule(data=st.data())
    def regenerate(self, data: st.DataObject) -> None:
        keys = [node.key for node in self.talk.path if node.turn.role == "assistant"]
        if keys:
            self.answer(self.talk.regenerate(data.draw(st.sampled_from(keys))))

    @talked
    @rule(data=st.data())
    def switch_branch(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.talk.path))
        self.talk = self.talk.choose(data.draw(st.sampled_from(self.talk.versions(node.key))))

    @talked
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.talk = self.talk.delete(data.draw(st.sampled_from(self.talk.path)).key)

    @rule()
    def another_chat(self) -> None:
        self.engine.keep_chat()
        self.talk = Conversation(system="Be long.")
        self.chat_id += "a"

    @rule()
    def forget(self) -> None:
        self.engine.forget_chat(self.chat_id)

    @rule(change=MOVES, carries=st.booleans())
    def place_anew(self, change: dict[str, object], carries: bool) -> None:
        context = replace(self.request.context, **change)  # type: ignore[arg-type]
        self.request = replace(self.request, context=context, keeps_chat=carries)
        assert run(self.engine, self.request).report.n_ctx == context.n_ctx

    @rule()
    def load_anew(self) -> None:
        run(self.engine, None)
        self.request = replace(self.request, keeps_chat=False)
        run(self.engine, self.request)


AnyMoves.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestAnyMoves = AnyMoves.TestCase
