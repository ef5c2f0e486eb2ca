"""A reply goes on while its model moves between a GPU and the CPU: 30 > 8 > 0 > 30."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.library.sample_model import build_sample_model
from tests.helpers.vulkan_build import require_vulkan_build, vulkan_environment

pytestmark = pytest.mark.vulkan


def test_the_reply_and_its_history_survive_the_way(session_cache: Path) -> None:
    environment = vulkan_environment(require_vulkan_build(), session_cache / "shaders")
    finished = subprocess.run(
        [sys.executable, "-m", "tests.helpers.move_probe", str(build_sample_model(session_cache))],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    answer = json.loads(finished.stdout)
    reply = answer["reply"]
    assert reply["counts"] == list(range(1, 14)), "no token lost or doubled"
    assert [move["stop"] for move in reply["moves"]] == [8, 0, 30]
    for move in reply["moves"]:
        assert move["how"] == "restored"
        # The newest token is drawn and not yet evaluated.
        assert move["held"] == reply["prompt_tokens"] + move["drawn"] - 1
    assert reply["context_used"] == reply["prompt_tokens"] + 12
    assert "Paris" in reply["text"]
    # Placements compute with other kernels: that much two runs differ that nothing disturbed, at
    # the same token, and no further may a moved one be from the run that stayed there.
    assert [pair["stop"] for pair in answer["divergences"]] == [8] * 6 + [0] * 6 + [30] * 6
    for pair in answer["divergences"]:
        assert pair["moved"] <= 1e-3 + pair["noise"]
