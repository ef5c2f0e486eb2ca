"""``moelauncher chat`` as its users run it: real processes, real models."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.command_line import assert_no_window, moelauncher, run_watched


def test_chat_with_the_sample_model(sample_base: Path) -> None:
    ran = run_watched(
        *("chat", "--demo", "--basedir", sample_base, "--temp", "0", "--json"),
        *("-p", "What is the capital of France?"),
    )
    assert ran.status == 0, ran.err
    reply = ran.document
    assert "Paris" in reply["text"]
    assert reply["reasoning"] == ""
    assert reply["finish_reason"] == "stop"
    for rate in ("prompt_tok_s", "tok_s", "ttft_s", "load_s"):
        assert reply[rate] > 0, rate
    assert reply["prompt_tokens"] > 5
    assert reply["completion_tokens"] > 3
    assert reply["placement"]["of"] == 30
    ram = reply["devices"][-1]
    assert ram["name"] == "RAM"
    assert min(ram["weights_bytes"], ram["kv_bytes"], ram["compute_bytes"]) > 0
    assert_no_window(ran.modules)


def test_chat_streams_the_answer_alone_to_stdout(sample_base: Path) -> None:
    ran = moelauncher(
        *("chat", "--demo", "--basedir", sample_base, "--temp", "0", "--max-tokens", "3"),
        *("--ctx", "512", "-p", "What is the capital of France?"),
    )
    assert ran.status == 0, ran.err
    assert ran.out.strip() == "The capital of"
    assert "tok/s" in ran.err
    assert "3 tokens" in ran.err


def test_the_same_seed_draws_the_same_answer(tree: Path) -> None:
    def ask(seed: int) -> str:
        ran = moelauncher(
            *("chat", tree / "moe.gguf", "-p", "a", "--seed", str(seed), "--temp", "1.5"),
            *("--max-tokens", "12", "--ctx", "256", "--json"),
        )
        assert ran.status == 0, ran.err
        assert ran.document["finish_reason"] in ("length", "stop")
        return str(ran.document["text"])

    first = ask(7)
    assert ask(7) == first
    assert len({first, ask(8), ask(9)}) > 1


def test_llama_cpps_own_lines_go_to_the_log_alone(tree: Path, tmp_path: Path) -> None:
    ran = moelauncher(
        *("chat", tree / "moe.gguf", "--basedir", tmp_path, "-p", "a", "--max-tokens", "2"),
        *("--ctx", "256", "--json"),
    )
    assert ran.status == 0
    assert ran.err == ""
    log = (tmp_path / "logs" / "command-line.log").read_text(encoding="utf-8")
    assert "llama.cpp: " in log


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_it_all(sample_base: Path, tmp_path: Path) -> None:
    """In the middle of an answer: exit status 130, no complaint, no child left."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "moelauncher", "chat", "--demo", "--basedir", sample_base),
            *("-p", "Count from one to ten thousand.", "--ctx", "8k", "--temp", "1"),
        ],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.read(1)  # the answer has begun
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    _assert_group_gone(process.pid)


def _assert_group_gone(group: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process of the command is still there")
