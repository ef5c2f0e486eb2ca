"""The engine's end is not held up for ever by a file on a drive that is gone."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.place_model import place
from moelauncher.engine import llama_engine
from moelauncher.engine.llama_engine import ENGINE_THREAD, LlamaEngine
from tests.helpers.gguf_files import write_tiny_model


def test_a_load_that_hangs_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", "moe")
    placement = place(facts_of([read_header(path)]), [], cpu_moe=0)
    drive, begun = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def hang(request: LoadRequest, cancelled: object) -> None:
        threads.append(threading.current_thread())
        begun.set()
        drive.wait(60)

    monkeypatch.setattr(llama_engine, "CLOSE_LIMIT_S", 0.05)
    engine = LlamaEngine(accept=hang)
    engine.load(LoadRequest(path, placement, ContextSettings(n_ctx=256)))
    assert begun.wait(30)
    with caplog.at_level(logging.WARNING):
        engine.close()
    assert "left behind" in caplog.text
    thread = threads[0]
    assert thread.name == ENGINE_THREAD and thread.daemon and thread.is_alive()
    # It comes back after all, and loads nothing any more.
    drive.set()
    thread.join(60)
    assert not thread.is_alive()
    engine.close()
