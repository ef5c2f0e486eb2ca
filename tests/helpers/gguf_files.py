"""Tiny GGUF models of every expert layout, which llama.cpp really loads and runs.

Random small weights from a fixed seed, a byte-level vocabulary, a few hundred KB a file. They
talk nonsense, deterministically, and hold every tensor-table shape that the program must know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFWriter, quants

#: Every kind that :func:`write_tiny_model` knows.
TINY_KINDS = (
    "dense",
    "tied",
    "moe",
    "llama-moe",
    "fused",
    "mtp",
    "shared",
    "mla",
    "sliding",
    "hybrid",
    "mamba",
    "chunked",
    "interleaved",
    "old-mixtral",
)
#: The kinds that today's llama.cpp loads ("old-mixtral" it refuses).
RUNNABLE_KINDS = tuple(kind for kind in TINY_KINDS if kind != "old-mixtral")

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class TinyShape:
    """What a tiny model is made of; every field can be overridden."""

    n_layer: int = 4  # loaded blocks; MTP blocks come on top
    n_embd: int = 64
    n_head: int = 2
    n_head_kv: int = 1
    head_dim: int = 32
    n_ff: int = 96
    n_ff_exp: int = 32
    n_expert: int = 8
    n_expert_used: int = 2
    n_ctx: int = 2048
    n_mtp: int = 1  # only for the kinds that have MTP blocks
    name: str = ""
    seed: int = 1
    matrix_type: GGMLQuantizationType = GGMLQuantizationType.Q8_0
    chat_template: str | None = CHAT_TEMPLATE
    metadata: dict[str, object] = field(default_factory=dict)
    big_endian: bool = False
    split_max_tensors: int = 0  # more than 0: write shards of so many tensors


@dataclass(frozen=True)
class TinyTensor:
    """``shape`` in ggml's order; ``fill``: matrix, ones, zeros, small, decay."""

    name: str
    shape: tuple[int, ...]
    fill: str = "matrix"


@dataclass(frozen=True)
class _Model:
    arch: str
    keys: dict[str, object]
    tensors: list[TinyTensor]


def write_tiny_model(path: Path, kind: str = "moe", **overrides: object) -> Path:
    """Write a tiny model of ``kind`` and return its path (the first shard's where it is split).

    ``overrides`` are fields of :class:`TinyShape`. With ``split_max_tensors`` the files are named
    ``STEM-00001-of-0000N.gguf``.
    """
    shape = replace(TinyShape(), **overrides)  # type: ignore[arg-type]
    model = _BUILDERS[kind](shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    endian = GGUFEndian.BIG if shape.big_endian else GGUFEndian.LITTLE
    writer = GGUFWriter(
        str(path), model.arch, endianess=endian, split_max_tensors=shape.split_max_tensors
    )
    try:
        writer.add_name(shape.name or f"Tiny {kind}")
        for key, value in model.keys.items():
            _add(writer, f"{model.arch}.{key}", value)
        for key, value in shape.metadata.items():
            _add(writer, key, value)
        _add_vocabulary(writer, shape)
        random = np.random.default_rng(shape.seed)
        for tensor in model.tensors:
            _add_tensor(writer, tensor, shape.matrix_type, random)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
    if shape.split_max_tensors:
        return sorted(path.parent.glob(f"{path.stem}-00001-of-*.gguf"))[0]
    return path


def write_mmproj(path: Path, *, n_embd: int | None = None) -> Path:
    """Write a projector file as small as can be; ``n_embd`` is the width it projects into."""
    writer = GGUFWriter(str(path), "clip")
    writer.add_name("Projector")
    writer.add_string("general.type", "mmproj")
    if n_embd is not None:
        writer.add_uint32("clip.vision.projection_dim", n_embd)
    writer.add_tensor("v.blk.0.ln1.weight", np.ones(32, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, Sequence):
        writer.add_array(key, value)
    else:
        raise TypeError(f"{key}: {value!r}")


def _add_tensor(
    writer: GGUFWriter,
    tensor: TinyTensor,
    matrix_type: GGMLQuantizationType,
    random: np.random.Generator,
) -> None:
    rows_first = tuple(reversed(tensor.shape))
    if tensor.fill == "matrix":
        scale = 1.0 / np.sqrt(tensor.shape[0])
        values = random.normal(0.0, scale, rows_first).astype(np.float32)
        # llama.cpp quantises no row that is not a whole number of blocks.
        kind = matrix_type if tensor.shape[0] % 32 == 0 else GGMLQuantizationType.F32
        if kind == GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, quants.quantize(values, kind), raw_dtype=kind)
        return
    if tensor.fill == "ones":
        values = np.ones(rows_first, np.float32)
    elif tensor.fill == "decay":
        values = -random.uniform(0.5, 1.5, rows_first).astype(np.float32)
    elif tensor.fill == "small":
        values = random.normal(0.0, 0.05, rows_first).astype(np.float32)
    else:
        values = np.zeros(rows_first, np.float32)
    writer.add_tensor(tensor.name, values)


def byte_symbols() -> list[str]:
    """The 256 characters by which byte-level BPE vocabularies (GPT-2's) write bytes."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    symbols, next_free = [], 256
    for byte in range(256):
        if byte in printable:
            symbols.append(chr(byte))
        else:
            symbols.append(chr(next_free))
            next_free += 1
    return symbols


SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
N_VOCAB = 256 + 1 + len(SPECIAL_TOKENS)


def _add_vocabulary(writer: GGUFWriter, shape: TinyShape) -> None:
    tokens = [*byte_symbols(), "th", *SPECIAL_TOKENS]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3] * len(SPECIAL_TOKENS))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(259)
    writer.add_add_bos_token(False)
    if shape.chat_template is not None:
        writer.add_chat_template(shape.chat_template)


def _common_keys(s: TinyShape) -> dict[str, object]:
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


def _expert_keys(s: TinyShape) -> dict[str, object]:
    return {
        "expert_count": s.n_expert,
        "expert_used_count": s.n_expert_used,
        "expert_feed_forward_length": s.n_ff_exp,
    }


def _frame(s: TinyShape, *, tied: bool = False) -> Iterator[TinyTensor]:
    yield TinyTensor("token_embd.weight", (s.n_embd, N_VOCAB))
    yield TinyTensor("output_norm.weight", (s.n_embd,), "ones")
    if not tied:
        yield TinyTensor("output.weight", (s.n_embd, N_VOCAB))


def _attention(s: TinyShape, b: str, *, gated: bool = False) -> Iterator[TinyTensor]:
    q_dim = s.n_head * s.head_dim
    kv_dim = s.n_head_kv * s.head_dim
    yield TinyTensor(f"{b}attn_norm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}attn_q.weight", (s.n_embd, q_dim * (2 if gated else 1)))
    yield TinyTensor(f"{b}attn_k.weight", (s.n_embd, kv_dim))
    yield TinyTensor(f"{b}attn_v.weight", (s.n_embd, kv_dim))
    yield TinyTensor(f"{b}attn_output.weight", (q_dim, s.n_embd))


def _qk_norms(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}attn_q_norm.weight", (s.head_dim,), "ones")
    yield TinyTensor(f"{b}attn_k_norm.weight", (s.head_dim,), "ones")


def _norm(s: TinyShape, b: str, name: str = "ffn_norm") -> TinyTensor:
    return TinyTensor(f"{b}{name}.weight", (s.n_embd,), "ones")


def _dense_ffn(s: TinyShape, b: str, suffix: str = "", width: int = 0) -> Iterator[TinyTensor]:
    width = width or s.n_ff
    yield TinyTensor(f"{b}ffn_gate{suffix}.weight", (s.n_embd, width))
    yield TinyTensor(f"{b}ffn_up{suffix}.weight", (s.n_embd, width))
    yield TinyTensor(f"{b}ffn_down{suffix}.weight", (width, s.n_embd))


def _experts(s: TinyShape, b: str, *, fused: bool = False) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}ffn_gate_inp.weight", (s.n_embd, s.n_expert), "small")
    if fused:
        yield TinyTensor(f"{b}ffn_gate_up_exps.weight", (s.n_embd, 2 * s.n_ff_exp, s.n_expert))
    else:
        yield TinyTensor(f"{b}ffn_gate_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert))
        yield TinyTensor(f"{b}ffn_up_exps.weight", (s.n_embd, s.n_ff_exp, s.n_expert))
    yield TinyTensor(f"{b}ffn_down_exps.weight", (s.n_ff_exp, s.n_embd, s.n_expert))


def _dense(s: TinyShape, *, tied: bool = False) -> _Model:
    tensors = list(_frame(s, tied=tied))
    tensors.append(TinyTensor("rope_freqs.weight", (s.head_dim // 2,), "ones"))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), _norm(s, b), *_dense_ffn(s, b)]
    return _Model("llama", _common_keys(s), tensors)


def _tied(s: TinyShape) -> _Model:
    return _dense(s, tied=True)


def _moe(s: TinyShape) -> _Model:
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), *_qk_norms(s, b), _norm(s, b), *_experts(s, b)]
    return _Model("qwen3moe", _common_keys(s) | _expert_keys(s), tensors)


def _llama_moe(s: TinyShape) -> _Model:
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), _norm(s, b), *_experts(s, b)]
    keys = _common_keys(s) | _expert_keys(s)
    del keys["expert_feed_forward_length"]  # this architecture reads the width elsewhere
    keys["feed_forward_length"] = s.n_ff_exp
    return _Model("llama", keys, tensors)


def _old_mixtral(s: TinyShape) -> _Model:
    model = _llama_moe(s)
    tensors = [t for t in model.tensors if "_exps" not in t.name]
    for i in range(s.n_layer):
        for expert in range(s.n_expert):
            tensors += _dense_ffn(s, f"blk.{i}.", f".{expert}", s.n_ff_exp)
    return _Model("llama", model.keys, tensors)


def _delta_net(s: TinyShape, b: str) -> Iterator[TinyTensor]:
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


def _shared_gated(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}ffn_gate_inp_shexp.weight", (s.n_embd,), "small")
    yield from _dense_ffn(s, b, "_shexp", s.n_ff_exp)


def _nextn(s: TinyShape, b: str) -> Iterator[TinyTensor]:
    yield TinyTensor(f"{b}nextn.eh_proj.weight", (2 * s.n_embd, s.n_embd))
    yield TinyTensor(f"{b}nextn.enorm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}nextn.hnorm.weight", (s.n_embd,), "ones")
    yield TinyTensor(f"{b}nextn.shared_head_norm.weight", (s.n_embd,), "ones")


def _qwen35(s: TinyShape, *, fused: bool, n_mtp: int) -> _Model:
    tensors = list(_frame(s))
    for i in range(s.n_layer + n_mtp):
        b = f"blk.{i}."
        is_mtp = i >= s.n_layer
        if is_mtp or i % 4 == 3:
            tensors += [*_attention(s, b, gated=True), *_qk_norms(s, b)]
        else:
            tensors += _delta_net(s, b)
        tensors.append(_norm(s, b, "post_attention_norm"))
        tensors += [*_experts(s, b, fused=fused), *_shared_gated(s, b)]
        if is_mtp:
            tensors += _nextn(s, b)
    quarter = s.head_dim // 8
    keys = (
        _common_keys(s)
        | _expert_keys(s)
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
    return _Model("qwen35moe", keys, tensors)


def _fused(s: TinyShape) -> _Model:
    return _qwen35(s, fused=True, n_mtp=0)


def _mtp(s: TinyShape) -> _Model:
    return _qwen35(s, fused=False, n_mtp=s.n_mtp)


def _shared(s: TinyShape) -> _Model:
    """GLM-4.5's layout: a leading dense block, shared experts, an MTP block at the end."""
    tensors = list(_frame(s))
    for i in range(s.n_layer + s.n_mtp):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), _norm(s, b, "post_attention_norm")]
        if i == 0:
            tensors += _dense_ffn(s, b)
        else:
            tensors += _experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
            tensors += _dense_ffn(s, b, "_shexp", s.n_ff_exp)
        if i >= s.n_layer:
            tensors += _nextn(s, b)
    keys = (
        _common_keys(s)
        | _expert_keys(s)
        | {
            "block_count": s.n_layer + s.n_mtp,
            "leading_dense_block_count": 1,
            "expert_shared_count": 1,
            "expert_gating_func": 2,
            "nextn_predict_layers": s.n_mtp,
        }
    )
    return _Model("glm4moe", keys, tensors)


def _mla(s: TinyShape) -> _Model:
    """DeepSeek's layout: latent attention, a leading dense block, shared experts."""
    q_lora, kv_lora, rope, nope, v_dim = 32, 64, 32, 32, 32
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [
            _norm(s, b, "attn_norm"),
            TinyTensor(f"{b}attn_q_a.weight", (s.n_embd, q_lora)),
            TinyTensor(f"{b}attn_q_a_norm.weight", (q_lora,), "ones"),
            TinyTensor(f"{b}attn_q_b.weight", (q_lora, s.n_head * (nope + rope))),
            TinyTensor(f"{b}attn_kv_a_mqa.weight", (s.n_embd, kv_lora + rope)),
            TinyTensor(f"{b}attn_kv_a_norm.weight", (kv_lora,), "ones"),
            TinyTensor(f"{b}attn_k_b.weight", (nope, kv_lora, s.n_head)),
            TinyTensor(f"{b}attn_v_b.weight", (kv_lora, v_dim, s.n_head)),
            TinyTensor(f"{b}attn_output.weight", (s.n_head * v_dim, s.n_embd)),
            _norm(s, b),
        ]
        if i == 0:
            tensors += _dense_ffn(s, b)
        else:
            tensors += _experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
            tensors += _dense_ffn(s, b, "_shexp", s.n_ff_exp)
    keys = (
        _common_keys(s)
        | _expert_keys(s)
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
    return _Model("deepseek2", keys, tensors)


def _sliding(s: TinyShape) -> _Model:
    """gpt-oss: sliding window in every other block, biases on attention, router and experts."""
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), _norm(s, b, "post_attention_norm")]
        for part, width in (
            ("q", s.n_head * s.head_dim),
            ("k", s.n_head_kv * s.head_dim),
            ("v", s.n_head_kv * s.head_dim),
            ("output", s.n_embd),
        ):
            tensors.append(TinyTensor(f"{b}attn_{part}.bias", (width,), "small"))
        tensors.append(TinyTensor(f"{b}attn_sinks.weight", (s.n_head,), "zeros"))
        tensors += _experts(s, b)
        tensors.append(TinyTensor(f"{b}ffn_gate_inp.bias", (s.n_expert,), "small"))
        for part, width in (("gate", s.n_ff_exp), ("up", s.n_ff_exp), ("down", s.n_embd)):
            tensors.append(TinyTensor(f"{b}ffn_{part}_exps.bias", (width, s.n_expert), "small"))
    keys = _common_keys(s) | _expert_keys(s) | {"attention.sliding_window": 64}
    return _Model("gpt-oss", keys, tensors)


def _hybrid(s: TinyShape) -> _Model:
    """LFM2: short convolutions where ``head_count_kv`` is 0, a leading dense block."""
    attends = [i % 2 == 1 for i in range(s.n_layer)]
    tensors = [t for t in _frame(s, tied=True) if t.name != "output_norm.weight"]
    tensors.append(TinyTensor("token_embd_norm.weight", (s.n_embd,), "ones"))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        if attends[i]:
            tensors += [*_attention(s, b), *_qk_norms(s, b)]
        else:
            tensors += [
                _norm(s, b, "attn_norm"),
                TinyTensor(f"{b}shortconv.conv.weight", (3, s.n_embd), "small"),
                TinyTensor(f"{b}shortconv.in_proj.weight", (s.n_embd, 3 * s.n_embd)),
                TinyTensor(f"{b}shortconv.out_proj.weight", (s.n_embd, s.n_embd)),
            ]
        tensors.append(_norm(s, b))
        if i == 0:
            tensors += _dense_ffn(s, b)
        else:
            tensors += _experts(s, b)
            tensors.append(TinyTensor(f"{b}exp_probs_b.bias", (s.n_expert,), "zeros"))
    keys = (
        _common_keys(s)
        | _expert_keys(s)
        | {
            "attention.head_count_kv": [s.n_head_kv if a else 0 for a in attends],
            "leading_dense_block_count": 1,
            "expert_gating_func": 2,
            "shortconv.l_cache": 3,
        }
    )
    return _Model("lfm2moe", keys, tensors)


def _mamba(s: TinyShape) -> _Model:
    """Granite hybrid: Mamba-2 blocks where ``head_count_kv`` is 0, experts in every block."""
    inner, state, heads = 2 * s.n_embd, 16, 2
    conv = inner + 2 * state
    attends = [i % 2 == 1 for i in range(s.n_layer)]
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        if attends[i]:
            tensors += _attention(s, b)
        else:
            tensors += [
                _norm(s, b, "attn_norm"),
                TinyTensor(f"{b}ssm_in.weight", (s.n_embd, inner + conv + heads)),
                TinyTensor(f"{b}ssm_conv1d.weight", (4, conv), "small"),
                TinyTensor(f"{b}ssm_conv1d.bias", (conv,), "zeros"),
                TinyTensor(f"{b}ssm_dt.bias", (heads,), "zeros"),
                TinyTensor(f"{b}ssm_a", (1, heads), "decay"),
                TinyTensor(f"{b}ssm_d", (1, heads), "ones"),
                TinyTensor(f"{b}ssm_norm.weight", (inner, 1), "ones"),
                TinyTensor(f"{b}ssm_out.weight", (inner, s.n_embd)),
            ]
        tensors += [_norm(s, b), *_experts(s, b), *_dense_ffn(s, b, "_shexp", s.n_ff)]
    keys = (
        _common_keys(s)
        | _expert_keys(s)
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
    return _Model("granitehybrid", keys, tensors)


def _chunked(s: TinyShape) -> _Model:
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
    return _Model("grovemoe", keys, tensors)


def _interleaved(s: TinyShape) -> _Model:
    """Llama 4: every second block has experts, the others a dense net."""
    tensors = list(_frame(s))
    for i in range(s.n_layer):
        b = f"blk.{i}."
        tensors += [*_attention(s, b), _norm(s, b)]
        if i % 2 == 1:
            tensors += [*_experts(s, b), *_dense_ffn(s, b, "_shexp", s.n_ff_exp)]
        else:
            tensors += _dense_ffn(s, b)
    keys = _common_keys(s) | _expert_keys(s) | {"interleave_moe_layer_step": 2}
    return _Model("llama4", keys, tensors)


_BUILDERS = {
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
