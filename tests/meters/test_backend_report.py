"""The loaded build's own word on its devices."""

from __future__ import annotations

from moelauncher.core.machine import BackendDevice
from moelauncher.meters.backend_report import BackendReportMeter

DEVICES = [
    BackendDevice("CPU", "AMD Ryzen", "cpu", "CPU", 1, 2),
    BackendDevice("Vulkan0", "Radeon RX 7900", "gpu", "Vulkan", 70, 100, "0000:03:00.0"),
    BackendDevice("Vulkan1", "UHD", "igpu", "Vulkan", None, 50),
]


def test_gpus_with_llama_cpps_names() -> None:
    card, built_in = BackendReportMeter(lambda: DEVICES).read()
    assert (card.name, card.device_name, card.source) == (
        "Radeon RX 7900",
        "Vulkan0",
        "llama.cpp (Vulkan)",
    )
    assert (card.total_bytes, card.used_bytes, card.free_bytes) == (100, 30, 70)
    assert card.pci_address == "0000:03:00.0"
    assert (built_in.used_bytes, built_in.total_bytes) == (None, 50)


def test_a_build_without_gpus() -> None:
    assert BackendReportMeter(lambda: DEVICES[:1]).read() == []
