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

N_TOKENS = 16
#: What is read in pieces of another size is summed in another order: logits, which spread by 1,
#: differ by up to 0.0003. By these seeds of random weights the best token of every reply leads
#: the second by more (:meth:`Talk.least_lead` is held to it), so equal texts can be asked for.
SEEDS = {"dense": 50, "moe": 100, "shared": 35, "sliding": 6, "hybrid": 1, "mamba": 15}
LEAST_LEAD = 0.005
#: Quantised activations make a thousand times as much of rounding.
EVEN: dict[str, object] = {"matrix_type": GGMLQuantizationType.F32}
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

    def fresh_tokens(self, opened: Conversation) -> tuple[str, list[int]]:
        """The answer of a context that never saw anything else, and all that it then holds."""
        run(self.engine, None)
        run(self.engine, load_request(self.path, SETTINGS))
        text = self.reply_to(opened).text
        running = self.engine._resident.running
        assert running is not None
        return text, list(running.evaluated.tokens)

    def least_lead(self, held: list[int], n_prompt: int) -> float:
        """By how much the best token of a reply leads the second where it leads least."""
        running = self.engine._resident.running
        assert running is not None
        evaluated = running.evaluated
        evaluated.rewind([])
        evaluated.evaluate(held[:n_prompt], lambda done: None)
        leads = []
        for token in [*held[n_prompt:], None]:
            second, best = sorted(logits(self.engine))[-2:]
            leads.append(best - second)
            if token is not None:
                evaluated.evaluate([token], lambda done: None)
        return min(leads)


def question(n: int) -> str:
    return f"Question {n}: what is the {n}th of all the numbers that nobody has named so far? " * 2


def tiny_model(tmp_path: Path, kind: str) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", kind, seed=SEEDS[kind], **EVEN)


@pytest.mark.usefixtures("exact_attention")
@pytest.mark.parametrize("kind", SEEDS)
def test_turns_edits_and_branches(engine: LlamaEngine, tmp_path: Path, kind: str) -> None:
    talk = Talk(engine, tiny_model(tmp_path, kind))
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
    assert len({outcome.text for _, outcome, _ in seen}) > 3, "what was said before matters"
    for opened, outcome, held in seen:
        assert talk.fresh_tokens(opened) == (outcome.text, held)
        lead = talk.least_lead(held, outcome.stats.prompt_tokens)
        assert lead > LEAST_LEAD, "rounding could decide: take another seed"


@pytest.mark.parametrize("kind", ["sliding", "hybrid", "mamba"])
def test_a_question_without_an_answer_is_not_read_again(
    engine: LlamaEngine, tmp_path: Path, kind: str
) -> None:
    """Stopped before its first word, a reply is left away; the next question joins the first."""
    talk = Talk(engine, tiny_model(tmp_path, kind))
    asked = talk.now.ask(question(1) * 3).begin_reply()
    outcome = talk.reply_to(asked)
    talk.held = talk.prompt_tokens(asked)
    assert len(talk.held) > 6 * N_BATCH
    joined = asked.finish(outcome.stats).ask("Shortly, please.").begin_reply()
    assert len(joined.messages()) == 2
    assert talk.answer(joined).evaluated < 2 * N_BATCH


@pytest.mark.usefixtures("exact_attention")
@pytest.mark.parametrize("kind", SEEDS)
def test_what_was_read_before_is_kept_to_the_last_bit(
    engine: LlamaEngine, tmp_path: Path, kind: str
) -> None:
    """Read in the same pieces, a branch gives the very numbers that a fresh context gives."""
    run(engine, load_request(tiny_model(tmp_path, kind), SETTINGS))
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
        furthest = 1e-4 if kind == "sliding" else 0.0
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
