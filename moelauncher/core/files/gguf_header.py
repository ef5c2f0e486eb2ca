"""GGUF headers: metadata and tensor table from a file's first bytes.

In: a path. Out: a :class:`GgufHeader`. Any thread; no state; no handle stays open. The file is
not trusted: every count, length, type and offset is checked against the file's size before it
is used, with the same limits that llama.cpp has (``gguf.cpp``), so a damaged file costs neither
memory nor time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.ggml_types import GGML_TYPES, REMOVED_TYPES
from moelauncher.core.files.header_bytes import (
    GGUF_ARRAY,
    GGUF_STRING,
    VALUE_BYTES,
    VALUE_CODES,
    HeaderBytes,
    damaged,
)
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes


@dataclass(frozen=True)
class SkippedArray:
    """An array whose elements were not read (a vocabulary, say)."""

    element_type: int
    length: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One row of the tensor table.

    ``shape`` is in ggml's order: ``shape[0]`` is the fastest-varying (row) dimension.
    ``offset`` counts from the start of the data section of its own file.
    """

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    offset: int
    n_bytes: int
    n_elements: int


@dataclass(frozen=True)
class GgufHeader:
    """Everything before the weights of one file.

    A file whose weights are cut short has a sound header all the same: then ``problem`` says
    so in one sentence and ``missing_bytes`` how much is missing. It must not be loaded.
    """

    path: Path
    version: int
    byte_order: str  # "little" or "big"
    metadata: Mapping[str, object]
    tensors: tuple[TensorInfo, ...]
    alignment: int
    #: Where the data section starts, and how long the file is, in bytes.
    data_offset: int
    file_bytes: int
    problem: str = ""
    missing_bytes: int = 0


# Limits that no real file comes near; they bound time and memory on a damaged one.
_MAX_VALUES = 1 << 16
_MAX_TENSORS = 1 << 18
_MAX_KEY_BYTES = 65535
_MAX_STRING_BYTES = 16 << 20
_MAX_READ_ELEMENTS = 1 << 22
#: ggml's GGML_MAX_NAME, GGML_MAX_DIMS and INT64_MAX.
_MAX_NAME_BYTES = 63
_MAX_DIMS = 4
_MAX_INT64 = (1 << 63) - 1

#: Arrays up to these lengths are always read: per-layer numbers, tags.
SHORT_ARRAY = 4096
SHORT_STRING_ARRAY = 64

_NEWEST_VERSION = 3
_PEEK_BYTES = 4096
#: FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS of Windows: the file's name is here, its bytes are not.
_RECALLED_WHEN_READ = 0x400000


def read_header(path: Path, *, arrays: frozenset[str] = frozenset()) -> GgufHeader:
    """Read one file's header; ``arrays`` names long arrays to read (else skipped).

    Arrays of up to 4096 numbers or 64 strings are always read, as tuples. Raises
    :class:`~moelauncher.core.errors.LauncherError` with the reason, and nothing else, whatever
    the file holds. A file cut short in its *weights* does not raise: see ``problem`` of
    :class:`GgufHeader`.
    """
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise LauncherError(tr("This is a folder, not a model file."), details=str(path))
        if not stat.S_ISREG(info.st_mode):
            raise LauncherError(tr("This is not a regular file."), details=str(path))
        if _is_elsewhere(info):
            # Reading a few bytes would fetch all of them, unasked.
            raise LauncherError(
                tr("This file is kept in the cloud only."),
                tr("In its folder, choose “Always keep on this device”."),
            )
        with path.open("rb", buffering=0) as file:
            return _parse(path, HeaderBytes(file, os.fstat(file.fileno()).st_size), arrays)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _is_elsewhere(info: os.stat_result) -> bool:
    return bool(getattr(info, "st_file_attributes", 0) & _RECALLED_WHEN_READ)


def parse_header(path: Path, file: BinaryIO, file_bytes: int) -> GgufHeader:
    """The header of a file that is open somewhere else (on a server, say).

    ``path`` only names it. Raises LauncherError with the reason, and what ``file`` raises.
    """
    return _parse(path, HeaderBytes(file, file_bytes), frozenset())


def _unreadable(path: Path, error: Exception) -> LauncherError:
    if isinstance(error, FileNotFoundError):
        try:
            dangling = path.is_symlink()
        except OSError:
            dangling = False
        if dangling:
            return LauncherError(
                tr("The link points to a file that is not there."),
                tr("Download the model again, or remove the link."),
                str(error),
            )
        return LauncherError(
            tr("The file is not there any more."), tr("Refresh the list."), str(error)
        )
    if isinstance(error, PermissionError):
        return LauncherError(
            tr("The file cannot be read: access is denied."),
            tr("Check its permissions."),
            str(error),
        )
    reason = getattr(error, "strerror", None) or str(error)
    return LauncherError(tr("The file cannot be read: {reason}.").format(reason=reason))


def _parse(path: Path, data: HeaderBytes, arrays: frozenset[str]) -> GgufHeader:
    if data.file_bytes == 0:
        raise LauncherError(tr("The file is empty."), tr("Download or copy it again."))
    if data.raw(min(4, data.file_bytes)) != b"GGUF":
        raise LauncherError(
            tr("This is not a GGUF file."), tr("MoE Launcher runs models in the GGUF format.")
        )
    version, byte_order = _read_version(data)
    n_tensors, n_values = data.u64(), data.u64()
    if n_values > _MAX_VALUES:
        raise damaged(tr("its header claims {n} values").format(n=n_values))
    if n_tensors > _MAX_TENSORS:
        raise damaged(tr("its header claims {n} tensors").format(n=n_tensors))
    metadata = _read_metadata(data, n_values, arrays)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        raise damaged(tr("its alignment is {n}").format(n=alignment))
    tensors, end = _read_tensors(data, n_tensors, alignment)
    data_offset = data.position
    if n_tensors:
        data_offset = -(-data_offset // alignment) * alignment
    missing = max(0, data_offset + end - data.file_bytes) if n_tensors else 0
    problem = ""
    if missing:
        problem = tr("The file is cut short: {size} are missing.").format(
            size=format_bytes(missing)
        )
    return GgufHeader(
        path,
        version,
        byte_order,
        metadata,
        tensors,
        alignment,
        data_offset,
        data.file_bytes,
        problem,
        missing,
    )


def _read_version(data: HeaderBytes) -> tuple[int, str]:
    version, byte_order = data.u32(), "little"
    # A version of the other byte order has its number in the upper half.
    if version and not version & 0xFFFF:
        version, byte_order = int.from_bytes(version.to_bytes(4, "little"), "big"), "big"
        data.set_byte_order(">")
    if version == 0:
        raise damaged(tr("its format version is 0"))
    if version == 1:
        raise LauncherError(
            tr("The file is in GGUF version 1, which llama.cpp no longer reads."),
            tr("Download a newer conversion of the model."),
        )
    if version > _NEWEST_VERSION:
        raise LauncherError(
            tr("The file is in GGUF version {n}; this program reads versions 2 and 3.").format(
                n=version
            ),
            tr("A newer MoE Launcher may read it."),
        )
    return version, byte_order


def _read_metadata(data: HeaderBytes, n_values: int, arrays: frozenset[str]) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for _ in range(n_values):
        key = data.string(_MAX_KEY_BYTES).decode("utf-8", "backslashreplace")
        if not key:
            raise damaged(tr("a name in its header is empty"))
        if key in metadata:
            raise damaged(tr("its header names {key} twice").format(key=ascii(key[:80])))
        metadata[key] = _read_value(data, key, data.u32(), key in arrays)
    return metadata


def _read_value(data: HeaderBytes, key: str, kind: int, wanted: bool) -> object:
    if kind in VALUE_CODES:
        return data.value(kind)
    if kind == GGUF_STRING:
        return data.string(_MAX_STRING_BYTES).decode("utf-8", "replace")
    if kind == GGUF_ARRAY:
        kind, length = data.u32(), data.u64()
        if kind in VALUE_CODES:
            n_bytes = length * VALUE_BYTES[kind]
            if length <= SHORT_ARRAY or (
                wanted and length <= _MAX_READ_ELEMENTS and n_bytes <= data.remaining
            ):
                return data.values(kind, length)
            data.skip(n_bytes)
            return SkippedArray(kind, length)
        if kind == GGUF_STRING:
            data.count_strings(length)
            if length <= SHORT_STRING_ARRAY or wanted:
                return tuple(
                    data.string(_MAX_STRING_BYTES).decode("utf-8", "replace") for _ in range(length)
                )
            data.skip_strings(length)
            return SkippedArray(kind, length)
    raise damaged(
        tr("the value {key} has the unknown type {kind}").format(key=ascii(key[:80]), kind=kind)
    )


def _read_tensors(
    data: HeaderBytes, n_tensors: int, alignment: int
) -> tuple[tuple[TensorInfo, ...], int]:
    """The tensor table, and where its last byte lies in the data section."""
    tensors: list[TensorInfo] = []
    names: set[str] = set()
    next_offset = end = 0
    for _ in range(n_tensors):
        name = data.string(_MAX_NAME_BYTES).decode("utf-8", "backslashreplace")
        if name in names:
            raise damaged(tr("it holds the tensor {name} twice").format(name=ascii(name)))
        names.add(name)
        n_dims = data.u32()
        if n_dims > _MAX_DIMS:
            raise damaged(
                tr("tensor {name} claims {n} dimensions").format(name=ascii(name), n=n_dims)
            )
        shape = tuple(data.u64() for _ in range(n_dims))
        n_elements = 1
        for size in shape:
            n_elements *= size
            if size > _MAX_INT64 or n_elements > _MAX_INT64:
                raise damaged(tr("tensor {name} has an absurd shape").format(name=ascii(name)))
        kind = data.u32()
        n_bytes = _tensor_bytes(name, kind, shape, n_elements)
        offset = data.u64()
        if offset != next_offset:
            raise damaged(tr("tensor {name} does not lie where it should").format(name=ascii(name)))
        end = offset + n_bytes
        next_offset = -(-end // alignment) * alignment
        tensors.append(TensorInfo(name, shape, kind, offset, n_bytes, n_elements))
    return tuple(tensors), end


def _tensor_bytes(name: str, kind: int, shape: tuple[int, ...], n_elements: int) -> int:
    """The bytes that a tensor of ``kind`` takes, or the reason why it cannot be read."""
    storage = GGML_TYPES.get(kind)
    if storage is None:
        if kind in REMOVED_TYPES:
            raise LauncherError(
                tr("The file uses an old tensor type ({n}) that llama.cpp no longer reads.").format(
                    n=kind
                ),
                tr("Download a newer conversion of the model."),
            )
        raise LauncherError(
            tr("The file uses a tensor type ({n}) that this llama.cpp does not know.").format(
                n=kind
            ),
            tr("A newer MoE Launcher may read it."),
            name,
        )
    row = shape[0] if shape else 1
    if row % storage.block_size:
        raise damaged(
            tr("a row of tensor {name} is not a whole number of {type} blocks").format(
                name=ascii(name), type=storage.name
            )
        )
    return n_elements // storage.block_size * storage.block_bytes


def first_architecture(path: Path) -> str | None:
    """The architecture, if it is the file's first value (as converters write it); else None.

    One small read: good enough to tell projectors from models before their headers are read.
    Never raises.
    """
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode) or _is_elsewhere(info):
            return None
        with path.open("rb", buffering=0) as file:
            data = HeaderBytes(file, min(os.fstat(file.fileno()).st_size, _PEEK_BYTES))
            if data.raw(4) != b"GGUF":
                return None
            _read_version(data)
            data.skip(16)
            if data.string(_PEEK_BYTES) != b"general.architecture" or data.u32() != GGUF_STRING:
                return None
            return data.string(_PEEK_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, LauncherError):
        return None
