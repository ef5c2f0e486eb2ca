"""The parts of a tiny model's block: keys and tensors as llama.cpp names them.

``s`` is the model's shape, ``b`` the block's prefix ("blk.3.").
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.helpers.tiny_shape import TinyShape, TinyTensor


def common_keys(s: TinyShape) -> dict[str, object]:
    return {
        "block_count": s.n_layer,
        "context_length": s.n_ctx,
        "embedding_length": s.n_embd,
        "feed_forward_length": s.n_ff,
        "attention.head_count": s.n_head,
        "attention.head_count_kv": s.n_head_kv,
        "attention.key_length": s.head_dim,
        "attention.value_length": s.head_dim,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": s.head_dim,
        "rope.freq_base": 10000.0,
    }


def expert_keys(s: TinyShape) -> dict[str, object]:
    return {
        "expert_count": s.n_expert,
        "expert_used_count": s.n_expert_used,
        "expert_feed_forward_length": s.n_ff_exp,
    }


def frame(s: TinyShape, *, tied: bool = False) -> Iterator[TinyTensor]:
    yield TinyTensor("token_embd.weight", (s.n_embd, s.n_vocab))
    yield TinyTensor("output_norm.weight", (s.n_embd,), "ones")
    if not tied:
        yield TinyTensor("output.weight", (s.n_embd, s.n_vocab))


def attention(s: TinyShape, b: str, *, gated: bool = False) -> Iterator[TinyTensor]:
    q_dim = s.n_head * s.head_dim
    kv_dim = s.n_head_kv * s.head_dim
    yield TinyTensor(f"{b}attn_norm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}attn_q.weight", (s.n_embd, q_dim * (2 if gated else 1)))
    yield TinyTensor(f"{b}attn_k.weight", (s.n_embd, kv_dim))
    yield TinyTensor(f"{b}attn_v.weight", (s.n_embd, kv_dim))
    yield TinyTensor(f"{b}attn_output.weight", (q_dim, s.n_embd))


def qk_norms(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}attn_q_norm.weight", (s.head_dim,), "ones")
    yield TinyTensor(f"{b}attn_k_norm.weight", (s.head_dim,), "ones")


def norm(s: TinyShape, b: str, name: str = "ffn_norm") -> TinyTensor:
    return TinyTensor(f"{b}{name}.weight", (s.n_embd,), "ones")


def dense_ffn(s: TinyShape, b: str, suffix: str = "", width: int = 0) -> Iterator[TinyTensor]:
    width = width or s.n_ff
    yield TinyTensor(f"{b}ffn_gate{suffix}.weight", (s.n_embd, width))
    yield TinyTensor(f"{b}ffn_up{suffix}.weight", (s.n_embd, width))
    yield TinyTensor(f"{b}ffn_down{suffix}.weight", (width, s.n_embd))


def experts(s: TinyShape, b: str, *, fused: bool = False) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}ffn_gate_inp.weight", (s.n_embd, s.n_expert), "small")
    if fused:
        yield TinyTensor(f"{b}ffn_gate_up_exps.weight", (s.n_embd, 2 * s.n_ff_exp, s.n_expert))
    else:
        yield TinyTensor(f"{b}ffn_gate_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert))
        yield TinyTensor(f"{b}ffn_up_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert))
    yield TinyTensor(f"{b}ffn_down_exps.weight", (s.n_ff_exp, s.n_embd, s.n_expert))


def delta_net(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    """One gated-delta-net block: state size 32, one group, two value heads."""
    state, rank = 32, 2
    inner = state * rank
    conv = 2 * state + inner
    yield TinyTensor(f"{b}attn_norm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}attn_qkv.weight", (s.n_embd, conv))
    yield TinyTensor(f"{b}attn_gate.weight", (s.n_embd, inner))
    yield TinyTensor(f"{b}ssm_conv1d.weight", (4, conv), "small")
    yield TinyTensor(f"{b}ssm_dt.bias", (rank,), "zeros")
    yield TinyTensor(f"{b}ssm_a", (rank,), "decay")
    yield TinyTensor(f"{b}ssm_beta.weight", (s.n_embd, rank))
    yield TinyTensor(f"{b}ssm_alpha.weight", (s.n_embd, rank))
    yield TinyTensor(f"{b}ssm_norm.weight", (state,), "ones")
    yield TinyTensor(f"{b}ssm_out.weight", (inner, s.n_embd))


def shared_gated(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}ffn_gate_inp_shexp.weight", (s.n_embd,), "small")
    yield from dense_ffn(s, b, "_shexp", s.n_ff_exp)


def nextn(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}nextn.eh_proj.weight", (2 * s.n_embd, s.n_embd))
    yield TinyTensor(f"{b}nextn.enorm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}nextn.hnorm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}nextn.shared_head_norm.weight", (s.n_embd,), "ones")
