"""Chats that were left come back from the disk, in this run and in the next, and not for ever."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.engine_protocol import GenerateRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, Outcome, load_request, run
from tests.helpers.gguf_files import write_tiny_model

N_BATCH = 64
SETTINGS = ContextSettings(n_ctx=2048, n_ubatch=N_BATCH, n_threads=1)
SYSTEM = "Answer in a sentence, and never in two. " * 8
LIMIT = 64 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "states"


@pytest.fixture
def made(folder: Path) -> Iterator[Callable[..., LlamaEngine]]:
    """Makes engines over one folder, and closes them."""
    engines: list[LlamaEngine] = []

    def make(limit: int = LIMIT) -> LlamaEngine:
        engines.append(LlamaEngine(kept_states=KeptStates(folder, lambda: limit, least_tokens=64)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def reply_to(engine: LlamaEngine, opened: Conversation, chat_id: str = "") -> Outcome:
    return run(
        engine,
        GenerateRequest(
            messages=opened.messages(),
            sampling=GREEDY,
            max_tokens=8,
            ignore_end_of_generation=True,
            chat_id=chat_id,
        ),
    )


def talk(engine: LlamaEngine, word: str) -> Conversation:
    """Two turns of a chat, which is called as the word."""
    now = Conversation(system=f"{word} {SYSTEM}")
    for n in (1, 2):
        now = now.ask(f"Question {n}: what is the {n}th of all {word} numbers? " * 3).begin_reply()
        outcome = reply_to(engine, now, word)
        now = now.append(outcome.text).finish(outcome.stats)
    return now


def states(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.state")) if folder.exists() else []


@pytest.mark.usefixtures("exact_attention")
@pytest.mark.parametrize("kind", ["dense", "sliding", "hybrid", "mamba"])
def test_a_chat_of_the_last_run_is_not_read_again(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path, kind: str
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", kind)
    first = made()
    run(first, load_request(model, SETTINGS))
    chat = talk(first, "green")
    first.close()
    assert len(states(folder)) == 1
    again = chat.ask("And what comes after that?").begin_reply()

    fresh = LlamaEngine()
    try:
        run(fresh, load_request(model, SETTINGS))
        wanted = reply_to(fresh, again)
    finally:
        fresh.close()
    second = made()
    run(second, load_request(model, SETTINGS))
    outcome = reply_to(second, again)
    last_turn = outcome.stats.prompt_tokens - chat.last_reply.stats.context_used  # type: ignore[union-attr]
    # The reply itself may read otherwise as history than it was written.
    assert outcome.evaluated <= last_turn + 8 + N_BATCH
    assert outcome.stats.cached_tokens > wanted.stats.prompt_tokens // 2
    assert outcome.text == wanted.text


@pytest.mark.parametrize("kind", ["dense", "sliding", "hybrid"])
def test_going_to_and_fro_between_two_chats(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path, kind: str
) -> None:
    engine = made()
    run(engine, load_request(write_tiny_model(tmp_path / "tiny.gguf", kind), SETTINGS))
    green = talk(engine, "green")
    red = talk(engine, "red")
    assert len(states(folder)) == 1, "the one that was left"
    for chat in (green, red):
        outcome = reply_to(engine, chat.ask("And then?").begin_reply())
        assert outcome.evaluated <= 3 * N_BATCH < outcome.stats.prompt_tokens
    assert len(states(folder)) == 2


def test_unloading_keeps_the_chat(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", "dense")
    engine = made()
    run(engine, load_request(model, SETTINGS))
    chat = talk(engine, "green")
    run(engine, None)
    assert len(states(folder)) == 1
    run(engine, load_request(model, SETTINGS))
    outcome = reply_to(engine, chat.ask("And then?").begin_reply())
    assert outcome.evaluated <= 2 * N_BATCH
    run(engine, None)
    assert len(states(folder)) == 1, "the longer one stands for both"
    os.utime(model)
    run(engine, load_request(model, SETTINGS))
    changed = reply_to(engine, chat.ask("And then?").begin_reply())
    assert changed.stats.cached_tokens == 0, "another file by that name"


def test_another_kv_type_reads_it_again(made: Callable[..., LlamaEngine], tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", "dense")
    engine = made()
    run(engine, load_request(model, SETTINGS))
    chat = talk(engine, "green")
    run(engine, None)
    other = ContextSettings(n_ctx=2048, n_ubatch=N_BATCH, n_threads=1, kv_type="q8_0")
    run(engine, load_request(model, other))
    outcome = reply_to(engine, chat.ask("And then?").begin_reply())
    assert outcome.stats.cached_tokens == 0


@pytest.mark.parametrize("damage", ["cut", "turned", "empty", "marks"])
def test_a_damaged_state_costs_only_time(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path, damage: str
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", "hybrid")
    first = made()
    run(first, load_request(model, SETTINGS))
    chat = talk(first, "green")
    first.close()
    (state,) = states(folder)
    data = state.read_bytes()
    if damage == "marks":
        state.with_suffix(".marks").write_bytes(b"\xff" * 40)
    else:
        turned = data[:4] + b"\xff\xff\xff\xff" + data[8:]
        state.write_bytes({"cut": data[: len(data) // 2], "turned": turned, "empty": b""}[damage])
    again = chat.ask("And then?").begin_reply()
    second = made()
    run(second, load_request(model, SETTINGS))
    outcome = reply_to(second, again)
    assert outcome.stats.completion_tokens == 8
    fresh = LlamaEngine()
    try:
        run(fresh, load_request(model, SETTINGS))
        assert outcome.text == reply_to(fresh, again).text
    finally:
        fresh.close()


def test_the_oldest_go_first_and_zero_keeps_nothing(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", "dense")
    engine = made()
    run(engine, load_request(model, SETTINGS))
    talk(engine, "green")
    talk(engine, "red")
    (green,) = states(folder)
    os.utime(green, ns=(1, 1))
    size = green.stat().st_size
    engine.close()
    (red,) = (path for path in states(folder) if path != green)
    tight = made(limit=round(2.5 * size))
    run(tight, load_request(model, SETTINGS))
    talk(tight, "blue")
    run(tight, None)
    assert green not in states(folder) and red in states(folder)
    assert len(states(folder)) == 2
    off = made(limit=0)
    run(off, load_request(model, SETTINGS))
    talk(off, "white")
    run(off, None)
    assert list(folder.iterdir()) == []


def test_what_is_left_is_written_at_once(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path
) -> None:
    engine = made()
    run(engine, load_request(write_tiny_model(tmp_path / "tiny.gguf", "hybrid"), SETTINGS))
    talk(engine, "green")
    assert states(folder) == []
    engine.keep_chat()
    run(engine, GenerateRequest(raw_prompt="x", max_tokens=1))  # the queue came past it
    assert len(states(folder)) == 1


def test_a_deleted_chat_leaves_no_state(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path
) -> None:
    engine = made()
    model = write_tiny_model(tmp_path / "tiny.gguf", "hybrid")
    run(engine, load_request(model, SETTINGS))
    green, _ = talk(engine, "green"), talk(engine, "red")
    (of_green,) = states(folder)
    of_none = of_green.with_name("-".join(of_green.stem.split("-")[:2]) + "x.state")
    of_none.write_bytes(b"of a time when states named no chat")
    engine.forget_chat("green")
    engine.keep_chat()
    run(engine, GenerateRequest(raw_prompt="x", max_tokens=1))
    (of_red,) = states(folder)
    assert of_red not in (of_green, of_none)
    assert not of_green.with_suffix(".marks").exists()
    # The one in memory is forgotten too, wherever it would be written.
    engine.forget_chat("red")
    run(engine, None)
    assert states(folder) == []
    run(engine, load_request(model, SETTINGS))
    # A chat that was brought back is kept as ever.
    reply_to(engine, green.ask("And then?").begin_reply(), "green")
    run(engine, None)
    assert len(states(folder)) == 1


def test_a_chat_deleted_just_before_the_end(
    made: Callable[..., LlamaEngine], tmp_path: Path, folder: Path
) -> None:
    engine = made()
    run(engine, load_request(write_tiny_model(tmp_path / "tiny.gguf", "dense"), SETTINGS))
    talk(engine, "green")
    engine.keep_chat()
    run(engine, GenerateRequest(raw_prompt="x", max_tokens=1))
    assert len(states(folder)) == 1
    engine.forget_chat("green")
    engine.close()
    assert states(folder) == []
