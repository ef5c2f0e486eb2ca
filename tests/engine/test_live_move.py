"""The model moves to another place or context, and the conversation goes on where it was."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import (
    Finished,
    GenerateFailed,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadRequest,
    PromptProgress,
)
from moelauncher.core.errors import LauncherError
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import run
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.moved_replies import (
    KINDS,
    N_TOKENS,
    PROMPT,
    SETTINGS,
    Reply,
    first_place,
    impossible_place,
    other_place,
    story,
    undisturbed,
)


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", request.param)


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


def test_within_its_window_a_sliding_cache_comes_back_exactly(
    engine: LlamaEngine, tmp_path: Path
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", "sliding")
    run(engine, first_place(path))
    expected = run(engine, story(55, "Once")).text
    run(engine, None)
    run(engine, first_place(path))
    reply = Reply(engine, story(55, "Once"), lambda: engine.load(other_place(path)))
    assert [type(move) for move in reply.moves()] == [Loaded]
    assert reply.text == expected


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
            engine.stop(numbers.get(timeout=240))
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
