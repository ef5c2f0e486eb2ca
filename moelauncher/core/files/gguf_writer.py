"""Writing GGUF files: metadata, tensor table, weights, in one pass.

In: plain values and tensors whose bytes are fetched one at a time. Out: GGUF version 3,
little endian. Holds one tensor in memory at most. Any thread; no state.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32

_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _UINT64 = 4, 5, 6, 7, 8, 9, 10


@dataclass(frozen=True)
class NewTensor:
    """A tensor to write: ``shape`` in ggml's order, ``fetch`` returns its ``n_bytes`` bytes."""

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    n_bytes: int
    fetch: Callable[[], bytes]


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(raw)) + raw


def _scalar(value: object) -> tuple[int, bytes]:
    """Type number and bytes of one value; the types are those that llama.cpp asks for."""
    if isinstance(value, bool):
        return _BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        if value < 0:
            return _INT32, struct.pack("<i", value)
        if value < 1 << 32:
            return _UINT32, struct.pack("<I", value)
        return _UINT64, struct.pack("<Q", value)
    if isinstance(value, float):
        return _FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return _STRING, _string(value)
    raise TypeError(f"no GGUF type for {type(value).__name__}")


def _array(values: Sequence[object]) -> bytes:
    """Element type, length and elements; integers are int32, as token types are stored."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return struct.pack("<IQ", _INT32, len(values)) + struct.pack(f"<{len(values)}i", *values)
    encoded = [_scalar(value) for value in values]
    kinds = {kind for kind, _ in encoded}
    if len(kinds) != 1:
        raise TypeError("the elements of a GGUF array must be of one type")
    return struct.pack("<IQ", kinds.pop(), len(values)) + b"".join(raw for _, raw in encoded)


def _pairs(metadata: Mapping[str, object]) -> Iterator[bytes]:
    for key, value in metadata.items():
        if isinstance(value, (tuple, list)):
            yield _string(key) + struct.pack("<I", _ARRAY) + _array(value)
        else:
            kind, raw = _scalar(value)
            yield _string(key) + struct.pack("<I", kind) + raw


def _padding(n_bytes: int) -> int:
    return -n_bytes % ALIGNMENT


def write_gguf(
    out: BinaryIO,
    metadata: Mapping[str, object],
    tensors: Sequence[NewTensor],
    *,
    wrote: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write a whole file to ``out``.

    Integers become uint32 (int32 below zero, uint64 above 2^32), floats float32, tuples
    arrays (integers in them int32). ``wrote(done, total)`` is called after every tensor
    with bytes of weights; an exception that it raises ends the writing.

    Raises TypeError for a value that GGUF cannot hold, ValueError where ``fetch``
    returns another number of bytes than promised, OSError from ``out``.
    """
    header = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    header.extend(_pairs(metadata))
    offset = 0
    for tensor in tensors:
        header.append(_string(tensor.name))
        header.append(struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape))
        header.append(struct.pack("<IQ", tensor.ggml_type, offset))
        offset += tensor.n_bytes + _padding(tensor.n_bytes)
    raw = b"".join(header)
    out.write(raw + bytes(_padding(len(raw))))
    total = sum(tensor.n_bytes for tensor in tensors)
    done = 0
    for tensor in tensors:
        data = tensor.fetch()
        if len(data) != tensor.n_bytes:
            raise ValueError(f"{tensor.name}: {len(data)} bytes instead of {tensor.n_bytes}")
        out.write(data)
        out.write(bytes(_padding(tensor.n_bytes)))
        done += tensor.n_bytes
        wrote(done, total)
