"""KV cache and state by formula, against what llama.cpp says in a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.kv_cache import kv_bytes, recurrent_bytes_per_layer
from moelauncher.core.memory.placement import RAM
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import dry_run
from tests.helpers.engines import cpu_placement
from tests.helpers.gguf_files import RUNNABLE_KINDS, write_tiny_model
from tests.helpers.truth_models import TRUTH_MODELS, write_truth_model

#: The log has two decimals of a MiB: half of the last one a line, two lines with windows.
ROUNDING_BYTES = 2 * round(0.005 * (1 << 20)) + 2
CONTEXTS = (
    ContextSettings(n_ctx=512, n_ubatch=64, n_threads=1),
    ContextSettings(n_ctx=1500, n_ubatch=32, kv_type="q8_0", n_threads=1),
)


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child()
    yield made
    made.close()


def _facts(path: Path) -> ModelFacts:
    return facts_of([read_header(path)])


@pytest.mark.parametrize("kind", RUNNABLE_KINDS)
def test_the_formula_says_what_llama_cpp_says(child: Child, tmp_path: Path, kind: str) -> None:
    path = write_tiny_model(tmp_path / f"{kind}.gguf", kind)
    facts = _facts(path)
    for context in CONTEXTS:
        said = dry_run(child, path, cpu_placement(facts.n_layer_all), context)
        kv = said.kv_bytes.get(RAM, 0)
        state = said.recurrent_bytes.get(RAM, 0)
        assert abs(kv_bytes(facts, context) - kv) <= ROUNDING_BYTES
        assert abs(sum(recurrent_bytes_per_layer(facts)) - state) <= ROUNDING_BYTES


@pytest.mark.parametrize("name", TRUTH_MODELS)
def test_published_models_in_a_dry_run(child: Child, tmp_path: Path, name: str) -> None:
    path = write_truth_model(tmp_path, name)
    facts = _facts(path)
    context = ContextSettings(n_ctx=32768, kv_type="q8_0", n_threads=1)
    said = dry_run(child, path, cpu_placement(facts.n_layer_all), context)
    assert abs(kv_bytes(facts, context) - said.kv_bytes[RAM]) <= ROUNDING_BYTES
    state = said.recurrent_bytes.get(RAM, 0)
    assert abs(sum(recurrent_bytes_per_layer(facts)) - state) <= ROUNDING_BYTES
