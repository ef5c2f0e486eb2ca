"""The built window on a device that has too little memory, for real: said, restored, offered.

In a process of its own on the Vulkan build: see ``tests/helpers/short_window.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.truth_models import write_truth_model
from tests.helpers.vulkan_build import require_vulkan_build, vulkan_environment
from tests.helpers.window_driver import sample_basedir, settings_file

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on address space"),
]

SETTINGS = """
[context]
ubatch = 8
size = 512
[sampling]
temperature = 0.0
max_tokens = 6
"""


@pytest.mark.timeout(900)
def test_what_the_gpu_refuses_is_said_and_what_was_there_comes_back(
    tmp_path: Path, session_cache: Path
) -> None:
    environment = vulkan_environment(require_vulkan_build(), session_cache / "shaders")
    base = sample_basedir(tmp_path / "base", session_cache)
    settings_file(base, SETTINGS)
    large = write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m", n_layer=8)
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.short_window", str(base), str(large)],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=840,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    steps = json.loads(done.stdout)
    sample = steps["loaded"]["model"]
    assert steps["loaded"]["state"] == "ready"

    # Each of these leaves the model that was loaded, with its context.
    for step in ("impossible context", "context refused", "model refused"):
        assert steps[step]["state"] == "ready", step
        assert steps[step]["model"] == sample, step
        assert steps[step]["context"] == "context 0 of 512", step
    told = steps["impossible context"]["message"]
    assert "The context is too large for Vulkan0: one layer's part fits no buffer." in told
    assert "Choose a smaller context" in told

    told = steps["context refused"]["message"]
    assert "Vulkan0 is" in told and "short: there was no room for the KV cache." in told
    assert "The model is back where it was" in told
    assert steps["context refused"]["offer"].startswith("Load with a context of")

    told = steps["model refused"]["message"]
    assert "Vulkan0 is" in told and "short: there was no room for the weights." in told
    assert "is loaded again as it was before." in told
    assert steps["model refused"]["offer"].endswith("layers on the CPU")

    assert "The capital of France is Paris" in steps["chat"]["text"]
    assert steps["offer taken"]["model"] == large.name
    assert "as planned" in steps["offer taken"]["message"]
