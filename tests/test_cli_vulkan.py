"""The command line on a second device: what is planned is what is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import moelauncher
from tests.helpers.vulkan_build import require_vulkan_build, vulkan_environment

pytestmark = pytest.mark.vulkan

MIB = 1 << 20


def test_gpu_that_is_left_out_is_named_with_its_reason(session_cache: Path) -> None:
    build = require_vulkan_build()
    if not list(build.glob("llama_cpp/*/*ggml-cpu-x64*")):
        pytest.skip("this Vulkan build is in one piece: it leaves nothing out")
    ran = moelauncher(
        *("chat", "--demo", "--basedir", session_cache / "command-line", "-p", "Hi"),
        *("--max-tokens", "1", "--ctx", "512"),
        **vulkan_environment(build, session_cache / "shaders"),
        MOELAUNCHER_BROKEN_BACKENDS="vulkan",
    )
    assert ran.status == 0, ran.err
    assert "The module “vulkan” is not used: it crashed here before." in ran.err


def run(cache: Path, *arguments: str) -> Any:
    ran = moelauncher(
        *(arguments[0], "--demo", "--basedir", cache / "command-line", *arguments[1:], "--json"),
        # The software device's arithmetic fails with larger batches.
        *("--ubatch", "8", "--ctx", "512"),
        **vulkan_environment(require_vulkan_build(), cache / "shaders"),
    )
    assert ran.status == 0, ran.err
    assert ran.err == "", "a load that is not as planned is told there"
    return ran.document


def test_what_is_planned_is_what_is_loaded(session_cache: Path) -> None:
    plan = run(session_cache, "plan", "--cpu-moe", "8")
    reply = run(
        *(session_cache, "chat", "--cpu-moe", "8", "--temp", "0", "--max-tokens", "2"),
        *("-p", "Hi"),
    )
    planned, loaded = plan["devices"][0], reply["devices"][0]
    assert planned["name"] == loaded["name"] == "Vulkan0"
    assert planned["compute_source"] == "dry-run"
    assert loaded["weights_bytes"] / MIB == pytest.approx(88.09, abs=0.1)
    for kind in ("weights", "kv", "compute"):
        assert planned[f"{kind}_bytes"] == pytest.approx(loaded[f"{kind}_bytes"], abs=0.01 * MIB), (
            kind
        )
    assert reply["completion_tokens"] == 2
    assert reply["placement"] == plan["placement"]
