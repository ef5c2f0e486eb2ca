"""The Vulkan build of llama.cpp for tests, and runs of this program on it.

A process can load one build only, so whatever uses this one is a process of its own.
``packaging/dev.py test`` names the build's folder in ``MOELAUNCHER_VULKAN_BUILD``. Mesa's
software device serves as the GPU: real buffers and placements, slow, and its arithmetic is
to be trusted for ubatches of up to 8 tokens only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "MOELAUNCHER_VULKAN_BUILD"
ROOT = Path(__file__).resolve().parents[2]


def require_vulkan_build() -> Path:
    """The build's folder. Skips the test where none is named; fails where it is broken."""
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no Vulkan build; packaging/dev.py test --vulkan makes one")
    build = Path(named)
    libraries = [path.name for path in build.glob("llama_cpp/*/*ggml-vulkan*")]
    if not libraries:
        pytest.fail(f"{VARIABLE}={named} holds no llama_cpp with a Vulkan backend")
    return build


def vulkan_environment(build: Path, shader_cache: Path) -> dict[str, str]:
    """Variables with which a Python process finds ``build`` and its software device."""
    return {
        "PYTHONPATH": os.pathsep.join((str(build), str(ROOT))),
        "GGML_VK_VISIBLE_DEVICES": "0",
        # Tests have a home of their own; compiling the shaders anew there takes a minute.
        "MESA_SHADER_CACHE_DIR": str(shader_cache),
    }


def run_probe(environment: Mapping[str, str], *arguments: str) -> Any:
    """Run ``tests.helpers.vulkan_probe`` on the build; returns what it printed as JSON."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.helpers.vulkan_probe", *arguments],
        env=os.environ | dict(environment),
        capture_output=True,
        encoding="utf-8",
        timeout=840,
        check=False,
    )
    assert finished.returncode == 0, f"{finished.returncode}\n{finished.stderr[-4000:]}"
    return json.loads(finished.stdout)
