"""The plan as JSON and as the terminal's table."""

from __future__ import annotations

import json

from moelauncher.core.library.catalog_entry import entry_as_json, entry_of_facts
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult, forecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.plan_document import context_warning, plan_document, plan_text
from tests.helpers.planned_models import GIB, gpu, made_facts, truth_facts

FACTS = truth_facts("gpt-oss-20b-mxfp4")
CONTEXT = ContextSettings(n_ctx=32768)


def _document(**more: object) -> dict[str, object]:
    placement = place(FACTS, [gpu(12, "RTX4070")], cpu_moe=5)
    result = forecast(FACTS, placement, CONTEXT, ram_free_bytes=32 * GIB)
    model = entry_as_json(entry_of_facts(FACTS))
    return plan_document(model, FACTS, placement, result, CONTEXT, **more)  # type: ignore[arg-type]


def test_the_keys_of_the_json() -> None:
    document = json.loads(json.dumps(_document()))
    assert list(document) == [
        "model",
        "placement",
        "devices",
        "fits",
        "spare_bytes",
        "text",
        "commands",
    ]
    assert list(document["placement"]) == [
        "cpu_moe",
        "of",
        "which",
        "layers",
        "tensor_split",
        "patterns",
    ]
    assert [list(device) for device in document["devices"]] == [
        [
            "name",
            "kind",
            "weights_bytes",
            "expert_bytes",
            "kv_bytes",
            "recurrent_bytes",
            "compute_bytes",
            "compute_source",
            "total_bytes",
            "free_bytes",
            "fits",
        ]
    ] * 2
    assert list(document["commands"]) == ["llama_server", "llama_bench"]


def test_the_values_of_the_json() -> None:
    document = _document()
    assert document["placement"]["layers"] == [0, 1, 2, 3, 4]  # type: ignore[index]
    card, ram = document["devices"]  # type: ignore[misc]
    assert (card["name"], card["kind"]) == ("RTX4070", "gpu")
    assert (ram["name"], ram["kind"]) == ("RAM", "cpu")
    for device in (card, ram):
        kinds = ("weights_bytes", "kv_bytes", "recurrent_bytes", "compute_bytes")
        assert device["total_bytes"] == sum(device[kind] for kind in kinds)
        assert device["expert_bytes"] <= device["weights_bytes"]
        assert device["compute_source"] == "estimate"
    assert card["free_bytes"] == 12 * GIB
    assert document["fits"] is True
    assert document["model"]["arch"] == "gpt-oss"  # type: ignore[index]
    assert _document(text="Better.")["text"] == "Better."


def test_the_terminals_table() -> None:
    placement = place(FACTS, [gpu(12, "RTX4070")], cpu_moe=5)
    failed = DryRunResult(problem="The dry run took more than 10 s.")
    context = ContextSettings(n_ctx=262144)
    result = forecast(FACTS, placement, context, ram_free_bytes=32 * GIB, dry_run=failed)
    lines = plan_text(FACTS, placement, result, context).splitlines()
    assert lines[0].startswith("gpt-oss-20b-mxfp4  gpt-oss")
    assert lines[1].startswith("Expert weights of 5 of 24 layers stay in RAM.")
    assert lines[2] == "Context 256k, KV cache f16, ubatch 512."
    assert "trained for 128k" in lines[3]
    table = [line for line in lines if line.startswith(("Device", "RTX4070", "RAM"))]
    assert len(table) == 3
    assert "~" in table[1]
    assert len({len(line) for line in table}) == 1
    assert result.text in lines
    assert "The dry run took more than 10 s." in lines
    assert lines[-3] == "The same in llama.cpp's own programs:"
    assert lines[-2].startswith("llama-server -m ")
    assert lines[-1].startswith("llama-bench -m ")


def test_the_terminals_sentence_for_a_dense_model() -> None:
    facts = made_facts([(GIB, 0)] * 4)
    placement = place(facts, [gpu(12)], cpu_moe=0, n_gpu_layers=2)
    result = forecast(facts, placement, CONTEXT)
    assert "2 of 5 layers are on the GPU" in plan_text(facts, placement, result, CONTEXT)


def test_a_context_beyond_the_training_is_warned_of() -> None:
    facts = made_facts([(GIB, 0)], ctx_train=4096)
    assert context_warning(facts, 4096) == ""
    assert "trained for 4k tokens" in context_warning(facts, 8192)
    assert context_warning(made_facts([(GIB, 0)]), 1 << 20) == ""
