"""Greedy drawing finds the token that llama.cpp's own sampler finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import GenerateRequest, Sampling
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.native import load_native
from moelauncher.engine.sampler import sample_function
from tests.helpers.engines import load_request, run
from tests.helpers.gguf_files import write_tiny_model


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LlamaEngine]:
    engine = LlamaEngine()
    run(engine, load_request(write_tiny_model(tmp_path / "tiny.gguf", "moe")))
    yield engine
    engine.close()


def text(engine: LlamaEngine, sampling: Sampling) -> str:
    request = GenerateRequest(
        raw_prompt="Once upon a time",
        sampling=sampling,
        max_tokens=40,
        ignore_end_of_generation=True,
    )
    return run(engine, request).text


def test_the_most_probable_token_is_that_of_the_chain(engine: LlamaEngine) -> None:
    greedy = text(engine, Sampling(temperature=0.0))
    assert greedy
    assert greedy == text(engine, Sampling(temperature=1.0, top_k=1, seed=1))


@pytest.mark.parametrize(
    ("sampling", "own"),
    [
        (Sampling(temperature=0.0), True),
        (Sampling(temperature=0.0, repeat_penalty=1.1), False),
        (Sampling(temperature=0.0, repeat_penalty=1.1, repeat_last_n=0), True),
        (Sampling(temperature=0.7), False),
    ],
)
def test_the_chain_is_used_where_more_is_wanted(sampling: Sampling, own: bool) -> None:
    native = load_native()
    assert (sample_function(native, sampling, 8) is not native.sample_at_once) is own
