"""The model moves to another place or context, and the conversation goes on where it was."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import (
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadRequest,
    PromptProgress,
    TokenEvent,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, cpu_placement, run
from tests.helpers.gguf_files import write_tiny_model

#: Caches that are put back cell by cell as they were. A sliding window's cells come back in
#: another order once the window is full, so sums are rounded elsewhere (test_moved_context.py).
KINDS = ("dense", "moe", "hybrid", "mla", "mamba")
SETTINGS = ContextSettings(n_ctx=2048, n_ubatch=64, n_threads=1)
N_TOKENS = 500
PROMPT = "Once upon a time there was a model that could move while it spoke."


@pytest.fixture
def engine() -> Iterator[LlamaEngine]:
    made = LlamaEngine()
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", request.param)


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


class Turns:
    """Inside its block the engine waits until what it told has been looked at.

    A short reply would otherwise be over before this thread is given its turn.
    """

    def __init__(self) -> None:
        self._looked = threading.Semaphore(0)
        self._taken = False

    def __enter__(self) -> None:
        self._taken = True

    def __exit__(self, *_: object) -> None:
        self._taken = False
        self.look()

    def told(self) -> None:
        """What the engine calls, on its thread."""
        if self._taken:
            assert self._looked.acquire(timeout=240)

    def look(self) -> None:
        """It may go on."""
        self._looked.release()


class Reply:
    """One reply during which something else is asked for, and all that was told meanwhile."""

    def __init__(
        self,
        engine: LlamaEngine,
        request: GenerateRequest,
        *at_token: Callable[[], int],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        """Each of ``at_token`` is called 20 tokens after the one before has ended; ``looked`` each
        time after all that was told."""
        self.events: list[EngineEvent] = []
        number = engine.generate(request)
        waiting = list(at_token)
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
                    self.end = event
                    return
                elif self._is_due(event, next_at) and waiting and load is None:
                    load = waiting.pop(0)()
            looked()

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


def test_a_reply_goes_on_token_for_token(engine: LlamaEngine, path: Path) -> None:
    expected = undisturbed(engine, path)
    run(engine, first_place(path))
    smaller = replace(SETTINGS, n_ctx=1024, n_ubatch=32)
    reply = Reply(
        engine,
        story(),
        lambda: engine.load(other_place(path)),
        lambda: engine.load(other_place(path, smaller)),
        lambda: engine.load(first_place(path, smaller)),
        lambda: engine.load(first_place(path)),
    )
    moves = reply.moves()
    assert [type(move) for move in moves] == [Loaded] * 4
    for move in moves:
        assert isinstance(move, Loaded)
        assert move.report.carried is not None
        assert (move.report.carried.how, move.report.carried.reason) == ("restored", "")
        assert move.report.carried.n_tokens >= 20
    assert reply.text == expected
    reply.assert_counted()


class PromptMove:
    """A long prompt, and a load that is asked for while it is read."""

    def __init__(self, engine: LlamaEngine, request: GenerateRequest, load: LoadRequest) -> None:
        self.events: list[EngineEvent] = []
        number, asked = engine.generate(request), False
        while True:
            for event in engine.drain(240.0):
                self.events.append(event)
                if isinstance(event, PromptProgress) and event.done and not asked:
                    asked = True
                    engine.load(load)
                if isinstance(event, Finished | GenerateFailed) and event.request == number:
                    self.end = event
                    return

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


def test_within_its_window_a_sliding_cache_comes_back_exactly(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "sliding")
    turns = Turns()
    engine = LlamaEngine(notify=turns.told)
    try:
        run(engine, first_place(path))
        expected = run(engine, story(55, "Once")).text
        run(engine, None)
        run(engine, first_place(path))
        with turns:
            move = partial(engine.load, other_place(path))
            reply = Reply(engine, story(55, "Once"), move, looked=turns.look)
        assert [type(move) for move in reply.moves()] == [Loaded]
        assert reply.text == expected
    finally:
        engine.close()


def test_a_reply_survives_a_place_that_cannot_be_had(engine: LlamaEngine, path: Path) -> None:
    expected = undisturbed(engine, path)
    run(engine, first_place(path))
    reply = Reply(engine, story(), lambda: engine.load(impossible_place(path)))
    (failed,) = reply.moves()
    assert isinstance(failed, LoadFailed)
    assert failed.error.message
    assert failed.restored is not None
    assert failed.restored.carried is not None and failed.restored.carried.how == "restored"
    assert failed.restored.placement == first_place(path).placement
    assert reply.text == expected
    reply.assert_counted()


def test_the_next_turn_reads_only_what_is_new(engine: LlamaEngine, path: Path) -> None:
    second = story(60, PROMPT + " It went on for many years.")
    run(engine, first_place(path))
    run(engine, story(60))
    expected = run(engine, second)
    run(engine, None)
    run(engine, first_place(path))
    run(engine, story(60))
    report = run(engine, other_place(path)).report
    assert report.carried is not None and report.carried.how == "restored"
    failed = run(engine, impossible_place(path)).end
    assert isinstance(failed, LoadFailed) and failed.restored is not None
    again = run(engine, second)
    assert again.text == expected.text
    assert again.stats.cached_tokens == expected.stats.cached_tokens


def test_another_kv_type_is_read_again_and_said(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    run(engine, first_place(path))
    exact = replace(SETTINGS, kv_type="q8_0")
    reply = Reply(engine, story(), lambda: engine.load(first_place(path, exact)))
    (moved,) = reply.moves()
    assert isinstance(moved, Loaded) and moved.report.carried is not None
    assert moved.report.carried.how == "read_again"
    assert "f16" in moved.report.carried.reason and "q8_0" in moved.report.carried.reason
    after = reply.events[reply.events.index(moved) :]
    readings = [event for event in after if isinstance(event, PromptProgress)]
    assert readings[-1].done == readings[-1].total == moved.report.carried.n_tokens
    reply.assert_counted()
    assert isinstance(reply.end, Finished)
    assert reply.end.stats.context_used == reply.end.stats.prompt_tokens + N_TOKENS - 1


def test_a_state_without_room_is_read_again(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "hybrid")
    engine = LlamaEngine(free_ram=lambda: 1 << 20)
    try:
        run(engine, first_place(path))
        reply = Reply(engine, story(), lambda: engine.load(other_place(path)))
        (moved,) = reply.moves()
        assert isinstance(moved, Loaded) and moved.report.carried is not None
        assert moved.report.carried.how == "read_again"
        assert "1 MiB is free" in moved.report.carried.reason
        reply.assert_counted()
    finally:
        engine.close()


def test_a_context_too_small_for_the_reply_is_refused(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    expected = undisturbed(engine, path)
    run(engine, first_place(path))
    reply = Reply(
        engine, story(), lambda: engine.load(first_place(path, replace(SETTINGS, n_ctx=16)))
    )
    (refused,) = reply.moves()
    assert isinstance(refused, LoadFailed)
    assert refused.restored is not None and refused.restored.context == SETTINGS
    assert reply.text == expected


def test_at_rest_a_smaller_context_drops_what_it_cannot_hold(
    engine: LlamaEngine, tmp_path: Path
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    run(engine, first_place(path))
    run(engine, story(400))
    report = run(engine, first_place(path, replace(SETTINGS, n_ctx=256))).report
    assert report.carried is not None and report.carried.how == "read_again"
    assert "256" in report.carried.reason
    assert run(engine, story(5)).stats.completion_tokens == 5


def test_another_number_of_threads_touches_nothing(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    run(engine, first_place(path))
    reply = Reply(
        engine, story(), lambda: engine.load(first_place(path, replace(SETTINGS, n_threads=2)))
    )
    (moved,) = reply.moves()
    assert isinstance(moved, Loaded) and moved.report.carried is not None
    assert (moved.report.carried.how, moved.report.n_threads) == ("kept", 2)
    reply.assert_counted()


def test_a_cancelled_move_leaves_the_reply_alone(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> object:
        if request.placement.cpu_moe == 1:
            engine.stop(numbers.get(timeout=60))
        return None

    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    engine = LlamaEngine(accept=accept)
    try:
        expected = undisturbed(engine, path)
        run(engine, first_place(path))

        def move() -> int:
            number = engine.load(other_place(path))
            numbers.put(number)
            return number

        reply = Reply(engine, story(), move)
        (ended,) = reply.moves()
        assert isinstance(ended, LoadCancelled)
        assert ended.restored is not None
        assert reply.text == expected
        reply.assert_counted()
    finally:
        engine.close()


def test_stop_during_a_move_ends_the_reply_and_keeps_the_model(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> object:
        if request.placement.cpu_moe == 1:
            engine.stop()
        return None

    engine = LlamaEngine(accept=accept)
    try:
        run(engine, first_place(path))
        reply = Reply(engine, story(), lambda: engine.load(other_place(path)))
        (ended,) = [event for event in reply.events if isinstance(event, LoadCancelled)]
        assert ended.restored is not None
        assert isinstance(reply.end, Finished)
        assert reply.end.stats.finish_reason == "cancelled"
        assert run(engine, story(5)).stats.completion_tokens == 5
    finally:
        engine.close()


def test_a_refused_move_touches_nothing(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> object:
        if request.placement.cpu_moe == 1:
            raise LauncherError("No.", "Do not.")
        return None

    engine = LlamaEngine(accept=accept)
    try:
        expected = undisturbed(engine, path)
        run(engine, first_place(path))
        reply = Reply(engine, story(), lambda: engine.load(other_place(path)))
        (failed,) = reply.moves()
        assert isinstance(failed, LoadFailed) and failed.restored is not None
        assert failed.error.message == "No."
        assert failed.restored.carried is not None and failed.restored.carried.how == "kept"
        assert reply.text == expected
    finally:
        engine.close()


def test_what_cannot_come_back_ends_the_reply(engine: LlamaEngine, tmp_path: Path) -> None:
    """The file is gone between the old place and the new one."""
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> object:
        if request.placement.cpu_moe == 1:
            path.unlink()
        return None

    engine = LlamaEngine(accept=accept)
    try:
        run(engine, first_place(path))
        reply = Reply(engine, story(), lambda: engine.load(other_place(path)))
        assert isinstance(reply.end, GenerateFailed)
        (failed,) = [event for event in reply.events if isinstance(event, LoadFailed)]
        assert failed.restored is None
        assert engine.count_tokens("a") is None
    finally:
        engine.close()


def test_a_move_that_came_too_late_is_a_load(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    run(engine, first_place(path))
    run(engine, story(5))
    report = run(engine, other_place(path)).report
    assert report.placement.cpu_moe == 1
    assert report.carried is not None and report.carried.how == "restored"
