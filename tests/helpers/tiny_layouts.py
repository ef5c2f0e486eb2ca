"""Whole tiny models, one function an expert layout."""

from __future__ import annotations

from tests.helpers.tiny_parts import (
    attention,
    common_keys,
    delta_net,
    dense_ffn,
    expert_keys,
    experts,
    frame,
    nextn,
    norm,
    qk_norms,
    shared_gated,
)
from tests.helpers.tiny_shape import TinyModel, TinyShape, TinyTensor


def _dense(s: TinyShape, *, tied: bool = False) -> TinyModel:
    tensors = list(frame(s, tied=tied))
    tensors.append(TinyTensor("rope_freqs.weight", (s.head_dim // 2,), "ones"))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*attention(s, b), norm(s, b), *dense_ffn(s, b)]
    return TinyModel("llama", common_keys(s), tensors)


def _tied(s: TinyShape) -> TinyModel:
    return _dense(s, tied=True)


def _moe(s: TinyShape) -> TinyModel:
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*attention(s, b), *qk_norms(s, b), norm(s, b), *experts(s, b)]
    return TinyModel("qwen3moe", common_keys(s) | expert_keys(s), tensors)


def _llama_moe(s: TinyShape) -> TinyModel:
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*attention(s, b), norm(s, b), *experts(s, b)]
    keys = common_keys(s) | expert_keys(s)
    del keys["expert_feed_forward_length"]  # this architecture reads the width elsewhere
    keys["feed_forward_length"] = s.n_ff_exp
    return TinyModel("llama", keys, tensors)


def _old_mixtral(s: TinyShape) -> TinyModel:
    model = _llama_moe(s)
    tensors = [t for t in model.tensors if "_exps" not in t.name]
    for i in range(s.n_layer):
        for expert in range(s.n_expert):
            tensors += dense_ffn(s, f"blk.{i}.", f".{expert}", s.n_ff_exp)
    return TinyModel("llama", model.keys, tensors)


def _qwen35(s: TinyShape, *, fused: bool, n_mtp: int) -> TinyModel:
    tensors = list(frame(s))
    for i in range(s.n_layer + n_mtp):
        b = f"blk.{i}."
        is_mtp = i >= s.n_layer
        if is_mtp or i % 4 == 3:
            tensors += [*attention(s, b, gated=True), *qk_norms(s, b)]
        else:
            tensors += delta_net(s, b)
        tensors.append(norm(s, b, "post_attention_norm"))
        tensors += [*experts(s, b, fused=fused), *shared_gated(s, b)]
        if is_mtp:
            tensors += nextn(s, b)
    quarter = s.head_dim // 8
    keys = (
        common_keys(s)
        | expert_keys(s)
        | {
            "block_count": s.n_layer + n_mtp,
            "expert_shared_feed_forward_length": s.n_ff_exp,
            "rope.dimension_sections": [quarter * 2, quarter, quarter, 0],
            "ssm.conv_kernel": 4,
            "ssm.inner_size": 64,
            "ssm.state_size": 32,
            "ssm.time_step_rank": 2,
            "ssm.group_count": 1,
            "full_attention_interval": 4,
        }
    )
    if n_mtp:
        keys["nextn_predict_layers"] = n_mtp
    return TinyModel("qwen35moe", keys, tensors)


def _fused(s: TinyShape) -> TinyModel:
    return _qwen35(s, fused=True, n_mtp=0)


def _mtp(s: TinyShape) -> TinyModel:
    return _qwen35(s, fused=False, n_mtp=s.n_mtp)


def _shared(s: TinyShape) -> TinyModel:
    """GLM-4.5's layout: a leading dense block, shared experts, an MTP block at the end."""
    tensors = list(frame(s))
    for i in range(s.n_layer + s.n_mtp):
        b = f"blk.{i}."
        tensors += [*attention(s, b), norm(s, b, "post_attention_norm")]
        if i == 0:
            tensors += dense_ffn(s, b)
        else:
            tensors += experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
            tensors += dense_ffn(s, b, "_shexp", s.n_ff_exp)
        if i >= s.n_layer:
            tensors += nextn(s, b)
    keys = (
        common_keys(s)
        | expert_keys(s)
        | {
            "block_count": s.n_layer + s.n_mtp,
            "leading_dense_block_count": 1,
            "expert_shared_count": 1,
            "expert_gating_func": 2,
            "nextn_predict_layers": s.n_mtp,
        }
    )
    return TinyModel("glm4moe", keys, tensors)


def _mla(s: TinyShape) -> TinyModel:
    """DeepSeek's layout: latent attention, a leading dense block, shared experts."""
    q_lora, kv_lora, rope, nope, v_dim = 32, 64, 32, 32, 32
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [
            norm(s, b, "attn_norm"),
            TinyTensor(f"{b}attn_q_a.weight", (s.n_embd, q_lora)),
            TinyTensor(f"{b}attn_q_a_norm.weight", (q_lora,), "ones"),
            TinyTensor(f"{b}attn_q_b.weight", (q_lora, s.n_head * (nope + rope))),
            TinyTensor(f"{b}attn_kv_a_mqa.weight", (s.n_embd, kv_lora + rope)),
            TinyTensor(f"{b}attn_kv_a_norm.weight", (kv_lora,), "ones"),
            TinyTensor(f"{b}attn_k_b.weight", (nope, kv_lora, s.n_head)),
            TinyTensor(f"{b}attn_v_b.weight", (kv_lora, v_dim, s.n_head)),
            TinyTensor(f"{b}attn_output.weight", (s.n_head * v_dim, s.n_embd)),
            norm(s, b),
        ]
        if i == 0:
            tensors += dense_ffn(s, b)
        else:
            tensors += experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
            tensors += dense_ffn(s, b, "_shexp", s.n_ff_exp)
    keys = (
        common_keys(s)
        | expert_keys(s)
        | {
            "attention.head_count_kv": 1,
            "attention.key_length": kv_lora + rope,
            "attention.value_length": kv_lora,
            "attention.key_length_mla": nope + rope,
            "attention.value_length_mla": v_dim,
            "attention.q_lora_rank": q_lora,
            "attention.kv_lora_rank": kv_lora,
            "rope.dimension_count": rope,
            "leading_dense_block_count": 1,
            "expert_shared_count": 1,
            "expert_weights_scale": 1.0,
            "expert_gating_func": 2,
        }
    )
    return TinyModel("deepseek2", keys, tensors)


def _sliding(s: TinyShape) -> TinyModel:
    """gpt-oss: sliding window in every other block, biases on attention, router and experts."""
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*attention(s, b), norm(s, b, "post_attention_norm")]
        for part, width in (
            ("q", s.n_head * s.head_dim),
            ("k", s.n_head_kv * s.head_dim),
            ("v", s.n_head_kv * s.head_dim),
            ("output", s.n_embd),
        ):
            tensors.append(TinyTensor(f"{b}attn_{part}.bias", (width,), "small"))
        tensors.append(TinyTensor(f"{b}attn_sinks.weight", (s.n_head,), "zeros"))
        tensors += experts(s, b)
        tensors.append(TinyTensor(f"{b}ffn_gate_inp.bias", (s.n_expert,), "small"))
        for part, width in (("gate", s.n_ff_exp), ("up", s.n_ff_exp), ("down", s.n_embd)):
            tensors.append(TinyTensor(f"{b}ffn_{part}_exps.bias", (width, s.n_expert), "small"))
    keys = common_keys(s) | expert_keys(s) | {"attention.sliding_window": 64}
    return TinyModel("gpt-oss", keys, tensors)


def _hybrid(s: TinyShape) -> TinyModel:
    """LFM2: short convolutions where ``head_count_kv`` is 0, a leading dense block."""
    attends = [i % 2 == 1 for i in range(s.n_layer)]
    tensors = [t for t in frame(s, tied=True) if t.name != "output_norm.weight"]
    tensors.append(TinyTensor("token_embd_norm.weight", (s.n_embd,), "ones"))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        if attends[i]:
            tensors += [*attention(s, b), *qk_norms(s, b)]
        else:
            tensors += [
                norm(s, b, "attn_norm"),
                TinyTensor(f"{b}shortconv.conv.weight", (3, s.n_embd), "small"),
                TinyTensor(f"{b}shortconv.in_proj.weight", (s.n_embd, 3 * s.n_embd)),
                TinyTensor(f"{b}shortconv.out_proj.weight", (s.n_embd, s.n_embd)),
            ]
        tensors.append(norm(s, b))
        if i == 0:
            tensors += dense_ffn(s, b)
        else:
            tensors += experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
    keys = (
        common_keys(s)
        | expert_keys(s)
        | {
            "attention.head_count_kv": [s.n_head_kv if a else 0 for a in attends],
            "leading_dense_block_count": 1,
            "expert_gating_func": 2,
            "shortconv.l_cache": 3,
        }
    )
    return TinyModel("lfm2moe", keys, tensors)


def _mamba(s: TinyShape) -> TinyModel:
    """Granite hybrid: Mamba-2 blocks where ``head_count_kv`` is 0, experts in every block."""
    inner, state, heads = 2 * s.n_embd, 16, 2
    conv = inner + 2 * state
    attends = [i % 2 == 1 for i in range(s.n_layer)]
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        if attends[i]:
            tensors += attention(s, b)
        else:
            tensors += [
                norm(s, b, "attn_norm"),
                TinyTensor(f"{b}ssm_in.weight", (s.n_embd, inner + conv + heads)),
                TinyTensor(f"{b}ssm_conv1d.weight", (4, conv), "small"),
                TinyTensor(f"{b}ssm_conv1d.bias", (conv,), "zeros"),
                TinyTensor(f"{b}ssm_dt.bias", (heads,), "zeros"),
                TinyTensor(f"{b}ssm_a", (1, heads), "decay"),
                TinyTensor(f"{b}ssm_d", (1, heads), "ones"),
                TinyTensor(f"{b}ssm_norm.weight", (inner, 1), "ones"),
                TinyTensor(f"{b}ssm_out.weight", (inner, s.n_embd)),
            ]
        tensors += [norm(s, b), *experts(s, b), *dense_ffn(s, b, "_shexp", s.n_ff)]
    keys = (
        common_keys(s)
        | expert_keys(s)
        | {
            "attention.head_count_kv": [s.n_head_kv if a else 0 for a in attends],
            "feed_forward_length": s.n_ff_exp,
            "expert_shared_feed_forward_length": s.n_ff,
            "ssm.conv_kernel": 4,
            "ssm.inner_size": inner,
            "ssm.state_size": state,
            "ssm.time_step_rank": heads,
            "ssm.group_count": 1,
            "attention.scale": 0.17,
            "embedding_scale": 1.0,
            "residual_scale": 1.0,
            "logit_scale": 1.0,
        }
    )
    del keys["expert_feed_forward_length"]
    return TinyModel("granitehybrid", keys, tensors)


def _chunked(s: TinyShape) -> TinyModel:
    """GroveMoE: every group of two experts shares a small chunk expert (``*_chexps``)."""
    group, width = 2, 32
    model = _moe(s)
    tensors = list(model.tensors)
    for i in range(s.n_layer):
        b = f"blk.{i}."
        n_chunks = s.n_expert // group
        for part, rows in (("gate", (s.n_embd, width)), ("up", (s.n_embd, width))):
            tensors.append(TinyTensor(f"{b}ffn_{part}_chexps.weight", (*rows, n_chunks)))
        tensors.append(TinyTensor(f"{b}ffn_down_chexps.weight", (width, s.n_embd, n_chunks)))
    keys = model.keys | {
        "expert_chunk_feed_forward_length": width,
        "expert_group_scale": 0.05,
        "experts_per_group": group,
    }
    return TinyModel("grovemoe", keys, tensors)


def _interleaved(s: TinyShape) -> TinyModel:
    """Llama 4: every second block has experts, the others a dense net."""
    tensors = list(frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*attention(s, b), norm(s, b)]
        if i % 2 == 1:
            tensors += [*experts(s, b), *dense_ffn(s, b, "_shexp", s.n_ff_exp)]
        else:
            tensors += dense_ffn(s, b)
    keys = common_keys(s) | expert_keys(s) | {"interleave_moe_layer_step": 2}
    return TinyModel("llama4", keys, tensors)


LAYOUTS = {
    "dense": _dense,
    "tied": _tied,
    "moe": _moe,
    "llama-moe": _llama_moe,
    "fused": _fused,
    "mtp": _mtp,
    "shared": _shared,
    "mla": _mla,
    "sliding": _sliding,
    "hybrid": _hybrid,
    "mamba": _mamba,
    "chunked": _chunked,
    "interleaved": _interleaved,
    "old-mixtral": _old_mixtral,
}
