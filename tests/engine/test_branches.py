"""Edits, branches and replies that are gone on with: only what is new is evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.prompt_prefix import common_prefix
from moelauncher.core.engine_protocol import GenerateRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, Outcome, ask, load_request, run
from tests.helpers.gguf_files import write_tiny_model

KINDS = ["dense", "moe", "shared", "sliding", "hybrid", "mamba"]
N_TOKENS = 24
#: What is read in other pieces differs by rounding. Quantised activations make ten times as much
#: of it, and a router with two experts of one weight turns to the other: so neither.
EVEN: dict[str, object] = {
    "matrix_type": GGMLQuantizationType.F32,
    "n_expert": 4,
    "n_expert_used": 4,
    "seed": 3,
}
#: Logits spread by about 1; the two best lie this near each other once in a hundred tokens. What
#: is read in pieces of another size differs by up to 0.007.
TIE = 0.02
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
        self.held: list[int] = []

    def answer(self, opened: Conversation) -> Outcome:
        """Answer, and see that only what follows the common prefix was evaluated."""
        outcome = self.reply_to(opened)
        wanted = self.prompt_tokens(opened)
        assert outcome.stats.prompt_tokens == len(wanted)
        least = len(wanted) - min(common_prefix(self.held, wanted), len(wanted) - 1)
        assert least <= outcome.evaluated <= least + N_BATCH
        running = self.engine._resident.running
        assert running is not None
        self.held = list(running.evaluated.tokens)
        self.now = opened.append(outcome.text).finish(outcome.stats)
        return outcome

    def reply_to(self, opened: Conversation) -> Outcome:
        return run(
            self.engine,
            GenerateRequest(
                messages=opened.messages(),
                sampling=GREEDY,
                max_tokens=N_TOKENS,
                ignore_end_of_generation=True,
            ),
        )

    def prompt_tokens(self, opened: Conversation) -> list[int]:
        running = self.engine._resident.running
        assert running is not None
        text = running.model.template.render(opened.messages(), {})
        return running.model.vocabulary.tokenise_prompt(text)

    def check_against_fresh(self, opened: Conversation, answered: Outcome, held: list[int]) -> bool:
        """See that a context that never saw anything else answers the same.

        False: it parted from it where the model itself holds two tokens for equally good.
        """
        run(self.engine, None)
        run(self.engine, load_request(self.path, SETTINGS))
        if self.reply_to(opened).text == answered.text:
            return True
        running = self.engine._resident.running
        assert running is not None
        evaluated = running.evaluated
        same = common_prefix(held, list(evaluated.tokens))
        assert same >= answered.stats.prompt_tokens
        evaluated.rewind([])
        evaluated.evaluate(held[:same], lambda done: None)
        second, best = sorted(logits(self.engine))[-2:]
        assert best - second < TIE
        return False


def question(n: int) -> str:
    return f"Question {n}: what is the {n}th of all the numbers that nobody has named so far? " * 2


@pytest.mark.parametrize("kind", KINDS)
def test_turns_edits_and_branches(engine: LlamaEngine, tmp_path: Path, kind: str) -> None:
    talk = Talk(engine, write_tiny_model(tmp_path / "tiny.gguf", kind, **EVEN))
    seen: list[tuple[Conversation, Outcome, list[int]]] = []

    def answer(opened: Conversation) -> Outcome:
        outcome = talk.answer(opened)
        seen.append((opened, outcome, talk.held))
        return outcome

    for n in (1, 2, 3):
        answer(talk.now.ask(question(n)).begin_reply())
    first_branch = talk.now
    _, second, third = (node.key for node in talk.now.path if node.turn.role == "user")
    answer(talk.now.edit(third, "Something else altogether?").begin_reply())
    answer(talk.now.regenerate(talk.now.path[-1].key))
    talk.now = talk.now.choose(third)
    assert talk.now.turns == first_branch.turns
    answer(talk.now.ask(question(4)).begin_reply())
    answer(talk.now.edit(second, question(5)).begin_reply())
    assert answer(talk.now.ask(question(6)).begin_reply()).stats.cached_tokens > 0
    equal = [talk.check_against_fresh(*one) for one in seen]
    assert sum(equal) >= len(equal) - 2, "ties are rare"


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_read_before_is_kept_to_the_last_bit(
    engine: LlamaEngine, tmp_path: Path, kind: str
) -> None:
    """Read in the same pieces, a branch gives the very numbers that a fresh context gives."""
    run(engine, load_request(write_tiny_model(tmp_path / "tiny.gguf", kind, **EVEN), SETTINGS))
    trunk, branch, other = (
        [60 + (n * step + step) % 190 for n in range(200)] for step in (7, 11, 13)
    )
    running = engine._resident.running
    assert running is not None
    evaluated = running.evaluated

    def read(tokens: list[int]) -> list[float]:
        evaluated.evaluate(tokens, lambda done: None)
        return logits(engine)

    def same(numbers: list[float], others: list[float]) -> bool:
        # A window that is put back lies in other cells than where it was written, and sums are
        # made in the order of the cells.
        furthest = TIE if kind == "sliding" else 0.0
        return max(abs(a - b) for a, b in zip(numbers, others, strict=True)) <= furthest

    read(trunk)
    evaluated.keep_checkpoint()
    expected = read(branch)
    for token in other[:40]:  # as a reply is: one by one
        read([token])
    assert evaluated.rewind(trunk + other) == len(trunk)
    assert not same(read(other), expected)
    assert evaluated.rewind(trunk + branch) == len(trunk)
    assert same(read(branch), expected)
    evaluated.rewind([])
    read(trunk)
    assert read(branch) == expected


def logits(engine: LlamaEngine) -> list[float]:
    """What the model makes of the last token."""
    running = engine._resident.running
    assert running is not None
    lib = running.model.native.lib
    found = lib.llama_get_logits_ith(running.context.handle, -1)
    return [found[n] for n in range(running.model.vocabulary.n_tokens)]


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
