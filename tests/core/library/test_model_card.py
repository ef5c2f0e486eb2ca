"""The card says what is known of a model, in figures that the published ones have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import SkippedArray, read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.model_card import card_of, kv_bytes_per_1k, value_text
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from tests.helpers.gguf_files import TINY_KINDS, write_tiny_model
from tests.helpers.planned_models import GIB, gpu, truth_facts

MACHINE = Machine(gpus=(gpu(8),), ram_free_bytes=32 * GIB, ram_total_bytes=32 * GIB)
CONTEXT = ContextSettings(n_ctx=4096)


def test_a_published_model_s_card() -> None:
    card = card_of(truth_facts("qwen3-30b-a3b-q4_k_m"), MACHINE, CONTEXT)
    rows = dict(card.summary)
    assert rows["Architecture"] == "qwen3moe"
    assert rows["Parameters"] == "30.5B, 3.0B active for each token"
    assert rows["Experts"] == "128 in a layer, 8 used for each token, in 48 of 48 layers"
    assert rows["Layers"] == "48 attention"
    # 48 layers x 4 heads x 128 x 2 (K and V) x 2 bytes x 1024 tokens.
    assert kv_bytes_per_1k(truth_facts("qwen3-30b-a3b-q4_k_m")) == 48 * 4 * 128 * 2 * 2 * 1024
    assert rows["KV cache"] == "96 MiB for 1k tokens (f16)"
    here = dict(card.here)
    label, text = card.here[0]
    assert label.startswith("At Auto, ")
    assert text.startswith("fits with ")
    assert " free" in here["RTX"]
    assert here["Read for each token"].count("of ") == 2
    assert here["Read for each token"].endswith("KiB cross the bus")
    assert here["Speed"].startswith("not measured here yet")
    labels = {"RTX": "RTX 4070"}
    named = card_of(truth_facts("qwen3-30b-a3b-q4_k_m"), MACHINE, CONTEXT, device_labels=labels)
    assert dict(named.here)["RTX 4070"] == here["RTX"]


def test_a_sliding_window_takes_nothing_for_more_context() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    # C1's log: 3072 MiB at 131072 for the 12 layers that see everything.
    assert kv_bytes_per_1k(facts) == 3072 * (1 << 20) // 128


def test_a_hybrid_with_mtp_names_all_its_layers(tmp_path: Path) -> None:
    facts = facts_of([read_header(write_tiny_model(tmp_path / "m.gguf", "mtp"))])
    rows = dict(card_of(facts).summary)
    assert rows["Layers"] == "1 attention, 3 recurrent, 1 MTP (not loaded)"
    assert "a shared one" in rows["Experts"]
    assert "State" in rows and "Not loaded" in rows


@pytest.mark.parametrize("kind", TINY_KINDS)
def test_every_byte_is_in_the_type_table(tmp_path: Path, kind: str) -> None:
    facts = facts_of([read_header(write_tiny_model(tmp_path / "m.gguf", kind))])
    card = card_of(facts, MACHINE, CONTEXT)
    n_bytes = sum(tensor.n_bytes for tensor in facts.tensors)
    assert sum(share.n_bytes for share in card.types) == n_bytes
    assert sum(share.n_tensors for share in card.types) == len(facts.tensors)
    assert [share.n_bytes for share in card.types] == sorted(
        (share.n_bytes for share in card.types), reverse=True
    )
    assert len(card.layers) == facts.n_layer_all
    if not facts.unplaceable_experts:
        experts = sum(share.n_expert_bytes for share in card.types)
        assert experts == sum(layer.expert_bytes for layer in card.layers)


def test_what_the_file_says_of_its_makers(tmp_path: Path) -> None:
    metadata = {
        "general.license": "apache-2.0",
        "general.base_model.0.name": "Base",
        "general.base_model.0.organization": "Makers",
        "general.base_model.1.name": "Other",
        "general.quantized_by": "someone\n<b>bold</b>",
    }
    path = write_tiny_model(tmp_path / "m.gguf", "dense", metadata=metadata)
    card = card_of(facts_of([read_header(path)]))
    rows = dict(card.summary)
    assert rows["Licence"] == "apache-2.0"
    assert rows["Base model"] == "Makers / Base, Other"
    assert rows["Quantised by"] == "someone <b>bold</b>"
    assert rows["Experts"] == "none: a dense model"
    assert card.here == () and card.verdict is None
    assert "{% for m in messages %}" in card.template
    found = dict(card.metadata)
    assert found["general.license"] == "apache-2.0"
    assert found["tokenizer.ggml.tokens"].endswith(" values")
    assert all("\n" not in value for value in found.values())


def test_values_are_shown_on_one_line() -> None:
    assert value_text(True) == "true"
    assert value_text(0.1) == "0.1"
    assert value_text(SkippedArray(8, 151936)) == "151,936 values"
    assert value_text(tuple(range(100))).endswith("11, … (100 values)")
    assert len(value_text("x" * 100_000)) == 160


def test_keys_of_other_types_break_nothing() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    odd = {**facts.metadata, "general.license": 5, "general.base_model.0.name": (1, 2)}
    rows = dict(card_of(replace(facts, metadata=odd)).summary)
    assert "Licence" not in rows and "Base model" not in rows
