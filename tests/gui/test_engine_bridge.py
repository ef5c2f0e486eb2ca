"""The engine's events come by a clock, and none after the end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pytestqt.qtbot import QtBot

from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.gui.engine_bridge import EngineBridge


def test_a_call_that_was_queued_before_the_end_brings_nothing(qtbot: QtBot) -> None:
    heard: list[object] = []
    called = threading.Event()

    def make(notify: Callable[[], None]) -> LlamaEngine:
        def tell() -> None:
            notify()
            called.set()

        return LlamaEngine(tell)

    bridge = EngineBridge(make)
    bridge.events.connect(heard.append)
    bridge.engine.unload()
    # The engine has called; the window's thread has not looked yet.
    assert called.wait(30)
    bridge.close()
    qtbot.wait(1)
    assert heard == []
    assert not bridge._clock.isActive()
    bridge.deleteLater()
