"""Tensor tables of every expert architecture, written down block by block.

A block is a word of letters: ``a`` attention, ``m`` MLA attention, ``r`` recurrent (Mamba, delta
net), ``c`` short convolution; ``D`` a dense net, ``E`` experts as gate, up and down, ``F`` with
gate and up fused, ``U`` without a gate, ``C`` chunk experts beside others, ``B`` biases of the
experts, ``S`` a shared expert, ``L`` latent projections, ``X`` old Mixtral's one tensor an expert,
``n`` an MTP head. Order within a word means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

N_EMBD, N_FF, N_EXPERT, N_USED, N_VOCAB = 32, 32, 4, 2, 64


@dataclass(frozen=True)
class ExpertLayout:
    """One architecture's file: its blocks, and keys that it has beside the usual ones."""

    arch: str
    blocks: tuple[str, ...]
    keys: Mapping[str, object] = field(default_factory=dict)
    role: str = "chat"

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """The blocks that the slider moves, by the letters."""
        return tuple(
            index
            for index, block in enumerate(self.blocks)
            if set(block) & set("EFU") and "n" not in block
        )


def _layout(arch: str, blocks: str, role: str = "chat", **keys: object) -> ExpertLayout:
    return ExpertLayout(arch, tuple(blocks.split()), keys, role)


#: Read from ``src/models/*.cpp`` of the pinned llama.cpp: every one that makes expert tensors.
EXPERT_LAYOUTS = (
    _layout("llama", "aE aE aE"),
    _layout("llama4", "aD aES aD aES", interleave_moe_layer_step=2),
    _layout("grok", "aEB aE"),
    _layout("grok", "aU aU"),
    _layout("qwen2moe", "aES aES"),
    _layout("qwen3moe", "aE aE"),
    _layout("qwen3vlmoe", "aE aE"),
    _layout("qwen3next", "rFS rES rES aES", full_attention_interval=4),
    _layout("qwen35moe", "rES rFS rES aES aESn", nextn_predict_layers=1),
    _layout("qwen4exp", "rFS rES rES aES"),
    _layout("phimoe", "aE aE"),
    _layout("dbrx", "aE aE"),
    _layout("olmoe", "aE aE"),
    _layout("arctic", "aDE aDE"),
    _layout("deepseek", "aD aES aES", leading_dense_block_count=1),
    _layout("deepseek2", "mD mES mFS", leading_dense_block_count=1),
    _layout("deepseek2-ocr", "aD aES", leading_dense_block_count=1),
    _layout("deepseek32", "mD mES mESn", nextn_predict_layers=1),
    _layout("deepseek4", "aES aES aESn", nextn_predict_layers=1),
    _layout("glm4moe", "aD aES aESn", leading_dense_block_count=1, nextn_predict_layers=1),
    _layout("glm-dsa", "mD mD mES mESn", leading_dense_block_count=2, nextn_predict_layers=1),
    _layout("glm5-next", "rD mES rESn", nextn_predict_layers=1),
    _layout("jamba", "rD rE aD rE"),
    _layout("nemotron_h_moe", "r US a USL r", feed_forward_length=[0, 32, 0, 32, 0]),
    _layout("granitemoe", "aES aES"),
    _layout("granitemoe", "aF aF"),
    _layout("granitehybrid", "rES aES"),
    _layout("granite_swa", "aES aE"),
    _layout("lfm2moe", "cD cD aE cE", leading_dense_block_count=2),
    _layout("minimax-01", "aE aE"),
    _layout("minimax-m2", "aE aE"),
    _layout("minimax-m3", "aD aES", leading_dense_block_count=1),
    _layout("gpt-oss", "aEB aEB"),
    _layout("grovemoe", "aEC aEC"),
    _layout("ernie4_5-moe", "aD aES aD aES", leading_dense_block_count=1),
    _layout("hunyuan-moe", "aES aES"),
    _layout("hy_v3", "aD aFS aESn", nextn_predict_layers=1),
    _layout("hy_v4", "mD mES", leading_dense_block_count=1),
    _layout("dots1", "aD aES", leading_dense_block_count=1),
    _layout("dots3note", "mD mES mDn", leading_dense_block_count=1, nextn_predict_layers=1),
    _layout("bailingmoe", "aES aES"),
    _layout("bailingmoe2", "aD aES aESn", leading_dense_block_count=1, nextn_predict_layers=1),
    _layout("bailingmoe3", "rD mES rES", leading_dense_block_count=1),
    _layout("exaone-moe", "aD aES aDn", leading_dense_block_count=1, nextn_predict_layers=1),
    _layout("afmoe", "aD aES", leading_dense_block_count=1),
    _layout("laguna", "aD aES", leading_dense_block_count=1),
    _layout("cohere2moe", "aD aFS aESn", leading_dense_block_count=1, nextn_predict_layers=1),
    _layout("smallthinker", "aE aE"),
    _layout("step35", "aD aES aDn", nextn_predict_layers=1),
    _layout("mimo2", "aD aE aDn aDn", nextn_predict_layers=2),
    _layout("kimi-linear", "rD rES mES", leading_dense_block_count=1),
    _layout("kimi-k3", "rD rESL mESL", leading_dense_block_count=1),
    _layout("gemma4", "aDE aDF"),
    _layout("maple", "aE aE"),
    _layout("mellum", "aE aE"),
    _layout("mistral3", "aE aE"),
    _layout("mistral4", "mD mES", leading_dense_block_count=1),
    _layout("minicpm", "aE aE"),
    _layout("refact", "aE aE"),
    _layout("granite", "aE aE"),
    _layout("llada-moe", "aE aE", role="diffusion"),
    _layout("rnd1", "aE aE", role="diffusion"),
    _layout("nomic-bert-moe", "aD aU aD aU", role="embedding"),
)


def _block_tensors(letters: str, b: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes in ggml's order."""
    wide, experts = (N_EMBD, N_FF), (N_EMBD, N_FF, N_EXPERT)
    parts: dict[str, list[tuple[str, tuple[int, ...]]]] = {
        "a": [(f"attn_{part}.weight", (N_EMBD, N_EMBD)) for part in ("q", "k", "v", "output")],
        "m": [("attn_kv_a_mqa.weight", wide), ("attn_output.weight", wide)],
        "r": [("ssm_a", (4,)), ("ssm_conv1d.weight", (4, N_EMBD)), ("ssm_out.weight", wide)],
        "c": [("shortconv.conv.weight", (3, N_EMBD)), ("shortconv.in_proj.weight", wide)],
        "D": [(f"ffn_{part}.weight", wide) for part in ("gate", "up", "down")],
        "E": [(f"ffn_{part}_exps.weight", experts) for part in ("gate", "up", "down")],
        "F": [
            ("ffn_gate_up_exps.weight", (N_EMBD, 2 * N_FF, N_EXPERT)),
            ("ffn_down_exps.weight", experts),
        ],
        "U": [(f"ffn_{part}_exps.weight", experts) for part in ("up", "down")],
        "C": [(f"ffn_{part}_chexps.weight", (N_EMBD, N_FF, 2)) for part in ("gate", "up", "down")],
        "B": [(f"ffn_{part}_exps.bias", (N_FF, N_EXPERT)) for part in ("gate", "up", "down")],
        "S": [(f"ffn_{part}_shexp.weight", wide) for part in ("gate", "up", "down")],
        "L": [("ffn_latent_down.weight", wide), ("ffn_latent_up.weight", wide)],
        "X": [
            (f"ffn_{part}.{expert}.weight", wide)
            for expert in range(N_EXPERT)
            for part in ("gate", "up", "down")
        ],
        "n": [("nextn.eh_proj.weight", (2 * N_EMBD, N_EMBD)), ("nextn.enorm.weight", (N_EMBD,))],
    }
    yield f"{b}attn_norm.weight", (N_EMBD,)
    if set(letters) & set("EFUX"):
        yield f"{b}ffn_gate_inp.weight", (N_EMBD, N_EXPERT)
        yield f"{b}exp_probs_b.bias", (N_EXPERT,)
    for letter in letters:
        for name, shape in parts[letter]:
            yield b + name, shape


def write_layout(path: Path, layout: ExpertLayout, *, keys_of_experts: bool = True) -> Path:
    """Write a file of zeros with this tensor table; ``keys_of_experts`` False leaves counts out."""
    writer = GGUFWriter(str(path), layout.arch)
    numbers: dict[str, object] = {
        "block_count": len(layout.blocks),
        "context_length": 2048,
        "embedding_length": N_EMBD,
        "feed_forward_length": N_FF,
        "attention.head_count": 2,
        "attention.head_count_kv": [0 if set(b) & set("rc") else 1 for b in layout.blocks],
        **({"expert_count": N_EXPERT, "expert_used_count": N_USED} if keys_of_experts else {}),
        **layout.keys,
    }
    for key, value in numbers.items():
        if isinstance(value, list):
            writer.add_array(f"{layout.arch}.{key}", value)
        else:
            writer.add_uint32(f"{layout.arch}.{key}", int(str(value)))
    tensors = [("token_embd.weight", (N_EMBD, N_VOCAB)), ("output_norm.weight", (N_EMBD,))]
    tensors.append(("output.weight", (N_EMBD, N_VOCAB)))
    for index, letters in enumerate(layout.blocks):
        tensors += _block_tensors(letters, f"blk.{index}.")
    for name, shape in tensors:
        writer.add_tensor(name, np.zeros(tuple(reversed(shape)), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def expert_table_bytes(layout: ExpertLayout) -> int:
    """What the slider can move, summed up from the letters alone."""
    one = 4 * N_EMBD * N_FF
    sizes = {"E": 3 * N_EXPERT * one, "F": 3 * N_EXPERT * one, "U": 2 * N_EXPERT * one}
    sizes |= {"C": 3 * 2 * one, "B": 3 * 4 * N_FF * N_EXPERT}
    return sum(
        sizes.get(letter, 0) for block in layout.blocks if "n" not in block for letter in block
    )
