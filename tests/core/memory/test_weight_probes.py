"""Which weights a GPU is asked about, and what the forecast makes of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.memory.auto_placement import Machine, forecast_on
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.memory.weight_probes import (
    MUL_MAT,
    MUL_MAT_ID,
    SSM_CONV,
    SSM_SCAN,
    WeightProbe,
    weight_probes,
)
from tests.helpers.gguf_files import write_tiny_model

CONTEXT = ContextSettings(n_ctx=512)


def _facts(tmp_path: Path, kind: str) -> ModelFacts:
    return facts_of([read_header(write_tiny_model(tmp_path / f"{kind}.gguf", kind))])


def _asked(facts: ModelFacts, operation: str) -> set[str]:
    return {
        name
        for probe, names in weight_probes(facts).items()
        if probe.operation == operation
        for name in names
    }


def test_one_question_stands_for_all_tensors_of_a_kind(tmp_path: Path) -> None:
    facts = _facts(tmp_path, "moe")
    probes = weight_probes(facts)
    assert len(probes) < len(facts.tensors) / 3
    assert "blk.3.ffn_down_exps.weight" in _asked(facts, MUL_MAT_ID)
    assert {"output.weight", "blk.0.attn_q.weight"} <= _asked(facts, MUL_MAT)
    asked = {name for names in probes.values() for name in names}
    assert not any("norm" in name or name.startswith("token_embd") for name in asked)
    assert all(probe.n_used == facts.n_expert_used for probe in probes if probe.n_used)


def test_a_tied_matrix_is_asked_about_as_the_output_layers(tmp_path: Path) -> None:
    assert "token_embd.weight" in _asked(_facts(tmp_path, "tied"), MUL_MAT)


def test_scans_are_asked_about_where_there_are_any(tmp_path: Path) -> None:
    mamba = _facts(tmp_path, "mamba")
    assert any(name.endswith("ssm_a") for name in _asked(mamba, SSM_SCAN))
    assert any("ssm_conv1d" in name for name in _asked(mamba, SSM_CONV))
    (scan,) = (probe for probe in weight_probes(mamba) if probe.operation == SSM_SCAN)
    assert scan.n_state and scan.n_inner
    # Delta nets only multiply by theirs.
    assert not _asked(_facts(tmp_path, "hybrid"), SSM_SCAN)


def _refused(facts: ModelFacts, name: str) -> dict[str, frozenset[WeightProbe]]:
    (probe,) = (probe for probe, names in weight_probes(facts).items() if name in names)
    return {"Vulkan0": frozenset({probe})}


@pytest.mark.parametrize("stop", [0, 2, 4])
def test_refused_experts_stay_in_ram_at_every_stop(tmp_path: Path, stop: int) -> None:
    facts = _facts(tmp_path, "moe")
    placement = place(facts, [PlacementDevice("Vulkan0", 1 << 30)], cpu_moe=stop)
    refused = _refused(facts, "blk.0.ffn_down_exps.weight")
    ((_, names),) = (
        (probe, names)
        for probe, names in weight_probes(facts).items()
        if probe in refused["Vulkan0"]
    )
    on_gpu = {block for block in range(4) if block not in placement.cpu_expert_layers}
    moved = sum(
        tensor.n_bytes
        for tensor in facts.tensors
        if tensor.name in names and int(tensor.name.split(".")[1]) in on_gpu
    )
    machine = Machine(placement.devices, refused_weights=refused)
    whole, kept = (
        forecast(facts, placement, CONTEXT),
        forecast_on(facts, placement, CONTEXT, machine),
    )
    assert kept.gpus[0].expert_bytes == whole.gpus[0].expert_bytes - moved
    assert kept.ram.expert_bytes == whole.ram.expert_bytes + moved
    assert kept.gpus[0].dense_bytes == whole.gpus[0].dense_bytes


def test_a_refused_tied_output_reads_the_embedding_in_ram(tmp_path: Path) -> None:
    facts = _facts(tmp_path, "tied")
    placement = place(facts, [PlacementDevice("Vulkan0", 1 << 30)], cpu_moe=0)
    refused = _refused(facts, "token_embd.weight")
    whole = forecast(facts, placement, CONTEXT)
    kept = forecast(facts, placement, CONTEXT, refused_weights=refused)
    assert kept.gpus[0].dense_bytes < whole.gpus[0].dense_bytes
    assert kept.ram.dense_bytes == whole.ram.dense_bytes


def test_pretended_gpus_and_other_devices_refuse_nothing(tmp_path: Path) -> None:
    facts = _facts(tmp_path, "moe")
    refused = _refused(facts, "output.weight")
    for device in (
        PlacementDevice("Vulkan0", 1 << 30, pretended=True),
        PlacementDevice("Vulkan1", 1 << 30),
    ):
        placement = place(facts, [device], cpu_moe=0)
        whole = forecast(facts, placement, CONTEXT)
        assert forecast(facts, placement, CONTEXT, refused_weights=refused) == whole
