"""The machine sleeps in the middle of a reply, and wakes with or without its GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import ChatKept, Finished, GenerationStats, TokenEvent
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import SessionState
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

STOPPED = GenerationStats("stopped", 5, 0, 9, 100.0, 30.0, 0.1, 1.0, 14)


class Source:
    """A machine whose lid the test opens and closes."""

    def __init__(self) -> None:
        self.sleep: Callable[[], None] = lambda: None
        self.wake: Callable[[], None] = lambda: None
        self.n_ready = 0
        self.closed = False

    def start(self, on_sleep: Callable[[], None], on_wake: Callable[[], None]) -> bool:
        self.sleep, self.wake = on_sleep, on_wake
        return True

    def ready(self) -> None:
        self.n_ready += 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, source: Source) -> Iterator[ScriptedWindow]:
    """A loaded model in the middle of a reply."""
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.session.sleep.listen(source)
    made.launch()
    made.session.send("Tell me a story.")
    made.engine.say(TokenEvent(0, "Once ", "", 1, 0.0))
    made.wait(lambda: made.session.state is SessionState.GENERATING)
    yield made
    made.close()
    assert source.closed


def fall_asleep(driver: ScriptedWindow, source: Source) -> None:
    source.sleep()
    driver.wait(lambda: driver.engine.stops == 1)
    assert source.n_ready == 0
    driver.engine.say(Finished(0, STOPPED))
    driver.wait(lambda: driver.engine.kept_chats == 1)
    assert source.n_ready == 0
    driver.engine.say(ChatKept(0), request=10_001)
    driver.wait(lambda: source.n_ready == 1)


def test_reply_pauses_its_state_is_kept_and_it_goes_on(
    driver: ScriptedWindow, source: Source
) -> None:
    fall_asleep(driver, source)
    assert driver.session.state is SessionState.READY
    source.wake()
    driver.wait(lambda: len(driver.engine.replies) == 2)
    goes_on = driver.engine.replies[-1]
    assert goes_on.continues and goes_on.messages[-1].content == "Once "
    assert "goes on" in driver.window.status.message.text()


@pytest.mark.parametrize("failing", [False, True])
def test_gpu_that_did_not_wake_is_said_and_not_touched(
    driver: ScriptedWindow, source: Source, qtbot: QtBot, failing: bool
) -> None:
    def crashed() -> list[object]:
        raise LauncherError("llama.cpp crashed while it started.")

    driver.awake = crashed if failing else list  # type: ignore[assignment]
    fall_asleep(driver, source)
    source.wake()
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    assert "did not come back after the sleep" in driver.window.status.message.text()
    # Freeing what is gone may end the process.
    assert driver.engine.unloads == 0 and len(driver.engine.replies) == 1
    assert driver.session.chat.conversation.path[-1].turn.text == "Once "
    with qtbot.waitSignal(driver.session.sleep.restart_requested):
        driver.window.status.offer.click()


def test_sleep_at_rest_keeps_the_chat_and_wakes_quietly(
    driver: ScriptedWindow, source: Source
) -> None:
    driver.engine.say(Finished(0, STOPPED))
    driver.wait(lambda: driver.session.state is SessionState.READY)
    source.sleep()
    driver.wait(lambda: driver.engine.kept_chats == 1)
    assert driver.engine.stops == 0
    driver.engine.say(ChatKept(0), request=10_001)
    driver.wait(lambda: source.n_ready == 1)
    source.wake()
    driver.wait(lambda: not driver.window.status.message.text())
    assert len(driver.engine.replies) == 1


def test_user_who_went_on_meanwhile_is_not_disturbed(
    driver: ScriptedWindow, source: Source
) -> None:
    fall_asleep(driver, source)
    driver.session.send("Another question.")
    assert len(driver.engine.replies) == 2
    source.wake()
    driver.wait(lambda: not driver.window.status.message.text())
    assert len(driver.engine.replies) == 2


def test_without_a_model_the_machine_need_not_wait(qtbot: QtBot, tmp_path: Path) -> None:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    source = Source()
    made.session.sleep.listen(source)
    source.sleep()
    made.wait(lambda: source.n_ready == 1)
    source.wake()
    made.close()
    assert made.engine.kept_chats == 0
