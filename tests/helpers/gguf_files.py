"""Tiny GGUF models of every expert layout, which llama.cpp really loads and runs.

Random small weights from a fixed seed, a byte-level vocabulary, a few hundred KB a file. They
talk nonsense, deterministically, and hold every tensor-table shape that the program must know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFWriter, quants

from tests.helpers.tiny_layouts import LAYOUTS
from tests.helpers.tiny_shape import (
    SPECIAL_TOKENS,
    TinyShape,
    TinyTensor,
    byte_symbols,
)

#: Every kind that :func:`write_tiny_model` knows.
TINY_KINDS = tuple(LAYOUTS)
#: The kinds that today's llama.cpp loads ("old-mixtral" it refuses).
RUNNABLE_KINDS = tuple(kind for kind in TINY_KINDS if kind != "old-mixtral")


def write_tiny_model(path: Path, kind: str = "moe", **overrides: object) -> Path:
    """Write a tiny model of ``kind`` and return its path (the first shard's where it is split).

    ``overrides`` are fields of :class:`TinyShape`. With ``split_max_tensors`` the files are named
    ``STEM-00001-of-0000N.gguf``.
    """
    shape = replace(TinyShape(), **overrides)  # type: ignore[arg-type]
    model = LAYOUTS[kind](shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    endian = GGUFEndian.BIG if shape.big_endian else GGUFEndian.LITTLE
    writer = GGUFWriter(
        str(path), model.arch, endianess=endian, split_max_tensors=shape.split_max_tensors
    )
    try:
        writer.add_name(shape.name or f"Tiny {kind}")
        for key, value in model.keys.items():
            add_metadata(writer, f"{model.arch}.{key}", value)
        for key, value in shape.metadata.items():
            add_metadata(writer, key, value)
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


def add_metadata(writer: GGUFWriter, key: str, value: object) -> None:
    """Write one value of the header, by its Python type; whole numbers as uint32."""
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


def _add_vocabulary(writer: GGUFWriter, shape: TinyShape) -> None:
    special = (*SPECIAL_TOKENS, *shape.more_special_tokens)
    tokens = [*byte_symbols(), "th", *special]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3] * len(special))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(259)
    writer.add_add_bos_token(False)
    if shape.chat_template is not None:
        writer.add_chat_template(shape.chat_template)
