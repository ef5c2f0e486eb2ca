"""GGUF headers: metadata and tensor table from a file's first bytes.

In: a path. Out: a :class:`GgufHeader`. Any thread; no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: What a metadata value can be; arrays that were skipped are :class:`SkippedArray`.
Value = "bool | int | float | str | tuple | SkippedArray"


@dataclass(frozen=True)
class SkippedArray:
    """An array whose elements were not read (a vocabulary, say)."""

    element_type: int
    length: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One row of the tensor table.

    ``shape`` is in ggml's order: ``shape[0]`` is the fastest-varying (row) dimension.
    ``offset`` counts from the start of the file's data section, in the file's shard ``shard``.
    """

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    offset: int
    n_bytes: int
    n_elements: int
    shard: int = 0


@dataclass(frozen=True)
class GgufHeader:
    """Everything before the weights of one file."""

    path: Path
    version: int
    byte_order: str  # "little" or "big"
    metadata: Mapping[str, object]
    tensors: tuple[TensorInfo, ...]
    alignment: int
    #: Where the data section starts, and how long the file is, in bytes.
    data_offset: int
    file_bytes: int


def read_header(path: Path, *, arrays: frozenset[str] = frozenset()) -> GgufHeader:
    """Read one file's header; ``arrays`` names long arrays to read (else skipped).

    Raises :class:`~moelauncher.core.errors.LauncherError` with the reason.
    """
    raise NotImplementedError
