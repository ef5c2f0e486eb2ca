"""What a tiny model is made of: its sizes, its tensors, its vocabulary."""

from __future__ import annotations

from dataclasses import dataclass, field

from gguf import GGMLQuantizationType

#: Behind the vocabulary's 256 bytes and one pair of letters.
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
N_VOCAB = 256 + 1 + len(SPECIAL_TOKENS)

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
    more_special_tokens: tuple[str, ...] = ()

    @property
    def n_vocab(self) -> int:
        """Tokens in the vocabulary."""
        return N_VOCAB + len(self.more_special_tokens)


@dataclass(frozen=True)
class TinyTensor:
    """``shape`` in ggml's order; ``fill``: matrix, ones, zeros, small, decay."""

    name: str
    shape: tuple[int, ...]
    fill: str = "matrix"


@dataclass(frozen=True)
class TinyModel:
    """``keys`` come without the architecture's name in front."""

    arch: str
    keys: dict[str, object]
    tensors: list[TinyTensor]


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
