"""Turns reuse what is evaluated, also where the cache cannot simply be cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from moelauncher.core.engine_protocol import ChatMessage, GenerateRequest, PromptProgress
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import LoadedModel, load_weights, make_context
from moelauncher.engine.native import load_native, log_to
from moelauncher.engine.stop_flag import StopFlag
from tests.helpers.engines import GREEDY, Outcome, load_request, run
from tests.helpers.gguf_files import write_tiny_model

#: Every way in which a cache resists: none, window, recurrent state beside attention, state only.
KINDS = ("dense", "mla", "sliding", "chunked", "hybrid", "shared", "mamba")

SETTINGS = ContextSettings(n_ctx=1024, n_ubatch=64, n_threads=1)


class Bench:
    """A loaded tiny model, and contexts on it in this thread."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.lines: list[tuple[str, str]] = []
        stack.enter_context(log_to(lambda level, text: self.lines.append((level, text))))
        native = load_native()
        self.lib = native.lib
        self.stop = StopFlag()
        self._stack = stack
        self.model: LoadedModel = load_weights(
            native, load_request(path), lambda _: None, lambda: False, self.lines
        )
        stack.callback(self.model.free)

    def context(self) -> EvaluatedContext:
        made = make_context(self.model, SETTINGS, self.stop, self.lines)
        self._stack.callback(made.free)
        return EvaluatedContext(self.model, made, self.stop)

    def bring_to(self, context: EvaluatedContext, tokens: list[int]) -> int:
        """Evaluate ``tokens`` with as much reuse as there is; returns how many were kept."""
        kept = context.rewind(tokens)
        context.evaluate(tokens[kept:], lambda _: None)
        assert context.tokens == tokens
        return kept

    def logits(self, context: EvaluatedContext) -> np.ndarray:
        row = self.lib.llama_get_logits_ith(context.handle, -1)
        return np.array(row[: self.model.vocabulary.n_tokens])

    def is_as_fresh(self, context: EvaluatedContext) -> bool:
        """Whether the next token is as likely as in a context that never saw anything else."""
        # Pieces of other sizes round differently: up to 0.03 with these random models.
        return self.distance(context, list(context.tokens)) < 0.06

    def distance(self, context: EvaluatedContext, tokens: list[int]) -> float:
        """How far the logits are from those of a fresh context with ``tokens``."""
        fresh = self.context()
        self.bring_to(fresh, tokens)
        expected = self.logits(fresh)
        return float(np.abs(self.logits(context) - expected).max() / np.ptp(expected))


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(write_tiny_model(tmp_path / "tiny.gguf", request.param), stack)


def words(seed: int, count: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(4, 200, count)]


def test_another_history_would_be_noticed(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 300) + words(2, 4))
    assert bench.distance(context, words(7, 300) + words(2, 4)) > 0.2


def test_going_on_evaluates_only_what_is_new(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 300))
    assert bench.bring_to(context, words(1, 300) + words(2, 40)) == 300
    assert bench.is_as_fresh(context)


def test_parting_at_a_checkpoint(bench: Bench) -> None:
    """As after a reply whose thinking is dropped from the next prompt."""
    context = bench.context()
    history, reply = words(1, 300), words(2, 100)
    bench.bring_to(context, history)
    context.keep_checkpoint()
    bench.bring_to(context, history + reply)
    context.keep_checkpoint()
    assert bench.bring_to(context, history + words(3, 50)) == 300
    assert bench.is_as_fresh(context)


def test_parting_where_nothing_was_saved(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 400))
    kept = bench.bring_to(context, words(1, 200) + words(3, 50))
    assert kept in (0, 200)
    assert bench.is_as_fresh(context)


def test_the_same_again_computes_only_what_it_must(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 100))
    assert bench.bring_to(context, words(1, 100)) < 100
    assert bench.is_as_fresh(context)


def test_nothing_in_common(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 100))
    assert bench.bring_to(context, [3, *words(5, 50)]) == 0
    assert bench.is_as_fresh(context)


def test_stop_between_pieces_keeps_what_is_done(bench: Bench) -> None:
    context = bench.context()
    tokens = words(1, 500)

    def stop_soon(done: int) -> None:
        bench.stop.set(done >= 128)

    with pytest.raises(Cancelled):
        context.evaluate(tokens, stop_soon)
    bench.stop.set(False)
    assert context.tokens == tokens[:128]
    assert bench.bring_to(context, tokens) == 128
    assert bench.is_as_fresh(context)


def test_abort_inside_a_computation_leaves_a_sound_context(bench: Bench) -> None:
    context = bench.context()
    tokens = words(1, 300)
    bench.bring_to(context, tokens)
    context.keep_checkpoint()
    append = context.decoder()
    bench.stop.set(True)
    with pytest.raises(Cancelled):
        append(7)
    bench.stop.set(False)
    assert context.tokens == tokens[: len(context.tokens)]
    bench.bring_to(context, tokens + words(2, 30))
    assert bench.is_as_fresh(context)


def test_full_context_refuses_one_more_token(bench: Bench) -> None:
    context = bench.context()
    bench.bring_to(context, words(1, 1024))
    assert context.decoder()(7) is False
    with pytest.raises(LauncherError):
        context.evaluate([7], lambda _: None)
    assert len(context.tokens) == 1024


@pytest.mark.parametrize("kind", KINDS)
def test_next_turn_after_dropped_thinking(engine: LlamaEngine, tmp_path: Path, kind: str) -> None:
    """The template leaves out what the model said before its answer, so the prompts part."""
    path = write_tiny_model(tmp_path / "tiny.gguf", kind)
    run(engine, load_request(path, SETTINGS))
    history = [
        ChatMessage(role, f"{role} says a number {n} ")
        for n in range(6)
        for role in ("user", "assistant")
    ]
    question = ChatMessage("user", "And now?")
    first = reply_to(engine, *history, question)
    answer = (ChatMessage("assistant", "another text than was said"), ChatMessage("user", "Go on."))
    second = reply_to(engine, *history, question, *answer)
    n_opening = engine.count_tokens("<|im_end|>\n<|im_start|>assistant\n") or 0
    assert second.stats.cached_tokens >= first.stats.prompt_tokens - n_opening
    assert second.all(PromptProgress)[0].cached == second.stats.cached_tokens


def reply_to(engine: LlamaEngine, *messages: ChatMessage) -> Outcome:
    request = GenerateRequest(
        messages=messages, sampling=GREEDY, max_tokens=60, ignore_end_of_generation=True
    )
    return run(engine, request)
