"""The slider as a number line."""

from __future__ import annotations

from moelauncher.core.memory.slider import expert_slider
from tests.helpers.planned_models import MIB, gpu, made_facts, truth_facts


def test_stops_and_sentences_of_a_mixture_of_experts() -> None:
    slider = expert_slider(truth_facts("qwen3.5-35b-a3b-20.61gib"), [gpu(12)])
    assert (slider.last, slider.disabled_reason, slider.dense) == (40, "", False)
    assert slider.label(30) == (
        "Expert weights of 30 of 40 layers stay in RAM."
        " Attention, shared weights and KV cache stay on the GPU."
    )
    assert slider.label(0).startswith("Everything is on the GPU")
    assert "all 40 expert layers" in slider.label(40)
    assert slider.label(99) == slider.label(40)
    assert [slider.clamp(stop) for stop in (-3, 7, 41)] == [0, 7, 40]


def test_leading_dense_blocks_are_no_stops() -> None:
    assert expert_slider(made_facts([(MIB, 0)] * 3 + [(MIB, MIB)] * 58), [gpu(8)]).last == 58


def test_a_dense_model_says_why_and_offers_its_layers() -> None:
    slider = expert_slider(made_facts([(MIB, 0)] * 4), [gpu(8)])
    assert "dense" in slider.disabled_reason
    assert slider.label(0) == slider.disabled_reason
    assert (slider.dense, slider.gpu_layers) == (True, 5)
    assert slider.gpu_layers_label(5).startswith("All layers and the KV cache are on the GPU")
    assert slider.gpu_layers_label(3).startswith("3 of 5 layers are on the GPU")
    assert slider.gpu_layers_label(0).startswith("All layers are in RAM")


def test_old_files_with_one_tensor_an_expert() -> None:
    slider = expert_slider(made_facts([(MIB, MIB)] * 4, unplaceable_experts=True), [gpu(8)])
    assert slider.last == 0
    assert slider.disabled_reason
    assert slider.dense


def test_without_a_gpu_there_is_nothing_to_place() -> None:
    slider = expert_slider(made_facts([(MIB, MIB)] * 4), [])
    assert slider.last == 4
    assert "no GPU" in slider.disabled_reason
    assert not slider.dense
