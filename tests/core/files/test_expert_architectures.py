"""Which layers hold experts, told by tensors: every expert architecture of the pinned llama.cpp."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.known_architectures import KNOWN_ARCHITECTURES
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.memory.place_model import place
from tests.helpers.expert_layouts import (
    EXPERT_LAYOUTS,
    N_EXPERT,
    N_USED,
    ExpertLayout,
    expert_table_bytes,
    write_layout,
)
from tests.helpers.planned_models import gpu

_IDS = [f"{layout.arch}-{'.'.join(layout.blocks)}" for layout in EXPERT_LAYOUTS]


@pytest.mark.parametrize("layout", EXPERT_LAYOUTS, ids=_IDS)
def test_the_stops_are_the_blocks_with_expert_tensors(tmp_path: Path, layout: ExpertLayout) -> None:
    path = write_layout(tmp_path / "m.gguf", layout)
    facts = facts_of([read_header(path)])
    assert facts.role == layout.role
    assert facts.expert_layers == layout.expert_layers
    assert (facts.n_expert, facts.n_expert_used) == (N_EXPERT, N_USED)
    assert facts.expert_bytes == expert_table_bytes(layout)
    assert facts.n_layer_all == len(layout.blocks)
    assert facts.n_layer == sum("n" not in block for block in layout.blocks)
    assert not facts.unplaceable_experts
    # Nothing of the file is lost or counted twice.
    assert facts.loaded_bytes + facts.not_loaded_bytes == sum(
        tensor.n_bytes for tensor in facts.tensors
    )
    entry = entry_of(path)
    assert entry.problem == ""
    assert (entry.n_moe_layers, entry.n_layer) == (len(layout.expert_layers), facts.n_layer)
    assert (entry.n_expert, entry.n_expert_used) == (N_EXPERT, N_USED)


@pytest.mark.parametrize("layout", EXPERT_LAYOUTS, ids=_IDS)
def test_experts_without_any_key_are_found_all_the_same(
    tmp_path: Path, layout: ExpertLayout
) -> None:
    path = write_layout(tmp_path / "m.gguf", layout, keys_of_experts=False)
    facts = facts_of([read_header(path)])
    assert facts.expert_layers == layout.expert_layers
    assert facts.n_expert == N_EXPERT


@pytest.mark.parametrize("layout", EXPERT_LAYOUTS, ids=_IDS)
def test_half_of_the_stops_can_be_placed(tmp_path: Path, layout: ExpertLayout) -> None:
    facts = facts_of([read_header(write_layout(tmp_path / "m.gguf", layout))])
    stop = len(layout.expert_layers) // 2
    placement = place(facts, (gpu(8),), cpu_moe=stop)
    assert placement.cpu_expert_layers == layout.expert_layers[:stop]


def test_the_name_of_the_architecture_decides_nothing(tmp_path: Path) -> None:
    """A dense file that calls itself a MoE has no stops; experts under a dense name are some."""
    dense = ExpertLayout("qwen3moe", ("aD", "aD"))
    facts = facts_of([read_header(write_layout(tmp_path / "d.gguf", dense))])
    assert facts.expert_layers == ()
    assert facts.n_expert == 0
    experts = ExpertLayout("qwen2", ("aD", "aE"))
    facts = facts_of([read_header(write_layout(tmp_path / "e.gguf", experts))])
    assert facts.expert_layers == (1,)


def test_old_mixtral_has_experts_but_no_stops(tmp_path: Path) -> None:
    layout = ExpertLayout("llama", ("aX", "aX"))
    path = write_layout(tmp_path / "m.gguf", layout)
    facts = facts_of([read_header(path)])
    assert facts.expert_layers == ()
    assert facts.unplaceable_experts
    assert facts.n_expert == N_EXPERT
    entry = entry_of(path)
    assert "stores every expert as a tensor of its own" in entry.problem
    assert not entry.offered


def test_an_mtp_block_with_experts_is_no_stop_even_without_its_key(tmp_path: Path) -> None:
    layout = next(layout for layout in EXPERT_LAYOUTS if layout.arch == "glm4moe")
    silent = replace(layout, keys={"leading_dense_block_count": 1})
    facts = facts_of([read_header(write_layout(tmp_path / "m.gguf", silent))])
    assert facts.expert_layers == (1,)
    assert [layer.kind for layer in facts.layers] == ["attention", "attention", "mtp"]


def test_every_architecture_in_the_table_is_known() -> None:
    assert {layout.arch for layout in EXPERT_LAYOUTS} <= KNOWN_ARCHITECTURES
