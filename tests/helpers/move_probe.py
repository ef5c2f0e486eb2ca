"""What the Vulkan test of live moves runs in a process of its own. Prints one JSON document.

The sample model answers while the slider goes 30 > 8 > 0 > 30; then the next token's
distribution after each move is held against a run that never moved.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelauncher.core.engine_protocol import (
    Finished,
    GenerateRequest,
    Loaded,
    LoadRequest,
    TokenEvent,
)
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.place_model import place
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import LoadedModel, load_weights, make_context
from moelauncher.engine.native import load_native, log_to
from moelauncher.engine.stop_flag import StopFlag
from tests.helpers.engines import GREEDY, run
from tests.helpers.vulkan_probe import N_UBATCH, gpus

CONTEXT = ContextSettings(n_ctx=256, n_ubatch=N_UBATCH, n_threads=1)
WAY = (8, 0, 30)
N_TOKENS = 13
PROMPT = "The capital of France is"
#: Tokens that are read under each placement, and of what.
EACH = 6
TEXT = (
    "The capital of France is Paris, and the capital of Italy is Rome. Both cities are old, and "
    "many people visit them each year."
)


def request(facts: ModelFacts, stop: int) -> LoadRequest:
    return LoadRequest(facts.path, place(facts, gpus(), cpu_moe=stop), CONTEXT, keeps_chat=True)


def reply(facts: ModelFacts) -> dict[str, Any]:
    """One reply, a move every three tokens."""
    engine = LlamaEngine()
    try:
        run(engine, request(facts, 30))
        number = engine.generate(
            GenerateRequest(
                raw_prompt=PROMPT,
                sampling=GREEDY,
                max_tokens=N_TOKENS,
                ignore_end_of_generation=True,
            )
        )
        counts: list[int] = []
        moves: list[dict[str, Any]] = []
        waiting, text, moving = list(WAY), "", False
        while True:
            for event in engine.drain(240.0):
                if isinstance(event, Loaded):
                    moving = False
                    assert event.report.carried is not None
                    moves.append(
                        {
                            "stop": event.report.placement.cpu_moe,
                            "how": event.report.carried.how,
                            "held": event.report.carried.n_tokens,
                            "drawn": len(counts),
                        }
                    )
                elif isinstance(event, TokenEvent):
                    text += event.text
                    if event.n_tokens > len(counts):
                        counts.append(event.n_tokens)
                    if waiting and not moving and len(counts) >= 3 * (len(moves) + 1):
                        moving = True
                        engine.load(request(facts, waiting.pop(0)))
                elif isinstance(event, Finished) and event.request == number:
                    return {
                        "counts": counts,
                        "moves": moves,
                        "text": text,
                        "prompt_tokens": event.stats.prompt_tokens,
                        "context_used": event.stats.context_used,
                    }
    finally:
        engine.close()


class Walker:
    """A conversation of given tokens that goes from placement to placement."""

    def __init__(self, facts: ModelFacts, stop: int, stack: ExitStack) -> None:
        self._facts, self._stack = facts, stack
        self._flag = StopFlag()
        self._lines: list[tuple[str, str]] = []
        stack.enter_context(log_to(lambda level, text: self._lines.append((level, text))))
        self._context: EvaluatedContext | None = None
        self.go_to(stop)

    def go_to(self, stop: int) -> None:
        model: LoadedModel = load_weights(
            load_native(), request(self._facts, stop), lambda _: None, lambda: False, self._lines
        )
        self._stack.callback(model.free)
        made = make_context(model, CONTEXT, self._flag, self._lines)
        self._stack.callback(made.free)
        self.model = model
        if self._context is None:
            self._context = EvaluatedContext(model, made, self._flag)
        else:
            reason = self._context.move_to(model, made, self._context.save(lambda: None))
            assert reason == "", reason

    def read(self, tokens: list[int]) -> NDArray[np.float64]:
        """Logarithms of the next token's probabilities, token by token."""
        assert self._context is not None
        append = self._context.decoder()
        for token in tokens:
            assert append(token)
        row = self.model.native.lib.llama_get_logits_ith(self._context.handle, -1)
        logits = np.array(row[: self.model.vocabulary.n_tokens], dtype=np.float64)
        logits -= logits.max()
        return logits - np.log(np.exp(logits).sum())


def divergences(facts: ModelFacts) -> list[dict[str, float]]:
    """For every token after each move: KL against an undisturbed run under that placement, and
    how far the undisturbed runs of the placements seen so far are from it at the same token.
    """
    stills: dict[int, list[NDArray[np.float64]]] = {}
    for stop in {30, *WAY}:
        with ExitStack() as stack:
            still = Walker(facts, stop, stack)
            first, rest = _words(still)
            still.read(first)
            stills[stop] = [still.read([word]) for word in rest]
    found = []
    with ExitStack() as stack:
        walker = Walker(facts, 30, stack)
        first, rest = _words(walker)
        walker.read(first)
        seen = [30]
        for place, word in enumerate(rest):
            if place % EACH == 0:
                stop = WAY[place // EACH]
                walker.go_to(stop)
                seen.append(stop)
            here = stills[stop][place]
            noise = max(_kl(stills[other][place], here) for other in seen)
            found.append({"stop": stop, "moved": _kl(walker.read([word]), here), "noise": noise})
    return found


def _words(walker: Walker) -> tuple[list[int], list[int]]:
    """What is read before the first move, and after it: ``EACH`` tokens a move."""
    words = walker.model.vocabulary.tokenise(TEXT)
    return words[:5], words[5 : 5 + EACH * len(WAY)]


def _kl(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float((np.exp(one) * (one - other)).sum())


def main() -> None:
    facts = facts_of([read_header(Path(sys.argv[1]))])
    answer = {"reply": reply(facts), "divergences": divergences(facts)}
    print(json.dumps(answer))  # noqa: T201 - its output is its answer


if __name__ == "__main__":
    main()
