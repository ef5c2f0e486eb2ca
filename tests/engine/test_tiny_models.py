"""The test models are real: llama.cpp loads each, decodes, and takes the bytes we counted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.files.ggml_types import GGML_TYPES, REMOVED_TYPES
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.known_architectures import KNOWN_ARCHITECTURES
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from tests.helpers.gguf_files import RUNNABLE_KINDS, write_tiny_model

#: Runs in a child: llama.cpp ends its process on what it does not like, and its log is global.
_CHILD = """
import ctypes, json, sys
from moelauncher.engine.native import load_native

lib = load_native().lib  # with the processor's module, where the build has such
lines = []

@lib.llama_log_callback
def keep(level, text, user_data):
    lines.append(text.decode("utf-8", "replace"))

lib.llama_log_set(keep, None)
lib.llama_backend_init()
answer = {"tokens": [], "loaded": False}
parameters = lib.llama_model_default_params()
parameters.n_gpu_layers = 0
parameters.load_mode = 0
parameters.use_extra_bufts = False
model = lib.llama_model_load_from_file(sys.argv[1].encode(), parameters)
if model:
    answer["loaded"] = True
    settings = lib.llama_context_default_params()
    settings.n_ctx, settings.n_ubatch = 256, 64
    settings.n_threads = settings.n_threads_batch = 1
    context = lib.llama_init_from_model(model, settings)
    vocabulary = lib.llama_model_get_vocab(model)
    n_vocab = lib.llama_vocab_n_tokens(vocabulary)
    text = b"Hello, the model"
    tokens = (lib.llama_token * 64)()
    n_tokens = lib.llama_tokenize(vocabulary, text, len(text), tokens, 64, True, True)
    batch = lib.llama_batch_get_one(tokens, n_tokens)
    for _ in range(6):
        assert lib.llama_decode(context, batch) == 0
        logits = lib.llama_get_logits_ith(context, -1)
        values = [logits[i] for i in range(n_vocab)]
        best = max(range(n_vocab), key=values.__getitem__)
        assert values[best] == values[best], "not a number"
        answer["tokens"].append(best)
        batch = lib.llama_batch_get_one((lib.llama_token * 1)(best), 1)
answer["log"] = "".join(lines)
print(json.dumps(answer))
"""


def _run(path: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def _facts(path: Path) -> ModelFacts:
    return facts_of([read_header(path)])


@pytest.mark.parametrize("kind", RUNNABLE_KINDS)
def test_llama_cpp_runs_it_and_loads_what_was_counted(tmp_path: Path, kind: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", kind)
    answer, facts = _run(path), _facts(path)
    log = str(answer["log"])
    assert answer["loaded"], log[-2000:]
    assert len(answer["tokens"]) == 6  # type: ignore[arg-type]
    skipped = sum(int(n) for n in re.findall(r"unused tensor \S+ \(size = (\d+) bytes\)", log))
    assert skipped == facts.not_loaded_bytes
    buffers = [float(n) for n in re.findall(r"model buffer size =\s+([\d.]+) MiB", log)]
    # On one device a tied output matrix is no copy. Each tensor is padded to 32 bytes.
    copies = facts.output_bytes - 4 * 64 if facts.tied_output else 0
    counted_mib = (facts.loaded_bytes - copies) / (1 << 20)
    assert sum(buffers) == pytest.approx(counted_mib, abs=0.011)


def test_old_mixtral_is_refused_by_llama_cpp_too(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "old.gguf", "old-mixtral")
    assert _facts(path).unplaceable_experts
    answer = _run(path)
    assert not answer["loaded"]
    assert "exps.weight' not found" in str(answer["log"])


def test_shards_are_loaded_as_one(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "split.gguf", "moe", split_max_tensors=20)
    whole = write_tiny_model(tmp_path / "whole.gguf", "moe")
    assert path.name.startswith("split-00001-of-")
    assert _run(path)["tokens"] == _run(whole)["tokens"]


_TYPES_CHILD = """
import ctypes, json
import llama_cpp
from pathlib import Path

folder = Path(llama_cpp.__file__).parent / "lib"
path = next(p for p in sorted(folder.iterdir()) if "ggml-base" in p.name)
ggml = ctypes.CDLL(str(path))
ggml.ggml_type_name.restype = ctypes.c_char_p
ggml.ggml_type_size.restype = ctypes.c_size_t
ggml.ggml_blck_size.restype = ctypes.c_int64
print(json.dumps([
    [n, (ggml.ggml_type_name(n) or b"").decode(), ggml.ggml_blck_size(n), ggml.ggml_type_size(n)]
    for n in range(43)
]))
"""


def test_the_type_table_is_that_of_the_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TYPES_CHILD],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=True,
    )
    rows = json.loads(done.stdout)
    for number, name, block_size, block_bytes in rows:
        known = GGML_TYPES.get(number)
        if number in REMOVED_TYPES:
            assert known is None and block_size == 0
        else:
            assert known is not None, name
            assert (known.block_size, known.block_bytes) == (block_size, block_bytes)
            assert known.name.lower() == name.lower()


@pytest.mark.parametrize("arch", sorted(KNOWN_ARCHITECTURES)[::30])
def test_known_architectures_are_known_to_the_library(tmp_path: Path, arch: str) -> None:
    """A file of a known architecture fails for want of its keys, not for its name."""
    path = write_tiny_model(tmp_path / "x.gguf", "dense")
    data = path.read_bytes()
    # The name's length stands before it; the file grows or shrinks, which only moves the data.
    old, new = (len(name).to_bytes(8, "little") + name.encode() for name in ("llama", arch))
    path.write_bytes(data.replace(old, new, 1))
    log = str(_run_any(path))
    assert "unknown model architecture" not in log


def test_an_unknown_architecture_is_unknown_to_the_library(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "x.gguf", "dense")
    data = path.read_bytes()
    old, new = (len(name).to_bytes(8, "little") + name for name in (b"llama", b"nollm"))
    path.write_bytes(data.replace(old, new, 1))
    assert "unknown model architecture" in _run_any(path)


def _run_any(path: Path) -> str:
    """All output of a load that may end the child."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)], capture_output=True, timeout=240
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")
