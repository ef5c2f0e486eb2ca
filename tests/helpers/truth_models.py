"""Published models as sparse files: real headers, holes for weights.

Each file has the exact tensor table of a model whose llama.cpp load log somebody published, so
sums over it can be held against what llama.cpp allocated. A few MB of disk each; llama.cpp's
dry run loads them.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

from moelauncher.core.files.ggml_types import GGML_TYPES
from tests.helpers.gguf_files import add_metadata
from tests.helpers.tiny_shape import CHAT_TEMPLATE, byte_symbols
from tests.helpers.truth_layouts import TRUTHS, cut

MIB = 1 << 20
TRUTH_MODELS = tuple(TRUTHS)


@dataclass(frozen=True)
class PublishedLog:
    """What llama.cpp logged for a model, in MiB, with everything that fits on the GPU there."""

    gpu_dense_mib: float  # attention, norms, routers, output
    expert_mib: float
    ram_mib: float  # token_embd


#: From load logs that strangers posted; experts and dense weights as the runs placed them.
PUBLISHED = {
    "gpt-oss-20b-mxfp4": PublishedLog(1242.03, 10294.17 - 586.82, 586.82),
    "qwen3-30b-a3b-q4_k_m": PublishedLog(135.76 + 648.66, 16906.92 - 166.92, 166.92),
    "qwen3-coder-30b-a3b-q8_0": PublishedLog(30658.12 - 29376.0, 29376.0, 315.30),
    "deepseek-v2-lite-q4_0": PublishedLog(8376.26 - 7722.0, 7722.0, 112.50),
}


def write_truth_model(folder: Path, name: str, *, n_layer: int | None = None) -> Path:
    """Write the model ``name`` (one of :data:`TRUTH_MODELS`) unless it is there; returns its path.

    ``n_layer`` cuts it off after so many blocks: a load reads through the holes as well.

    The file is sparse where the file system can do that; it is never filled with data.
    """
    path = folder / (f"{name}.gguf" if n_layer is None else f"{name}-{n_layer}-layers.gguf")
    if path.exists():
        return path
    header, size_bytes = _header_of(name, n_layer)
    half = path.with_suffix(f".{os.getpid()}.part")
    with half.open("wb") as file:
        file.write(header)
        _keep_holes(file)
        file.truncate(size_bytes)
    half.replace(path)
    return path


@lru_cache(maxsize=16)
def _header_of(name: str, n_layer: int | None) -> tuple[bytes, int]:
    """All of the file before its data, and how large it is with them. It takes a while to make."""
    truth = TRUTHS[name]()
    if n_layer is not None:
        truth = cut(truth, n_layer)
    data_bytes = 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "header.gguf"
        writer = GGUFWriter(str(path), truth.arch)
        writer.add_name(name)
        for key, value in truth.keys.items():
            add_metadata(writer, f"{truth.arch}.{key}", value)
        _add_padded_vocabulary(writer, truth.n_vocab)
        for row_name, shape, kind in truth.rows:
            n_bytes = _row_bytes(shape, kind)
            writer.add_tensor_info(
                row_name, tuple(reversed(shape)), np.dtype(np.float32), n_bytes, raw_dtype=kind
            )
            data_bytes += -(-n_bytes // 32) * 32
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        header = path.read_bytes()
    return header, -(-len(header) // 32) * 32 + data_bytes


def _keep_holes(file: BinaryIO) -> None:
    """NTFS reserves the holes too unless it is told not to; others keep them by themselves."""
    if sys.platform != "win32":
        return
    import ctypes
    import msvcrt

    set_sparse = 0x900C4  # FSCTL_SET_SPARSE of winioctl.h
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(file.fileno()))
    answer = ctypes.c_uint32()
    done = ctypes.windll.kernel32.DeviceIoControl(
        handle, set_sparse, None, 0, None, 0, ctypes.byref(answer), None
    )
    assert done, "this disk keeps no sparse files: the models would fill it"


def _row_bytes(shape: tuple[int, ...], kind: GGMLQuantizationType) -> int:
    storage = GGML_TYPES[int(kind)]
    return prod(shape) // storage.block_size * storage.block_bytes


def _add_padded_vocabulary(writer: GGUFWriter, n_vocab: int) -> None:
    symbols = byte_symbols()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*symbols, *(f"[PAD{i}]" for i in range(len(symbols), n_vocab))])
    writer.add_token_types([1] * len(symbols) + [5] * (n_vocab - len(symbols)))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(100)
    writer.add_chat_template(CHAT_TEMPLATE)
