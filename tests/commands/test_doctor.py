"""``moelauncher doctor`` as its users run it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import assert_no_window, moelauncher, run_watched
from tests.helpers.nvml_stub import build_stub


def test_doctor_for_programs() -> None:
    ran = run_watched("doctor", "--json")
    assert ran.status == 0, ran.err
    facts = ran.document
    assert facts["llama_cpp_python"]
    assert facts["physical_cores"] >= 1
    assert facts["ram_total_bytes"] > facts["ram_available_bytes"] > 0
    assert any(device["kind"] == "cpu" for device in facts["devices"])
    assert {verdict["level"] for verdict in facts["verdicts"]} <= {"good", "warning", "bad"}
    assert all(verdict["text"] for verdict in facts["verdicts"])
    assert_no_window(ran.modules)


def test_doctor_for_people_shortens_the_home_folder(own_home: Path) -> None:
    ran = moelauncher("doctor")
    assert ran.status == 0
    assert "~" in ran.out
    assert str(own_home) not in ran.out


@pytest.mark.skipif(sys.platform != "linux", reason="the stub takes the place of libnvidia-ml")
def test_doctor_says_when_the_build_cannot_use_the_gpu(tmp_path: Path) -> None:
    stub = str(build_stub(tmp_path))
    ran = moelauncher("doctor", LD_LIBRARY_PATH=stub)
    assert "NVIDIA GeForce RTX 4070, 3.0 GiB of 12.0 GiB used, PCIe 4.0 x16" in ran.out
    assert "This build of llama.cpp cannot use the GPU." in ran.out
    found = moelauncher("doctor", "--json", LD_LIBRARY_PATH=stub).document
    assert found["verdict"] == "bad"
    advice = [verdict["advice"] for verdict in found["verdicts"]]
    assert any("run --wheels vulkan" in text for text in advice)
