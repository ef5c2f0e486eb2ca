"""GGUF files that the writer makes, read back by upstream's own reader."""

import io
from pathlib import Path

import gguf
import pytest

from moelauncher.core.files.gguf_writer import NewTensor, write_gguf


def written(tmp_path: Path, metadata: dict[str, object], tensors: list[NewTensor]) -> Path:
    path = tmp_path / "written.gguf"
    with path.open("wb") as out:
        write_gguf(out, metadata, tensors)
    return path


def test_values_come_back_with_the_types_that_llama_cpp_asks_for(tmp_path):
    metadata = {
        "general.architecture": "llama",
        "count": 30,
        "big": 1 << 40,
        "below": -3,
        "scale": 0.5,
        "flag": True,
        "types": (1, 3, -1),
        "words": ("a", "ä", ""),
        "nothing": (),
    }
    fields = gguf.GGUFReader(str(written(tmp_path, metadata, []))).fields
    assert {key: fields[key].contents() for key in metadata if key != "nothing"} == {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in metadata.items()
        if key != "nothing"
    }
    kinds = {key: fields[key].types[-1].name for key in metadata if key != "nothing"}
    assert kinds == {
        "general.architecture": "STRING",
        "count": "UINT32",
        "big": "UINT64",
        "below": "INT32",
        "scale": "FLOAT32",
        "flag": "BOOL",
        "types": "INT32",
        "words": "STRING",
    }


def test_tensors_are_aligned_and_keep_their_bytes(tmp_path):
    tensors = [
        NewTensor("odd", (3,), 0, 12, lambda: b"abcdefghijkl"),
        NewTensor("even", (8, 2), 0, 64, lambda: bytes(range(64))),
    ]
    path = written(tmp_path, {"general.architecture": "llama"}, tensors)
    first, second = gguf.GGUFReader(str(path)).tensors
    assert first.data.tobytes() == b"abcdefghijkl"
    assert second.data.tobytes() == bytes(range(64))
    assert list(second.shape) == [8, 2]
    assert int(second.data_offset) % 32 == 0


def test_progress_counts_bytes_of_weights():
    seen = []
    tensors = [NewTensor(name, (1,), 0, 4, lambda: b"1234") for name in "ab"]
    write_gguf(io.BytesIO(), {}, tensors, wrote=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 8), (8, 8)]


def test_a_tensor_of_another_length_is_refused():
    with pytest.raises(ValueError, match="short: 3 bytes instead of 4"):
        write_gguf(io.BytesIO(), {}, [NewTensor("short", (1,), 0, 4, lambda: b"123")])


@pytest.mark.parametrize("value", [None, b"raw", (1, "two")])
def test_a_value_that_gguf_cannot_hold_is_refused(value):
    with pytest.raises(TypeError):
        write_gguf(io.BytesIO(), {"key": value}, [])
