"""A GGUF file again, with its metadata changed: what a damaged or odd file looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moelauncher.core.files.gguf_header import SkippedArray, TensorInfo, read_header
from moelauncher.core.files.gguf_writer import NewTensor, write_gguf

DELETED = object()
"""As a value: leave this key out."""


def edit_gguf(
    source: Path,
    target: Path,
    changes: dict[str, object] | None = None,
    *,
    keep_tensor: Callable[[str], bool] = lambda name: True,
) -> Path:
    """Write ``source`` as ``target`` with ``changes`` to its metadata. Returns ``target``.

    Keys with a leading dot belong to the architecture: ".block_count".
    """
    header = read_header(source)
    skipped = (key for key, value in header.metadata.items() if isinstance(value, SkippedArray))
    header = read_header(source, arrays=frozenset(skipped))
    data = source.read_bytes()
    metadata = dict(header.metadata)
    for key, value in (changes or {}).items():
        name = f"{metadata['general.architecture']}{key}" if key.startswith(".") else key
        if value is DELETED:
            del metadata[name]
        else:
            metadata[name] = value

    def bytes_of(tensor: TensorInfo) -> Callable[[], bytes]:
        start = header.data_offset + tensor.offset
        return lambda: data[start : start + tensor.n_bytes]

    tensors = [
        NewTensor(tensor.name, tensor.shape, tensor.ggml_type, tensor.n_bytes, bytes_of(tensor))
        for tensor in header.tensors
        if keep_tensor(tensor.name)
    ]
    with target.open("wb") as out:
        write_gguf(out, metadata, tensors)
    return target
