"""Headers read from real files, and the sentence for every way in which a file can be bad."""

from __future__ import annotations

import os
import stat
import struct
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from gguf import GGMLQuantizationType, GGUFReader

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import SkippedArray, first_architecture, read_header
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.platform_marks import links
from tests.helpers.tiny_shape import N_VOCAB

U32, STRING, ARRAY = 4, 8, 9


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def u32(key: str, value: int) -> bytes:
    return pair(key, U32, struct.pack("<I", value))


def array(key: str, kind: int, length: int, elements: bytes) -> bytes:
    return pair(key, ARRAY, struct.pack("<IQ", kind, length) + elements)


def row(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dims + struct.pack("<IQ", kind, offset)


def gguf(
    pairs: list[bytes] | None = None,
    rows: list[bytes] | None = None,
    *,
    version: int = 3,
    n_values: int | None = None,
    n_tensors: int | None = None,
    data_bytes: int = 0,
    padded: bool = True,
) -> bytes:
    pairs, rows = pairs or [], rows or []
    head = b"GGUF" + struct.pack(
        "<IQQ",
        version,
        len(rows) if n_tensors is None else n_tensors,
        len(pairs) if n_values is None else n_values,
    )
    body = head + b"".join(pairs) + b"".join(rows)
    return body + b"\0" * (-len(body) % 32 + data_bytes if padded else 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.gguf"


def problem(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(LauncherError) as caught:
        read_header(path)
    return caught.value.message


def test_the_tensor_table_is_what_gguf_py_reads(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "moe.gguf", "moe")
    header, other = read_header(path), GGUFReader(str(path))
    assert [
        (t.name, t.shape, t.ggml_type, t.n_bytes, t.n_elements, header.data_offset + t.offset)
        for t in header.tensors
    ] == [
        (
            t.name,
            tuple(int(n) for n in t.shape),
            int(t.tensor_type),
            int(t.n_bytes),
            int(t.n_elements),
            int(t.data_offset),
        )
        for t in other.tensors
    ]
    assert (header.version, header.byte_order, header.alignment) == (3, "little", 32)
    assert header.file_bytes == path.stat().st_size
    assert (header.problem, header.missing_bytes) == ("", 0)


def test_long_arrays_are_skipped_unless_named(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "moe.gguf", "moe")
    key = "tokenizer.ggml.tokens"
    assert read_header(path).metadata[key] == SkippedArray(STRING, N_VOCAB)
    tokens = read_header(path, arrays=frozenset({key})).metadata[key]
    assert isinstance(tokens, tuple)
    assert (len(tokens), tokens[-1]) == (N_VOCAB, "<|im_end|>")


def test_what_follows_a_skipped_array_is_read_right(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "moe.gguf", "moe")
    key = "tokenizer.ggml.tokens"
    skipped, whole = read_header(path), read_header(path, arrays=frozenset({key}))
    assert skipped.tensors == whole.tensors
    assert {**skipped.metadata, key: None} == {**whole.metadata, key: None}


def test_short_arrays_are_always_read(path: Path) -> None:
    path.write_bytes(
        gguf(
            [
                array("a", U32, 3, struct.pack("<3I", 4, 0, 4)),
                array("b", STRING, 2, text("tag") + text("other")),
                array("c", 7, 2, b"\x01\x00"),
                array("d", 6, 4097, b"\0" * 4 * 4097),
            ]
        )
    )
    assert read_header(path).metadata == {
        "a": (4, 0, 4),
        "b": ("tag", "other"),
        "c": (True, False),
        "d": SkippedArray(6, 4097),
    }


def test_big_endian_is_read_as_well(tmp_path: Path) -> None:
    little = read_header(write_tiny_model(tmp_path / "l.gguf", "sliding"))
    big = read_header(write_tiny_model(tmp_path / "b.gguf", "sliding", big_endian=True))
    assert big.byte_order == "big"
    assert big.tensors == little.tensors
    assert big.metadata == little.metadata


def test_version_2_is_read_as_well(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "x.gguf", "dense")
    newer = read_header(path)
    data = bytearray(path.read_bytes())
    data[4] = 2
    path.write_bytes(data)
    older = read_header(path)
    assert (older.version, older.tensors) == (2, newer.tensors)


def test_a_vocabulary_alone_has_no_tensors(path: Path) -> None:
    path.write_bytes(gguf([pair("general.architecture", STRING, text("llama"))]))
    header = read_header(path)
    assert (header.tensors, header.problem) == ((), "")


def test_undecodable_text_is_replaced(path: Path) -> None:
    path.write_bytes(gguf([pair("general.name", STRING, text(b"a\xff\xfeb"))]))
    assert read_header(path).metadata["general.name"] == "a\ufffd\ufffdb"


def test_alignment_moves_the_data(path: Path) -> None:
    path.write_bytes(
        gguf([u32("general.alignment", 256)], [row("a", (4,)), row("b", (4,), 0, 256)])
        + b"\0" * 1024
    )
    header = read_header(path)
    assert header.data_offset % 256 == 0
    assert (header.alignment, header.problem) == (256, "")


def test_a_file_cut_in_the_weights_still_says_what_it_is(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "x.gguf", "moe", matrix_type=GGMLQuantizationType.F32)
    whole = read_header(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 300_000)
    cut = read_header(path)
    assert cut.metadata["general.architecture"] == "qwen3moe"
    assert cut.tensors == whole.tensors
    assert cut.missing_bytes == 300_000
    assert cut.problem == "The file is cut short: 293 KiB are missing."


def test_a_file_cut_anywhere_in_the_header_says_so(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "x.gguf", "dense", n_layer=1)
    end = read_header(path).data_offset
    data = path.read_bytes()
    for length in {*range(4, 120), *range(120, end - 32, 211)}:
        assert problem(path, data[:length]) == (
            "The file is cut short: it ends inside its header."
        ), length


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The file is empty."),
        (b"G", "This is not a GGUF file."),
        (b"PK\x03\x04" + b"\0" * 100, "This is not a GGUF file."),
        (gguf(version=1), "The file is in GGUF version 1, which llama.cpp no longer reads."),
        (
            gguf(version=4),
            "The file is in GGUF version 4; this program reads versions 2 and 3.",
        ),
        (gguf(version=0), "The file is damaged: its format version is 0."),
        (
            gguf(n_values=1 << 60),
            "The file is damaged: its header claims 1152921504606846976 values.",
        ),
        (
            gguf(n_tensors=1 << 62),
            "The file is damaged: its header claims 4611686018427387904 tensors.",
        ),
        (
            gguf([struct.pack("<Q", 1 << 63)]),
            "The file is damaged: a text in its header claims 9223372036854775808 bytes.",
        ),
        (
            gguf([pair("a", STRING, struct.pack("<Q", (1 << 64) - 1))]),
            "The file is damaged: a text in its header claims 18446744073709551615 bytes.",
        ),
        (
            gguf([array("a", U32, 1 << 62, b"")]),
            "The file is damaged: an array in its header claims 18446744073709551616 bytes.",
        ),
        (
            gguf([array("a", STRING, 1 << 40, b"")]),
            "The file is damaged: an array in its header claims 1099511627776 texts.",
        ),
        (
            gguf([array("a", STRING, 100, struct.pack("<Q", 1 << 63) * 100)]),
            "The file is cut short: it ends inside its header.",
        ),
        (
            gguf([array("a", ARRAY, 1, b"")]),
            "The file is damaged: the value 'a' has the unknown type 9.",
        ),
        (
            gguf([pair("a", 77, b"")]),
            "The file is damaged: the value 'a' has the unknown type 77.",
        ),
        (gguf([u32("", 1)]), "The file is damaged: a name in its header is empty."),
        (
            gguf([u32("a", 1), u32("a", 2)]),
            "The file is damaged: its header names 'a' twice.",
        ),
        (gguf([u32("general.alignment", 0)]), "The file is damaged: its alignment is 0."),
        (gguf([u32("general.alignment", 24)]), "The file is damaged: its alignment is 24."),
        (
            gguf([pair("general.alignment", 7, b"\x01")]),
            "The file is damaged: its alignment is True.",
        ),
        (
            gguf(rows=[row("t", (1, 1, 1, 1, 1))]),
            "The file is damaged: tensor 't' claims 5 dimensions.",
        ),
        (
            gguf(rows=[row("t", (1 << 32, 1 << 32))]),
            "The file is damaged: tensor 't' has an absurd shape.",
        ),
        (
            gguf(rows=[row("t", ((1 << 64) - 1, 0))]),
            "The file is damaged: tensor 't' has an absurd shape.",
        ),
        (
            gguf(rows=[row("t", (33,), 8)]),
            "The file is damaged: a row of tensor 't' is not a whole number of Q8_0 blocks.",
        ),
        (
            gguf(rows=[row("t", (4,)), row("t", (4,), 0, 32)], data_bytes=64),
            "The file is damaged: it holds the tensor 't' twice.",
        ),
        (
            gguf(rows=[row("t", (4,)), row("u", (4,), 0, 64)], data_bytes=96),
            "The file is damaged: tensor 'u' does not lie where it should.",
        ),
        (
            gguf(rows=[row("t" * 64, (4,))], data_bytes=32),
            "The file is damaged: a text in its header claims 64 bytes.",
        ),
        (
            gguf(rows=[row("t", (32,), 4)]),
            "The file uses an old tensor type (4) that llama.cpp no longer reads.",
        ),
        (
            gguf(rows=[row("t", (32,), 4000)]),
            "The file uses a tensor type (4000) that this llama.cpp does not know.",
        ),
    ],
)
def test_sentences(path: Path, data: bytes, sentence: str) -> None:
    assert problem(path, data) == sentence


def test_every_sentence_says_what_to_do(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(LauncherError) as caught:
        read_header(path)
    assert caught.value.sentence == "The file is empty. Download or copy it again."


def test_a_long_array_passes_through_a_small_window(path: Path) -> None:
    """Two million empty texts in a file of holes: stepped over, never held."""
    n_texts = 1 << 21
    with path.open("wb") as file:
        file.write(gguf([array("a", STRING, n_texts, b"")], padded=False))
        file.truncate(20 << 20)
    tracemalloc.start()
    try:
        header = read_header(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert header.metadata == {"a": SkippedArray(STRING, n_texts)}
    assert peak < 3 << 20


def test_a_folder_is_no_model(path: Path) -> None:
    path.mkdir()
    with pytest.raises(LauncherError, match="This is a folder, not a model file"):
        read_header(path)


def test_a_missing_file_is_said_to_be_gone(path: Path) -> None:
    with pytest.raises(LauncherError, match="The file is not there any more"):
        read_header(path)


def test_an_impossible_path_is_refused() -> None:
    with pytest.raises(LauncherError, match="The file cannot be read"):
        read_header(Path("a\0b.gguf"))


@links
def test_a_dangling_link_is_named(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))
    with pytest.raises(LauncherError, match="The link points to a file that is not there"):
        read_header(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_does_not_hang(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(LauncherError, match="This is not a regular file"):
        read_header(path)


def test_an_unreadable_file_is_said_to_be_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise PermissionError(13, "Permission denied")

    path.write_bytes(gguf())
    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(LauncherError, match="The file cannot be read: access is denied"):
        read_header(path)


def test_a_file_in_the_cloud_is_not_fetched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(gguf())
    attributes = SimpleNamespace(st_mode=stat.S_IFREG, st_size=9, st_file_attributes=0x400020)
    monkeypatch.setattr(Path, "stat", lambda _path, **_named: attributes)
    monkeypatch.setattr(Path, "open", None)  # reading one byte fetches them all
    with pytest.raises(LauncherError, match="kept in the cloud only"):
        read_header(path)
    assert first_architecture(path) is None


def test_no_handle_stays_open(path: Path) -> None:
    """A leaked handle would warn (and fail this run), and on Windows block the rename."""
    path.write_bytes(gguf())
    read_header(path)
    path.replace(path.with_name("y.gguf"))
    path.write_bytes(b"GGUF")
    with pytest.raises(LauncherError):
        read_header(path)
    path.unlink()


def test_the_first_architecture_is_found_by_a_small_read(tmp_path: Path, path: Path) -> None:
    assert first_architecture(write_tiny_model(tmp_path / "m.gguf", "sliding")) == "gpt-oss"
    path.write_bytes(gguf([u32("general.other", 1)]))
    assert first_architecture(path) is None
    for data in (b"", b"GGUF", b"nothing"):
        path.write_bytes(data)
        assert first_architecture(path) is None
    assert first_architecture(tmp_path) is None
    assert first_architecture(tmp_path / "gone") is None
