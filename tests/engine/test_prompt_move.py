"""The model moves while a prompt is read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import (
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    Loaded,
    LoadFailed,
    LoadRequest,
    PromptProgress,
    TokenEvent,
)
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import run
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.moved_replies import (
    KINDS,
    N_TOKENS,
    SETTINGS,
    first_place,
    impossible_place,
    other_place,
    story,
)
from tests.helpers.turns import Turns


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", request.param)


class PromptMove:
    """A long prompt, and a load that is asked for while it is read."""

    def __init__(self, engine: LlamaEngine, request: GenerateRequest, load: LoadRequest) -> None:
        self.events: list[EngineEvent] = []
        self.end: Finished | GenerateFailed | None = None
        with Turns(engine) as turns:
            number, asked = engine.generate(request), False
            while self.end is None:
                for event in engine.drain(240.0):
                    self.events.append(event)
                    if isinstance(event, PromptProgress) and event.done and not asked:
                        asked = True
                        engine.load(load)
                    if isinstance(event, Finished | GenerateFailed) and event.request == number:
                        self.end = event
                    turns.saw(event)
                if asked:
                    turns.let_go()

    def kinds(self) -> list[type]:
        """What ended and began, in order, each once in a row."""
        wanted = (PromptProgress, Loaded, LoadFailed, TokenEvent)
        found = [type(event) for event in self.events if isinstance(event, wanted)]
        return [kind for n, kind in enumerate(found) if n == 0 or kind is not found[n - 1]]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenEvent))


LONG = " ".join(f"word {number}" for number in range(150))
SMALL_PIECES = replace(SETTINGS, n_ctx=2048, n_ubatch=32)


@pytest.mark.parametrize("shape", ["moe", "sliding", "hybrid"])
def test_a_move_asked_for_while_a_prompt_is_read_happens_between_its_pieces(
    engine: LlamaEngine, tmp_path: Path, shape: str
) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", shape)
    run(engine, first_place(path, SMALL_PIECES))
    expected = run(engine, story(prompt=LONG)).text
    run(engine, None)
    run(engine, first_place(path, SMALL_PIECES))
    moved = PromptMove(engine, story(prompt=LONG), other_place(path, SMALL_PIECES))
    assert moved.kinds() == [PromptProgress, Loaded, PromptProgress, TokenEvent]
    # Beyond its window a sliding cache comes back but for rounding.
    assert shape == "sliding" or moved.text == expected
    assert isinstance(moved.end, Finished)
    last = [event for event in moved.events if isinstance(event, PromptProgress)][-1]
    assert last.done == last.total == moved.end.stats.prompt_tokens
    assert moved.end.stats.completion_tokens == N_TOKENS


def test_a_prompt_whose_state_is_lost_is_read_from_its_beginning(
    engine: LlamaEngine, path: Path
) -> None:
    run(engine, first_place(path, SMALL_PIECES))
    other = replace(SMALL_PIECES, kv_type="q8_0")
    moved = PromptMove(engine, story(prompt=LONG), first_place(path, other))
    assert moved.kinds() == [PromptProgress, Loaded, PromptProgress, TokenEvent]
    done = [event.done for event in moved.events if isinstance(event, PromptProgress)]
    assert any(later < before for before, later in pairwise(done))
    assert isinstance(moved.end, Finished)
    assert moved.end.stats.context_used >= moved.end.stats.prompt_tokens


def test_a_context_too_small_for_the_rest_of_the_prompt_is_said(
    engine: LlamaEngine, path: Path
) -> None:
    run(engine, first_place(path, SMALL_PIECES))
    smaller = replace(SMALL_PIECES, n_ctx=256)
    moved = PromptMove(engine, story(prompt=LONG), first_place(path, smaller))
    assert isinstance(moved.end, GenerateFailed)
    assert "the context holds 256" in moved.end.error.message


def test_a_place_that_cannot_be_had_lets_the_prompt_go_on(engine: LlamaEngine, path: Path) -> None:
    run(engine, first_place(path, SMALL_PIECES))
    moved = PromptMove(engine, story(prompt=LONG), impossible_place(path))
    assert moved.kinds() == [PromptProgress, LoadFailed, PromptProgress, TokenEvent]
    assert isinstance(moved.end, Finished)
