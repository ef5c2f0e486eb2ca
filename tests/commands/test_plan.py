"""``moelauncher plan``: odd wishes, what they mean, and their exit statuses.

2: the arguments cannot be meant, by themselves or for this model and these GPUs. 1: the job
failed. 0: an answer, though it may be that nothing fits, or that it is only an estimate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moelauncher import cli
from moelauncher.commands import plan as plan_command
from moelauncher.core.helper_python import helper_python
from moelauncher.engine.child import Child
from tests.helpers.edited_gguf import edit_gguf
from tests.helpers.gguf_files import write_tiny_model

#: Answers that it is ready, and never again.
_HANGS = """
import json, sys
print(json.dumps({"ready": 0}), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def moe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four expert layers, trained for 2048 tokens, heads of 32 values."""
    return write_tiny_model(tmp_path_factory.mktemp("plan") / "moe.gguf", "moe")


def _plan(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[Any, str]:
    """The JSON document and stderr of a plan that is an answer."""
    assert cli.main(["plan", *map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """stderr of arguments that cannot be meant."""
    try:
        status = cli.main(["plan", *map(str, arguments)])
    except SystemExit as ended:
        status = ended.code  # type: ignore[assignment]
    printed = capsys.readouterr()
    assert status == 2, printed.err
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return printed.err


@pytest.mark.parametrize("option", ["--gpu", "--ram", "--leave-free"])
@pytest.mark.parametrize(
    ("size", "told"),
    [
        ("12", "“12” means 12 bytes, which is too small to be meant. Write 12GiB."),
        ("12GBB", "“12GBB” is no size: there is no unit “GBB”."),
        ("-1GiB", "A size cannot be negative, as “-1GiB” is."),
        ("0", "A size must be above 0."),
        ("", "The size is empty."),
        ("1e3GiB", "“1e3GiB” is no size"),
        ("9999999TiB", "“9999999TiB” is more memory than any machine has."),
    ],
)
def test_sizes_that_cannot_be_meant(
    moe: Path, option: str, size: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if option == "--leave-free" and size in ("0", "12"):
        told = ""  # leaving nothing free, or next to nothing, is a wish
    given = f"--gpu=A={size}" if option == "--gpu" else f"{option}={size}"
    if told:
        assert told in _refused(capsys, moe, given)
    else:
        _plan(capsys, moe, given, "--gpu", "A=8GiB")


@pytest.mark.parametrize("count", ["-1", "1.5", "many", "", "0x2", "1,2"])
def test_layer_counts_that_are_none(
    moe: Path, count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is no number of expert layers" in _refused(capsys, moe, f"--cpu-moe={count}")


def test_no_layers_at_all_is_a_count(moe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = _plan(capsys, moe, "--gpu", "A=8GiB", "--cpu-moe", "0")
    assert document["placement"]["cpu_moe"] == 0


@pytest.mark.parametrize("size", ["0", "-4096", "4096.5", "k", "1e3", "3G"])
def test_contexts_that_are_none(moe: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is no context size" in _refused(capsys, moe, f"--ctx={size}")


@pytest.mark.parametrize(("size", "n_tokens"), [("1M", 1 << 20), ("4k", 4096)])
def test_a_context_beyond_the_training_is_planned_with_a_warning(
    moe: Path, size: str, n_tokens: int, capsys: pytest.CaptureFixture[str]
) -> None:
    document, err = _plan(capsys, moe, "--gpu", "A=80GiB", "--ctx", size)
    assert "The model was trained for 2k tokens; beyond that" in err
    assert f"-c {n_tokens}" in document["commands"]["llama_server"]
    document, err = _plan(capsys, moe, "--gpu", "A=80GiB", "--ctx", "2k")
    assert err == ""


def test_a_kv_type_that_nobody_has(moe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "invalid choice: 'q5_1'" in _refused(capsys, moe, "--kv", "q5_1")


@pytest.mark.parametrize("machine", [(), ("--gpu", "A=8GiB")], ids=["here", "pretended"])
def test_a_kv_type_that_this_model_cannot_have(
    moe: Path, machine: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = {".attention.key_length": 16, ".attention.value_length": 16}
    odd = edit_gguf(moe, tmp_path / "odd.gguf", lengths)
    told = _refused(capsys, odd, *machine, "--kv", "q8_0")
    assert "cannot have a q8_0 KV cache: its heads hold 16 values" in told
    assert "Choose f16." in told
    assert len(told.splitlines()) == 1


def test_where_the_dry_run_is_refused_the_formula_stays_with_the_reason(
    moe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = edit_gguf(moe, tmp_path / "bad.gguf", {".rope.dimension_count": 0})
    document, err = _plan(capsys, bad)
    assert {device["compute_source"] for device in document["devices"]} == {"estimate"}
    assert document["devices"][-1]["kv_bytes"] > 0
    assert "llama.cpp" in err and "GGML_ASSERT" in err
    assert cli.main(["plan", str(bad)]) == 0
    said = capsys.readouterr().out
    assert "~" in said and "GGML_ASSERT" in said


def test_where_the_dry_run_takes_too_long_the_formula_stays_with_the_reason(
    moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging = [helper_python(), "-c", _HANGS]
    monkeypatch.setattr(
        plan_command, "make_child", lambda options: Child(command=hanging, timeout_s=0.3)
    )
    document, err = _plan(capsys, moe)
    assert document["devices"][-1]["compute_source"] == "estimate"
    assert "llama.cpp did not answer within 0.3 s." in err


def test_a_file_that_is_none_is_a_job_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(tmp_path / "none.gguf"), "--json"]) == 1
    assert capsys.readouterr().out == ""
