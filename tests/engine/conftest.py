"""Engines that are closed after their test, and attention that rounds little."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moelauncher.engine import load_model
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import load_request, run, smollm2_path


@pytest.fixture
def engine() -> Iterator[LlamaEngine]:
    """An engine with nothing loaded."""
    made = LlamaEngine()
    yield made
    made.close()


@pytest.fixture
def smollm2(engine: LlamaEngine) -> LlamaEngine:
    """The same engine with SmolLM2 loaded on the CPU, 1024 tokens of context."""
    assert run(engine, load_request(smollm2_path())).report.mismatches == ()
    return engine


@pytest.fixture
def exact_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flash attention adds up in half precision on the CPU: that is 50 times as much rounding."""
    monkeypatch.setattr(load_model, "_FLASH_AUTO", load_model._FLASH_OFF)
