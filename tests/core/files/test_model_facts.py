"""Facts of tiny models of every layout, and of published models against their load logs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import GgufHeader, TensorInfo, read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from tests.helpers.gguf_files import RUNNABLE_KINDS, TINY_KINDS, write_tiny_model
from tests.helpers.truth_models import MIB, PUBLISHED, TRUTH_MODELS, write_truth_model


@pytest.fixture(scope="session")
def truth_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("truth")


def _tiny(folder: Path, kind: str, **overrides: object) -> ModelFacts:
    return facts_of([read_header(write_tiny_model(folder / f"{kind}.gguf", kind, **overrides))])


def _truth(folder: Path, name: str) -> ModelFacts:
    return facts_of([read_header(write_truth_model(folder, name))])


def _embedding_bytes(facts: ModelFacts) -> int:
    return next(t.n_bytes for t in facts.tensors if t.name == "token_embd.weight")


def _header(
    tensors: dict[str, tuple[int, ...]], arch: str = "llama", **metadata: object
) -> GgufHeader:
    """A header with float tensors of these shapes; metadata keys without the architecture."""
    rows, offset = [], 0
    for name, shape in tensors.items():
        n_elements = 1
        for size in shape:
            n_elements *= size
        rows.append(TensorInfo(name, shape, 0, offset, 4 * n_elements, n_elements))
        offset += 4 * n_elements
    values: dict[str, object] = {"general.architecture": arch}
    for key, value in metadata.items():
        name = key.replace("__", ".")
        values[name if "." in name else f"{arch}.{name}"] = value
    return GgufHeader(
        Path("some-model.gguf"), 3, "little", values, tuple(rows), 32, 4096, 4096 + offset
    )


@pytest.mark.parametrize("kind", TINY_KINDS)
def test_every_byte_of_the_tensor_table_is_somewhere(tmp_path: Path, kind: str) -> None:
    facts = _tiny(tmp_path, kind)
    copies = _embedding_bytes(facts) if facts.tied_output else 0
    n_bytes = sum(tensor.n_bytes for tensor in facts.tensors)
    assert facts.loaded_bytes + facts.not_loaded_bytes == n_bytes + copies


@pytest.mark.parametrize("kind", RUNNABLE_KINDS)
def test_experts_are_what_llama_cpps_own_pattern_takes(tmp_path: Path, kind: str) -> None:
    facts = _tiny(tmp_path, kind)
    for layer in facts.layers:
        pattern = re.compile(rf"blk\.{layer.index}\.ffn_(up|down|gate|gate_up)_(ch|)exps")
        taken = sum(t.n_bytes for t in facts.tensors if pattern.search(t.name))
        assert layer.expert_bytes == taken


@pytest.mark.parametrize(
    ("kind", "stops", "n_layer", "n_layer_all"),
    [
        ("dense", (), 4, 4),
        ("moe", (0, 1, 2, 3), 4, 4),
        ("llama-moe", (0, 1, 2, 3), 4, 4),
        ("fused", (0, 1, 2, 3), 4, 4),
        ("mtp", (0, 1, 2, 3), 4, 5),
        ("shared", (1, 2, 3), 4, 5),
        ("mla", (1, 2, 3), 4, 4),
        ("sliding", (0, 1, 2, 3), 4, 4),
        ("hybrid", (1, 2, 3), 4, 4),
        ("chunked", (0, 1, 2, 3), 4, 4),
        ("interleaved", (1, 3), 4, 4),
        ("old-mixtral", (), 4, 4),
    ],
)
def test_stops_are_the_loaded_layers_with_experts(
    tmp_path: Path, kind: str, stops: tuple[int, ...], n_layer: int, n_layer_all: int
) -> None:
    facts = _tiny(tmp_path, kind)
    assert facts.expert_layers == stops
    assert (facts.n_layer, facts.n_layer_all) == (n_layer, n_layer_all)


def test_mtp_blocks_are_known_and_not_loaded(tmp_path: Path) -> None:
    facts = _tiny(tmp_path, "mtp")
    last = facts.layers[-1]
    assert (last.kind, last.loaded, last.holds_experts) == ("mtp", False, False)
    assert facts.not_loaded_bytes == last.expert_bytes + last.dense_bytes > 0
    without = _tiny(tmp_path, "fused")
    assert facts.loaded_bytes == without.loaded_bytes
    assert facts.n_active_params == without.n_active_params


def test_mtp_tensors_are_recognised_without_the_key() -> None:
    facts = facts_of(
        [
            _header(
                {
                    "blk.0.attn_output.weight": (32, 32),
                    "blk.1.attn_output.weight": (32, 32),
                    "blk.1.nextn.eh_proj.weight": (64, 32),
                },
                block_count=2,
            )
        ]
    )
    assert [layer.kind for layer in facts.layers] == ["attention", "mtp"]
    assert facts.not_loaded_bytes == 4 * (32 * 32 + 64 * 32)


def test_the_mtp_key_alone_takes_no_block_from_deepseek4() -> None:
    """llama.cpp looks for the block's own tensors before it believes the key, there only."""
    tensors = {f"blk.{i}.attn_output.weight": (32, 32) for i in range(2)}
    for arch, n_layer in (("deepseek4", 2), ("glm4moe", 1)):
        facts = facts_of([_header(tensors, arch, block_count=2, nextn_predict_layers=1)])
        assert facts.n_layer == n_layer


def test_blocks_that_llama_cpp_adds_are_counted() -> None:
    looped = facts_of([_header({}, "nanbeige", block_count=4, num_loops=2)])
    assert looped.n_layer_all == 8
    routed = facts_of([_header({}, "graniteswitch", block_count=4)])
    assert routed.n_layer_all == 5


def test_old_mixtral_is_said_to_be_unplaceable(tmp_path: Path) -> None:
    facts = _tiny(tmp_path, "old-mixtral")
    assert facts.unplaceable_experts
    assert facts.n_expert == 8
    assert facts.expert_bytes == 0
    # The active parameters are those of the same model in one piece.
    assert facts.n_active_params == _tiny(tmp_path, "llama-moe").n_active_params


def test_recurrent_layers_are_told_by_their_tensors(tmp_path: Path) -> None:
    kinds = [layer.kind for layer in _tiny(tmp_path, "fused").layers]
    assert kinds == ["recurrent", "recurrent", "recurrent", "attention"]
    for hybrid in ("hybrid", "mamba"):
        layers = _tiny(tmp_path, hybrid).layers
        assert [layer.kind for layer in layers] == ["recurrent", "attention"] * 2


def test_a_block_may_attend_and_keep_a_state() -> None:
    tensors = {"blk.0.attn_output.weight": (8, 8), "blk.0.ssm_in.weight": (8, 8)}
    (layer,) = facts_of([_header(tensors, "falcon-h1", block_count=1)]).layers
    assert layer.kind == "attention"


def test_tied_output_is_a_second_copy(tmp_path: Path) -> None:
    tied, untied = _tiny(tmp_path, "tied"), _tiny(tmp_path, "dense")
    assert tied.tied_output and not untied.tied_output
    assert tied.output_bytes == untied.output_bytes
    assert tied.loaded_bytes == untied.loaded_bytes
    # The output matrix takes part in every token, whichever tensor it is.
    assert tied.n_active_params == untied.n_active_params


def test_codeshell_without_an_embedding_copies_its_output_matrix() -> None:
    output, embedding = {"output.weight": (8, 100)}, {"token_embd.weight": (8, 100)}
    alone = facts_of([_header(output, "codeshell", block_count=1)])
    both = facts_of([_header({**output, **embedding}, "codeshell", block_count=1)])
    assert alone.output_bytes == 2 * both.output_bytes
    assert alone.loaded_bytes == both.loaded_bytes
    assert alone.token_embd_bytes == 0


def test_an_encoder_without_output_is_not_tied() -> None:
    facts = facts_of([_header({"token_embd.weight": (8, 100)}, "bert", block_count=1)])
    assert not facts.tied_output
    assert (facts.output_bytes, facts.n_active_params, facts.role) == (0, 0, "embedding")


def test_the_rope_factors_belong_to_no_layer(tmp_path: Path) -> None:
    facts = _tiny(tmp_path, "dense")
    assert facts.rope_bytes == 4 * 16


def test_tensors_without_a_number_lie_where_llama_cpp_puts_them() -> None:
    tensors = {"token_embd_norm.weight": (10,), "blk.0.attn_output.weight": (8, 8)}
    bert = facts_of([_header(tensors, "bert", block_count=1)])
    assert (bert.layers[0].dense_bytes, bert.output_bytes) == (4 * 74, 0)
    lfm2 = facts_of([_header(tensors, "lfm2", block_count=1)])
    assert (lfm2.layers[0].dense_bytes, lfm2.output_bytes) == (4 * 64, 4 * 10)


def test_per_layer_arrays_are_read_per_layer() -> None:
    tensors = {f"blk.{i}.ffn_up_exps.weight": (4, 4, 8) for i in range(2)}
    facts = facts_of([_header(tensors, expert_used_count=(2, 4), block_count=2)])
    assert (facts.n_expert, facts.n_expert_used) == (8, 4)
    assert facts.n_active_params == 128 * 2 // 8 + 128 * 4 // 8


def test_names_hashes_and_paths_are_no_names(tmp_path: Path) -> None:
    for poor in ("47b6801b24d15ff9bcd8c96dfaea0be9ed3a0301", "D:\\models\\x", "/home/x", "  "):
        facts = facts_of([_header({}, general__name=poor)])
        assert facts.name == "some-model"
    assert facts_of([_header({}, general__name=" Owner/Model 7B ")]).name == "Model 7B"


@pytest.mark.parametrize(
    ("role", "header"),
    [
        ("vocab", _header({})),
        ("mmproj", _header({"v.blk.0.ln1.weight": (8,)}, "clip")),
        ("lora", _header({"a": (8,)}, general__type="adapter", adapter__type="lora")),
        ("imatrix", _header({"a": (8,)}, general__type="imatrix")),
        ("embedding", _header({"a": (8,)}, "nomic-bert")),
        ("embedding", _header({"a": (8,)}, "qwen3", pooling_type=3)),
        ("reranker", _header({"a": (8,)}, "qwen3", pooling_type=4)),
        ("diffusion", _header({"a": (8,)}, "llada-moe")),
        ("diffusion", _header({"a": (8,)}, "flux")),
        ("draft", _header({"a": (8,)}, "eagle3")),
        ("draft", _header({"blk.2.a": (8,)}, "glm4moe", block_count=3, nextn_predict_layers=1)),
        ("other", _header({"a": (8,)}, "wavtokenizer-dec")),
        ("chat", _header({"a": (8,)}, "qwen3")),
    ],
)
def test_roles(role: str, header: GgufHeader) -> None:
    assert facts_of([header]).role == role


def test_the_label_follows_the_tensors_where_the_files_is_wrong(tmp_path: Path) -> None:
    label = {"general.file_type": 15}
    assert _tiny(tmp_path, "moe", metadata=label).quant == "Q4_K_M"
    assert _tiny(tmp_path, "moe").quant == "Q8_0"
    assert _tiny(tmp_path, "moe", metadata={"general.file_type": 1}).quant == "Q8_0"
    assert _tiny(tmp_path, "moe", metadata={"general.file_type": 99}).quant == "Q8_0"


def test_an_absurd_layer_count_is_refused() -> None:
    with pytest.raises(LauncherError, match="claims 4294967295 layers"):
        facts_of([_header({}, block_count=0xFFFFFFFF)])


def test_blocks_are_counted_where_the_key_is_missing() -> None:
    assert facts_of([_header({"blk.6.attn_output.weight": (8, 8)})]).n_layer_all == 7


@pytest.mark.parametrize("name", PUBLISHED)
def test_sums_equal_what_llama_cpp_logged(truth_folder: Path, name: str) -> None:
    facts, log = _truth(truth_folder, name), PUBLISHED[name]
    dense = sum(layer.dense_bytes for layer in facts.layers) + facts.output_bytes
    assert dense / MIB == pytest.approx(log.gpu_dense_mib, abs=0.03)
    assert facts.expert_bytes / MIB == pytest.approx(log.expert_mib, abs=0.03)
    assert facts.token_embd_bytes / MIB == pytest.approx(log.ram_mib, abs=0.03)


@pytest.mark.parametrize(
    ("name", "total", "active", "stops"),
    [
        ("qwen3.5-35b-a3b-20.61gib", 34.66e9, 2.95e9, 40),
        ("qwen3-30b-a3b-q4_k_m", 30.53e9, 3.04e9, 48),
        ("gpt-oss-20b-mxfp4", 20.91e9, 3.61e9, 24),
        ("deepseek-v2-lite-q4_0", 15.71e9, 2.45e9, 26),
    ],
)
def test_parameters_of_published_models(
    truth_folder: Path, name: str, total: float, active: float, stops: int
) -> None:
    facts = _truth(truth_folder, name)
    assert facts.n_params == pytest.approx(total, rel=0.001)
    assert facts.n_active_params == pytest.approx(active, rel=0.005)
    assert len(facts.expert_layers) == stops


@pytest.mark.parametrize("name", TRUTH_MODELS)
def test_published_models_add_up(truth_folder: Path, name: str) -> None:
    facts = _truth(truth_folder, name)
    assert facts.loaded_bytes + facts.not_loaded_bytes == sum(
        tensor.n_bytes for tensor in facts.tensors
    )
    assert facts.role == "chat"
