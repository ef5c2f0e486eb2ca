"""Thousands of damaged headers: a sentence for each, no crash, no hang, no memory taken."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import GgufHeader, read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.model_files import problem_of
from tests.helpers.gguf_files import write_tiny_model

N_MUTATIONS = 1500
#: What reading takes besides the file's own bytes: objects of the tables, Python's own.
ALLOWANCE_BYTES = 1 << 20

_EXTREMES = (0, 1, 7, 8, 9, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1)
_EXTREMES_64 = (*_EXTREMES, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def read_and_judge(path: Path) -> GgufHeader | None:
    """Everything that the list does with a file; None where it was refused with a sentence."""
    try:
        header = read_header(path)
        facts = facts_of([header])
        problem_of([header], facts)
    except LauncherError as error:
        assert error.message
        assert error.message.isprintable()
        return None
    return header


def mutations(sound: bytes, header_bytes: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    while True:
        data = bytearray(sound)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            place = chance.randrange(header_bytes)
            way = chance.randrange(7)
            if way == 0:
                data[place] ^= 1 << chance.randrange(8)
            elif way == 1:
                data[place : place + 4] = struct.pack("<I", chance.choice(_EXTREMES))
            elif way == 2:
                data[place : place + 8] = struct.pack("<Q", chance.choice(_EXTREMES_64))
            elif way == 3:
                del data[place : place + chance.randrange(1, 64)]
            elif way == 4:
                data[place:place] = chance.randbytes(chance.randrange(1, 64))
            elif way == 5:
                other = chance.randrange(header_bytes)
                data[place : place + 32] = data[other : other + 32]
            else:
                del data[chance.randrange(len(data)) :]
            header_bytes = min(header_bytes, len(data)) or 1
            data = data or bytearray(b"G")
        yield bytes(data)


@pytest.mark.parametrize("kind", ["moe", "mtp"])
def test_no_mutation_does_harm(tmp_path: Path, kind: str) -> None:
    sound_path = write_tiny_model(tmp_path / "sound.gguf", kind, n_layer=1, n_embd=32)
    sound, header_bytes = sound_path.read_bytes(), read_header(sound_path).data_offset
    path = tmp_path / "damaged.gguf"
    refused = 0
    damaged = mutations(sound, header_bytes, seed=20)
    tracemalloc.start()
    try:
        for number in range(N_MUTATIONS):
            data = next(damaged)
            path.write_bytes(data)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            header = read_and_judge(path)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < len(data) + ALLOWANCE_BYTES, number
            refused += header is None
    finally:
        tracemalloc.stop()
    # Some hit a token's text and do no damage; most are noticed.
    assert N_MUTATIONS * 0.3 < refused < N_MUTATIONS


def test_every_number_of_the_header_at_its_extremes(tmp_path: Path) -> None:
    """Each of the first bytes, where the counts and the first keys stand, overwritten in turn."""
    path = write_tiny_model(tmp_path / "x.gguf", "dense", n_layer=1, n_embd=32)
    sound = path.read_bytes()
    for place in range(4, 130, 2):
        for extreme in _EXTREMES_64:
            data = bytearray(sound)
            data[place : place + 8] = struct.pack("<Q", extreme)
            path.write_bytes(data)
            read_and_judge(path)


@given(st.binary(max_size=400))
def test_any_bytes_after_the_magic(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(b"GGUF" + tail)
    read_and_judge(path)


_TEXT = st.binary(max_size=12).map(lambda raw: struct.pack("<Q", len(raw)) + raw)
_NUMBER_32 = st.sampled_from(_EXTREMES).map(lambda n: struct.pack("<I", n))
_NUMBER_64 = st.sampled_from(_EXTREMES_64).map(lambda n: struct.pack("<Q", n))
_PIECES = st.lists(st.one_of(_TEXT, _NUMBER_32, _NUMBER_64, st.binary(max_size=9)), max_size=12)


@given(
    version=st.sampled_from((2, 3)),
    n_tensors=st.sampled_from((0, 1, 2, 1 << 17, 1 << 18, 1 << 63)),
    n_values=st.sampled_from((0, 1, 2, 1 << 16, 1 << 63)),
    order=st.sampled_from("<>"),
    pieces=_PIECES,
)
def test_plausible_headers_of_wild_pieces(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    n_tensors: int,
    n_values: int,
    order: str,
    pieces: list[bytes],
) -> None:
    path = tmp_path_factory.getbasetemp() / "wild.gguf"
    head = struct.pack(f"{order}IQQ", version, n_tensors, n_values)
    path.write_bytes(b"GGUF" + head + b"".join(pieces))
    read_and_judge(path)
