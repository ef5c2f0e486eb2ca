"""Loads, replies and what was told meanwhile, for tests in which a model moves.

The engine is real, the models tiny, on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from moelauncher.core.engine_protocol import (
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadRequest,
    TokenEvent,
)
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, cpu_placement, run
from tests.helpers.turns import Turns

#: Caches that are put back cell by cell as they were. A sliding window's cells come back in
#: another order once the window is full, so sums are rounded elsewhere (test_moved_context.py).
KINDS = ("dense", "moe", "hybrid", "mla", "mamba")
SETTINGS = ContextSettings(n_ctx=2048, n_ubatch=64, n_threads=1)
N_TOKENS = 500
PROMPT = "Once upon a time there was a model that could move while it spoke."


def first_place(path: Path, settings: ContextSettings = SETTINGS) -> LoadRequest:
    return LoadRequest(path, cpu_placement(), settings, keeps_chat=True)


def other_place(path: Path, settings: ContextSettings = SETTINGS) -> LoadRequest:
    """Computes alike, but is another placement: the weights are loaded anew."""
    placement = replace(cpu_placement(), cpu_moe=1, of=1, patterns=("matches nothing",))
    return LoadRequest(path, placement, settings, keeps_chat=True)


def impossible_place(path: Path) -> LoadRequest:
    """A GPU that is not there: only the load itself finds out."""
    placement = replace(
        cpu_placement(), devices=(PlacementDevice("Nowhere7", None),), n_gpu_layers=99
    )
    return LoadRequest(path, placement, SETTINGS, keeps_chat=True)


def story(n_tokens: int = N_TOKENS, prompt: str = PROMPT) -> GenerateRequest:
    return GenerateRequest(
        raw_prompt=prompt, sampling=GREEDY, max_tokens=n_tokens, ignore_end_of_generation=True
    )


class Reply:
    """One reply during which something else is asked for, and all that was told meanwhile."""

    def __init__(
        self, engine: LlamaEngine, request: GenerateRequest, *at_token: Callable[[], int]
    ) -> None:
        """Each of ``at_token`` is called 20 tokens after the one before has ended."""
        self.events: list[EngineEvent] = []
        with Turns(engine) as turns:
            self.end = self._heard(engine, request, list(at_token), turns)

    def _heard(
        self,
        engine: LlamaEngine,
        request: GenerateRequest,
        waiting: list[Callable[[], int]],
        turns: Turns,
    ) -> Finished | GenerateFailed:
        number = engine.generate(request)
        load: int | None = None
        next_at = 20
        while True:
            for event in engine.drain(240.0):
                self.events.append(event)
                if isinstance(event, Loaded | LoadFailed | LoadCancelled):
                    if event.request == load:
                        load, next_at = None, self.n_tokens + 20
                elif isinstance(event, Finished | GenerateFailed):
                    assert event.request == number
                    return event
                elif self._is_due(event, next_at) and waiting and load is None:
                    load = waiting.pop(0)()
                turns.saw(event)
            if load is None and not waiting:
                turns.let_go()

    @staticmethod
    def _is_due(event: EngineEvent, n_tokens: int) -> bool:
        return isinstance(event, TokenEvent) and event.n_tokens >= n_tokens

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenEvent))

    @property
    def n_tokens(self) -> int:
        return sum(isinstance(event, TokenEvent) for event in self.events)

    def moves(self) -> list[Loaded | LoadFailed | LoadCancelled]:
        """The loads that ended while tokens were still to come, with tokens before them."""
        ends = (Loaded, LoadFailed, LoadCancelled)
        tokens = [n for n, event in enumerate(self.events) if isinstance(event, TokenEvent)]
        return [
            event
            for n, event in enumerate(self.events)
            if isinstance(event, ends) and tokens[0] < n < tokens[-1]
        ]

    def assert_counted(self, n_tokens: int = N_TOKENS) -> None:
        """Every token once, in order."""
        counts = [event.n_tokens for event in self.events if isinstance(event, TokenEvent)]
        assert counts[:n_tokens] == list(range(1, n_tokens + 1))
        assert isinstance(self.end, Finished)
        assert self.end.stats.completion_tokens == n_tokens


def undisturbed(engine: LlamaEngine, path: Path) -> str:
    run(engine, replace(first_place(path), keeps_chat=False))
    text = run(engine, story()).text
    assert run(engine, None)
    return text
