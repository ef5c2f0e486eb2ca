"""The tensor tables of published models, as their files have them.

Out: :data:`TRUTHS`, by the names under which ``truth_models`` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from gguf import GGMLQuantizationType

_F32 = GGMLQuantizationType.F32
_Q8_0 = GGMLQuantizationType.Q8_0
_Q4_0 = GGMLQuantizationType.Q4_0
_Q4_K = GGMLQuantizationType.Q4_K
_Q5_K = GGMLQuantizationType.Q5_K
_Q6_K = GGMLQuantizationType.Q6_K
_MXFP4 = GGMLQuantizationType.MXFP4

Row = tuple[str, tuple[int, ...], GGMLQuantizationType]


@dataclass(frozen=True)
class Truth:
    """One model: its keys, and its tensors with their shapes and types."""

    arch: str
    n_vocab: int
    keys: Mapping[str, object]
    rows: tuple[Row, ...]


def cut(truth: Truth, n_layer: int) -> Truth:
    """The first ``n_layer`` blocks, of a model without lists a block in its metadata."""
    kept = tuple(
        row
        for row in truth.rows
        if not row[0].startswith("blk.") or int(row[0].split(".")[1]) < n_layer
    )
    return replace(truth, rows=kept, keys={**truth.keys, "block_count": n_layer})


def _f32(block: str, **widths: int) -> Iterator[Row]:
    for name, width in widths.items():
        yield f"{block}{name}.weight", (width,), _F32


def _qwen3_30b(n_ctx: int, n_ff: int, storage: Callable[[str, int], GGMLQuantizationType]) -> Truth:
    d, head, n_head, n_kv, width, n_expert, n_vocab = 2048, 128, 32, 4, 768, 128, 151936
    rows: list[Row] = [
        ("token_embd.weight", (d, n_vocab), storage("token_embd", 0)),
        ("output_norm.weight", (d,), _F32),
        ("output.weight", (d, n_vocab), storage("output", 0)),
    ]
    for i in range(48):
        b = f"blk.{i}."
        rows += _f32(b, attn_norm=d, ffn_norm=d, attn_q_norm=head, attn_k_norm=head)
        for part, shape in {
            "attn_q": (d, n_head * head),
            "attn_k": (d, n_kv * head),
            "attn_v": (d, n_kv * head),
            "attn_output": (n_head * head, d),
            "ffn_gate_exps": (d, width, n_expert),
            "ffn_up_exps": (d, width, n_expert),
            "ffn_down_exps": (width, d, n_expert),
        }.items():
            rows.append((f"{b}{part}.weight", shape, storage(part, i)))
        rows.append((f"{b}ffn_gate_inp.weight", (d, n_expert), _F32))
    keys = {
        "block_count": 48,
        "context_length": n_ctx,
        "embedding_length": d,
        "feed_forward_length": n_ff,
        "attention.head_count": n_head,
        "attention.head_count_kv": n_kv,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e6,
        "expert_count": n_expert,
        "expert_used_count": 8,
        "expert_feed_forward_length": width,
    }
    return Truth("qwen3moe", n_vocab, keys, tuple(rows))


def _q4_k_m(part: str, layer: int) -> GGMLQuantizationType:
    """The mixture that llama-quantize makes of Q4_K_M: more bits in some layers."""
    favoured = layer < 6 or layer >= 42 or layer % 3 == 2
    if part == "output" or (favoured and part in ("attn_v", "ffn_down_exps")):
        return _Q6_K
    return _Q4_K


def _gpt_oss(n_layer: int, n_expert: int) -> Truth:
    d, n_vocab = 2880, 201088
    rows: list[Row] = [
        ("token_embd.weight", (d, n_vocab), _Q8_0),
        ("output_norm.weight", (d,), _F32),
        ("output.weight", (d, n_vocab), _Q8_0),
    ]
    for i in range(n_layer):
        b = f"blk.{i}."
        rows += _f32(b, attn_norm=d, post_attention_norm=d, attn_sinks=64)
        for part, shape in {
            "q": (d, 4096),
            "k": (d, 512),
            "v": (d, 512),
            "output": (4096, d),
        }.items():
            rows.append((f"{b}attn_{part}.weight", shape, _Q8_0))
            rows.append((f"{b}attn_{part}.bias", shape[1:], _F32))
        rows.append((f"{b}ffn_gate_inp.weight", (d, n_expert), _F32))
        rows.append((f"{b}ffn_gate_inp.bias", (n_expert,), _F32))
        for part in ("gate", "up", "down"):
            rows.append((f"{b}ffn_{part}_exps.weight", (d, d, n_expert), _MXFP4))
            rows.append((f"{b}ffn_{part}_exps.bias", (d, n_expert), _F32))
    keys = {
        "block_count": n_layer,
        "context_length": 131072,
        "embedding_length": d,
        "feed_forward_length": d,
        "attention.head_count": 64,
        "attention.head_count_kv": 8,
        "attention.key_length": 64,
        "attention.value_length": 64,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.sliding_window": 128,
        "rope.freq_base": 150000.0,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 32.0,
        "rope.scaling.original_context_length": 4096,
        "expert_count": n_expert,
        "expert_used_count": 4,
        "expert_feed_forward_length": d,
    }
    return Truth("gpt-oss", n_vocab, keys, tuple(rows))


def _qwen35_35b() -> Truth:
    d, n_vocab, n_expert, width = 2048, 248320, 256, 512
    head, n_head, n_kv = 256, 16, 2
    state, groups, inner, rank = 128, 16, 4096, 32
    conv = inner + 2 * groups * state
    rows: list[Row] = [
        ("token_embd.weight", (d, n_vocab), _Q8_0),
        ("output_norm.weight", (d,), _F32),
        ("output.weight", (d, n_vocab), _Q8_0),
    ]
    for i in range(40):
        b = f"blk.{i}."
        rows += _f32(b, attn_norm=d, post_attention_norm=d)
        if i % 4 == 3:
            rows += _f32(b, attn_q_norm=head, attn_k_norm=head)
            shapes = {
                "attn_q": (d, n_head * head * 2),
                "attn_k": (d, n_kv * head),
                "attn_v": (d, n_kv * head),
                "attn_output": (n_head * head, d),
            }
        else:
            rows += _f32(b, ssm_norm=state)
            rows.append((f"{b}ssm_a", (rank,), _F32))
            rows.append((f"{b}ssm_dt.bias", (rank,), _F32))
            rows.append((f"{b}ssm_conv1d.weight", (4, conv), _F32))
            shapes = {
                "attn_qkv": (d, conv),
                "attn_gate": (d, inner),
                "ssm_out": (inner, d),
                "ssm_alpha": (d, rank),
                "ssm_beta": (d, rank),
            }
        shapes |= {
            "ffn_gate_shexp": (d, width),
            "ffn_up_shexp": (d, width),
            "ffn_down_shexp": (width, d),
        }
        rows += [(f"{b}{part}.weight", shape, _Q8_0) for part, shape in shapes.items()]
        rows.append((f"{b}ffn_gate_inp.weight", (d, n_expert), _F32))
        rows += _f32(b, ffn_gate_inp_shexp=d)
        rows.append((f"{b}ffn_gate_exps.weight", (d, width, n_expert), _Q4_K))
        rows.append((f"{b}ffn_up_exps.weight", (d, width, n_expert), _Q4_K))
        rows.append((f"{b}ffn_down_exps.weight", (width, d, n_expert), _Q5_K))
    keys = {
        "block_count": 40,
        "context_length": 262144,
        "embedding_length": d,
        "attention.head_count": n_head,
        "attention.head_count_kv": n_kv,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": 64,
        "rope.dimension_sections": [11, 11, 10, 0],
        "expert_count": n_expert,
        "expert_used_count": 8,
        "expert_feed_forward_length": width,
        "expert_shared_feed_forward_length": width,
        "ssm.conv_kernel": 4,
        "ssm.state_size": state,
        "ssm.group_count": groups,
        "ssm.time_step_rank": rank,
        "ssm.inner_size": inner,
        "full_attention_interval": 4,
    }
    return Truth("qwen35moe", n_vocab, keys, tuple(rows))


def _glm_45_air() -> Truth:
    """46 blocks and one for multi-token prediction, which is in the file and never loaded."""
    d, n_vocab, n_expert, width = 4096, 151552, 128, 1408
    head, n_head, n_kv = 128, 96, 8
    rows: list[Row] = [
        ("token_embd.weight", (d, n_vocab), _Q4_K),
        ("output_norm.weight", (d,), _F32),
        ("output.weight", (d, n_vocab), _Q6_K),
    ]
    for i in range(47):
        b = f"blk.{i}."
        rows += _f32(b, attn_norm=d, post_attention_norm=d)
        shapes: dict[str, tuple[int, ...]] = {}
        for part, n_out in {"q": n_head * head, "k": n_kv * head, "v": n_kv * head}.items():
            shapes[f"attn_{part}"] = (d, n_out)
            rows.append((f"{b}attn_{part}.bias", (n_out,), _F32))
        shapes["attn_output"] = (n_head * head, d)
        if i == 0:
            shapes |= {"ffn_gate": (d, 10944), "ffn_up": (d, 10944), "ffn_down": (10944, d)}
        else:
            rows.append((f"{b}ffn_gate_inp.weight", (d, n_expert), _F32))
            rows.append((f"{b}exp_probs_b.bias", (n_expert,), _F32))
            for part, pair in {"gate": (d, width), "up": (d, width), "down": (width, d)}.items():
                shapes[f"ffn_{part}_exps"] = (*pair, n_expert)
                shapes[f"ffn_{part}_shexp"] = pair
        if i == 46:
            shapes["nextn.eh_proj"] = (2 * d, d)
            rows += _f32(f"{b}nextn.", enorm=d, hnorm=d, shared_head_norm=d)
        for part, shape in shapes.items():
            # Rows of 10944 and 1408 values are no multiple of 256: llama-quantize falls back.
            rows.append((f"{b}{part}.weight", shape, _Q4_K if shape[0] % 256 == 0 else _Q8_0))
    keys = {
        "block_count": 47,
        "nextn_predict_layers": 1,
        "context_length": 131072,
        "embedding_length": d,
        "feed_forward_length": 10944,
        "attention.head_count": n_head,
        "attention.head_count_kv": n_kv,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": 64,
        "rope.freq_base": 1e6,
        "leading_dense_block_count": 1,
        "expert_count": n_expert,
        "expert_used_count": 8,
        "expert_shared_count": 1,
        "expert_feed_forward_length": width,
        "expert_weights_scale": 1.0,
        "expert_weights_norm": True,
        "expert_gating_func": 2,
    }
    return Truth("glm4moe", n_vocab, keys, tuple(rows))


def _deepseek_v2_lite() -> Truth:
    d, n_vocab, n_expert, width = 2048, 102400, 64, 1408
    rows: list[Row] = [
        ("token_embd.weight", (d, n_vocab), _Q4_0),
        ("output_norm.weight", (d,), _F32),
        ("output.weight", (d, n_vocab), _Q6_K),
    ]
    for i in range(27):
        b = f"blk.{i}."
        rows += _f32(b, attn_norm=d, ffn_norm=d, attn_kv_a_norm=512)
        shapes: dict[str, tuple[int, ...]] = {
            "attn_q": (d, 3072),
            "attn_kv_a_mqa": (d, 576),
            "attn_kv_b": (512, 4096),
            "attn_output": (2048, d),
        }
        if i == 0:
            shapes |= {"ffn_gate": (d, 10944), "ffn_up": (d, 10944), "ffn_down": (10944, d)}
        else:
            rows.append((f"{b}ffn_gate_inp.weight", (d, n_expert), _F32))
            for part, pair in {
                "gate": (d, width),
                "up": (d, width),
                "down": (width, d),
            }.items():
                shapes[f"ffn_{part}_exps"] = (*pair, n_expert)
                # Two shared experts, stored as one of double width.
                shapes[f"ffn_{part}_shexp"] = tuple(2 * n if n == width else n for n in pair)
        rows += [(f"{b}{part}.weight", shape, _Q4_0) for part, shape in shapes.items()]
    keys = {
        "block_count": 27,
        "context_length": 163840,
        "embedding_length": d,
        "feed_forward_length": 10944,
        "attention.head_count": 16,
        "attention.head_count_kv": 16,
        "attention.key_length": 192,
        "attention.value_length": 128,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.kv_lora_rank": 512,
        "rope.freq_base": 1e4,
        "rope.dimension_count": 64,
        "leading_dense_block_count": 1,
        "expert_count": n_expert,
        "expert_used_count": 6,
        "expert_shared_count": 2,
        "expert_feed_forward_length": width,
        "expert_weights_scale": 1.0,
        "vocab_size": n_vocab,
    }
    return Truth("deepseek2", n_vocab, keys, tuple(rows))


TRUTHS: dict[str, Callable[[], Truth]] = {
    "qwen3-30b-a3b-q4_k_m": lambda: _qwen3_30b(40960, 6144, _q4_k_m),
    "qwen3-coder-30b-a3b-q8_0": lambda: _qwen3_30b(262144, 5472, lambda _part, _layer: _Q8_0),
    "gpt-oss-20b-mxfp4": lambda: _gpt_oss(24, 32),
    "gpt-oss-120b-mxfp4": lambda: _gpt_oss(36, 128),
    "glm-4.5-air-q4_k": _glm_45_air,
    "qwen3.5-35b-a3b-20.61gib": _qwen35_35b,
    "deepseek-v2-lite-q4_0": _deepseek_v2_lite,
}
