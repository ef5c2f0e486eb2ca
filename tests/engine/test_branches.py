"""Edits, branches and replies that are gone on with: only what is new is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.conversation import Conversation
from moelauncher.core.engine_protocol import ContextSettings, GenerateRequest
from moelauncher.core.prompt_prefix import common_prefix
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, Outcome, ask, load_request, run
from tests.helpers.gguf_files import write_tiny_model

N_BATCH = 64
SETTINGS = ContextSettings(n_ctx=2048, n_ubatch=N_BATCH, n_threads=1)
SYSTEM = "Answer in a sentence, and never in two. " * 8


class Talk:
    """A conversation with a loaded model, and the tokens that its context holds."""

    def __init__(self, engine: LlamaEngine, path: Path) -> None:
        self.engine = engine
        self.path = path
        run(engine, load_request(path, SETTINGS))
        self.now = Conversation(system=SYSTEM)
        self._held: list[int] = []

    def answer(self, opened: Conversation) -> Outcome:
        """Answer, and see that only what follows the common prefix was evaluated."""
        outcome = self.reply_to(opened)
        wanted = self.prompt_tokens(opened)
        assert outcome.stats.prompt_tokens == len(wanted)
        least = len(wanted) - min(common_prefix(self._held, wanted), len(wanted) - 1)
        assert least <= outcome.evaluated <= least + N_BATCH
        running = self.engine._resident.running
        assert running is not None
        self._held = list(running.evaluated.tokens)
        self.now = opened.append(outcome.text).finish(outcome.stats)
        return outcome

    def reply_to(self, opened: Conversation) -> Outcome:
        return run(
            self.engine,
            GenerateRequest(
                messages=opened.messages(),
                sampling=GREEDY,
                max_tokens=8,  # later, rounding in other pieces may turn a random model's mind
                ignore_end_of_generation=True,
            ),
        )

    def prompt_tokens(self, opened: Conversation) -> list[int]:
        running = self.engine._resident.running
        assert running is not None
        text = running.model.template.render(opened.messages(), {})
        return running.model.vocabulary.tokenise_prompt(text)

    def fresh_text(self, opened: Conversation) -> str:
        """What is answered by a context that never saw anything else."""
        run(self.engine, None)
        run(self.engine, load_request(self.path, SETTINGS))
        self._held = []
        return self.reply_to(opened).text


def question(n: int) -> str:
    return f"Question {n}: what is the {n}th of all the numbers that nobody has named so far? " * 2


@pytest.mark.parametrize("kind", ["dense", "sliding", "hybrid", "mamba"])
def test_turns_edits_and_branches(engine: LlamaEngine, tmp_path: Path, kind: str) -> None:
    talk = Talk(engine, write_tiny_model(tmp_path / "tiny.gguf", kind))
    for n in (1, 2, 3):
        talk.answer(talk.now.ask(question(n)).begin_reply())
    first_branch = talk.now
    _, second, third = (node.key for node in talk.now.path if node.turn.role == "user")
    talk.answer(talk.now.edit(third, "Something else altogether?").begin_reply())
    talk.answer(talk.now.regenerate(talk.now.path[-1].key))
    talk.now = talk.now.choose(third)
    assert talk.now.turns == first_branch.turns
    talk.answer(talk.now.ask(question(4)).begin_reply())
    talk.answer(talk.now.edit(second, question(5)).begin_reply())
    opened = talk.now.ask(question(6)).begin_reply()
    reused = talk.answer(opened)
    assert reused.stats.cached_tokens > 0
    assert reused.text == talk.fresh_text(opened)


def test_a_reply_is_gone_on_with_where_it_was_cut(smollm2: LlamaEngine) -> None:
    whole = run(smollm2, ask("Name the planets.", max_tokens=40))
    talk = Conversation("You are a helpful assistant.").ask("Name the planets.").begin_reply()
    part = run(smollm2, ask("Name the planets.", max_tokens=15))
    talk = talk.append(part.text).finish(part.stats).go_on()
    rest = run(
        smollm2,
        GenerateRequest(
            messages=talk.messages_to_go_on(), sampling=GREEDY, max_tokens=25, continues=True
        ),
    )
    assert part.text + rest.text == whole.text
    assert rest.evaluated <= 2, "the part that was there is not read again"
