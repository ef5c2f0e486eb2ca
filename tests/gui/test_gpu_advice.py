"""What the first screen says about a GPU that is there and not used."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.gui.gpu_advice import GpuAdvice

CPU = BackendDevice("CPU", "Ryzen", "cpu", "CPU", 1, 1)
VULKAN = BackendDevice("Vulkan0", "RTX 4070", "gpu", "Vulkan", 11, 12)


def snapshot(device_name: str | None) -> MachineSnapshot:
    card = GpuReading(
        device_name=device_name, name="RTX 4070", source="NVML", total_bytes=12, used_bytes=1
    )
    return MachineSnapshot(
        time_s=0.0, ram_total_bytes=32, ram_available_bytes=16, own_ram_bytes=1, gpus=(card,)
    )


@pytest.fixture
def said(qtbot: QtBot) -> tuple[GpuAdvice, list[str]]:
    advice = GpuAdvice()
    texts: list[str] = []
    advice.advice.connect(texts.append)
    return advice, texts


def test_a_card_that_the_build_cannot_use_is_said_once(said) -> None:
    advice, texts = said
    advice.on_snapshot(snapshot(None))
    advice.set_devices([CPU])
    advice.on_snapshot(snapshot(None))
    advice.set_notes([])
    for _ in range(2):
        advice.on_snapshot(snapshot(None))
    (text,) = texts
    assert text.startswith("RTX 4070: This build of llama.cpp cannot use the GPU.")
    assert "Vulkan" in text


def test_a_module_that_was_left_out_is_said(said) -> None:
    advice, texts = said
    advice.set_devices([CPU])
    advice.set_notes(["The module “vulkan” is not used: its driver is missing."])
    advice.on_snapshot(
        MachineSnapshot(time_s=0.0, ram_total_bytes=32, ram_available_bytes=16, own_ram_bytes=1)
    )
    assert texts == ["The module “vulkan” is not used: its driver is missing."]


def test_a_card_in_use_is_no_news(said) -> None:
    advice, texts = said
    advice.set_devices([VULKAN, CPU])
    advice.set_notes([])
    advice.on_snapshot(snapshot("Vulkan0"))
    assert texts == []
