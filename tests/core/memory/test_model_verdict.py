"""The line in a row: published models on machines that they fit, and that they do not."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.model_verdict import verdict_of
from tests.helpers.planned_models import GIB, MIB, gpu, made_facts, truth_facts

CONTEXT = ContextSettings(n_ctx=4096)


def machine(vram_gib: float | None, ram_gib: float | None) -> Machine:
    ram = None if ram_gib is None else round(ram_gib * GIB)
    gpus = () if vram_gib is None else (gpu(vram_gib),)
    return Machine(gpus=gpus, ram_free_bytes=ram, ram_total_bytes=ram)


@pytest.mark.parametrize(
    ("vram", "ram", "kind", "level", "text"),
    [
        (24, 32, "gpu", "good", "fits on the GPU"),
        (8, 32, "split", "good", "fits with {n} layers on the CPU"),
        (8, 4, "disk", "warn", "from disk: RAM "),
        (0.5, 32, "no", "bad", "will not run here"),
        (None, 32, "cpu", "good", "fits in RAM, runs on the CPU"),
        (None, 4, "disk", "warn", "from disk: RAM "),
        (None, None, "cpu", "good", "fits in RAM, runs on the CPU"),
    ],
)
def test_gpt_oss_on_machines_of_several_sizes(
    vram: float | None, ram: float | None, kind: str, level: str, text: str
) -> None:
    verdict = verdict_of(truth_facts("gpt-oss-20b-mxfp4"), machine(vram, ram), CONTEXT)
    assert (verdict.kind, verdict.level) == (kind, level)
    n_away = sum(word.isdigit() for word in verdict.text.split())
    if "{n}" in text:
        assert n_away == 1
        n = next(word for word in verdict.text.split() if word.isdigit())
        assert verdict.text == text.format(n=n)
        assert 0 < int(n) < 24
    else:
        assert verdict.text.startswith(text)


def test_a_larger_context_moves_more_layers_away() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")

    def n_away(n_ctx: int) -> int:
        text = verdict_of(facts, machine(12, 64), ContextSettings(n_ctx=n_ctx)).text
        return int(next(word for word in text.split() if word.isdigit()))

    assert n_away(32768) > n_away(4096)


def test_a_context_beyond_the_model_s_own_is_judged_at_its_own() -> None:
    facts = made_facts([(MIB, 10 * MIB)] * 4, ctx_train=2048)
    assert verdict_of(facts, machine(8, 8), ContextSettings(n_ctx=1 << 30)).kind == "gpu"


def test_too_large_a_context_says_what_would_fit() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    verdict = verdict_of(facts, machine(2.5, 64), ContextSettings(n_ctx=40960))
    assert verdict.kind == "no"
    assert "up to" in verdict.text


def test_a_dense_model_counts_layers() -> None:
    facts = made_facts([(500 * MIB, 0)] * 10)
    verdict = verdict_of(facts, machine(4, 64), CONTEXT)
    assert verdict.kind == "split"
    assert verdict.text.endswith("on the CPU")
    assert verdict_of(facts, machine(16, 64), CONTEXT).text == "fits on the GPU"


def test_what_must_be_held_in_ram_cannot_stream() -> None:
    keys = {
        "attention.head_count": 32,
        "attention.head_count_kv": 32,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "block_count": 4,
    }
    facts = made_facts([(MIB, 0)] * 4, keys=keys, ctx_train=1 << 20)
    verdict = verdict_of(facts, machine(None, 1), ContextSettings(n_ctx=1 << 20))
    assert (verdict.kind, verdict.level) == ("no", "bad")
    assert verdict.text.startswith("will not run here: RAM ")
