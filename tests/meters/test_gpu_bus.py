"""Cards in a tree laid out like /sys/bus/pci/devices, and in a registry's values."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moelauncher.core.program.doctor_facts import AMD, INTEL, NVIDIA
from moelauncher.meters.gpu_bus import bus_gpus, linux_gpus, windows_gpus

NAMES = """\
# comment
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t744c  Navi 31 [Radeon RX 7900 XTX]
10de  NVIDIA Corporation
\t2786  AD104 [GeForce RTX 4070]
\t\t1043 88ee  a board of it
\t9999  Unnamed chip
8086  Intel Corporation
"""
RESOURCE = """\
0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200
0x0000006000000000 0x000000600fffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
"""


def make_card(root: Path, address: str, vendor: str, device: str, **more: str) -> Path:
    folder = root / "devices" / address
    folder.mkdir(parents=True)
    files = {"class": "0x030000", "vendor": vendor, "device": device, **more}
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return folder


def give_driver(root: Path, folder: Path, name: str, version: str = "") -> None:
    driver = root / "drivers" / name
    driver.mkdir(parents=True)
    (folder / "driver").symlink_to(driver)
    module = root / "module" / name
    module.mkdir(parents=True)
    if version:
        (module / "version").write_text(version + "\n", encoding="utf-8")


def cards(root: Path) -> tuple:
    names = root / "pci.ids"
    names.write_text(NAMES, encoding="utf-8")
    return linux_gpus(root / "devices", root / "module", (root / "absent", names))


@pytest.mark.skipif(sys.platform == "win32", reason="Linux's tree is one of links")
def test_cards_with_and_without_a_driver(tmp_path: Path) -> None:
    driven = make_card(tmp_path, "0000:01:00.0", "0x10de", "0x2786", resource=RESOURCE)
    give_driver(tmp_path, driven, "nvidia", "570.86.16")
    make_card(tmp_path, "0000:03:00.0", "0x1002", "0x744c")
    make_card(tmp_path, "0000:00:1f.3", "0x8086", "0x1234", **{"class": "0x040300"})
    first, second = cards(tmp_path)
    assert (first.vendor, first.name, first.driver) == (NVIDIA, "GeForce RTX 4070", "nvidia")
    assert (first.driver_version, first.visible_bytes) == ("570.86.16", 256 << 20)
    assert (second.vendor, second.name) == (AMD, "Radeon RX 7900 XTX")
    assert second.driver is None and second.visible_bytes is None
    assert second.pci_address == "0000:03:00.0"


@pytest.mark.parametrize(
    ("vendor", "device", "name"),
    [
        ("0x10de", "0x9999", "Unnamed chip"),
        ("0x10de", "0x0001", "NVIDIA GPU 10de:0001"),
        ("0x8086", "0x744c", "Intel GPU 8086:744c"),
        ("0x1a03", "0x2000", "1a03 GPU 1a03:2000"),
        ("what", "", "0000 GPU 0000:0000"),
    ],
)
def test_name_is_the_registrys_or_the_numbers(
    tmp_path: Path, vendor: str, device: str, name: str
) -> None:
    make_card(tmp_path, "0000:01:00.0", vendor, device)
    (card,) = cards(tmp_path)
    assert card.name == name


def test_system_without_a_bus_has_no_cards(tmp_path: Path) -> None:
    assert linux_gpus(tmp_path / "absent", tmp_path, ()) == ()


def test_windows_adapters() -> None:
    card, basic, intel = windows_gpus(
        lambda: [
            {
                "DriverDesc": "NVIDIA GeForce RTX 4070",
                "ProviderName": "NVIDIA",
                "DriverVersion": "32.0.15.7283",
                "MatchingDeviceId": "PCI\\VEN_10DE&DEV_2786",
            },
            {"DriverDesc": "Microsoft Basic Display Adapter", "ProviderName": "Microsoft"},
            {"DriverDesc": "Intel(R) UHD", "MatchingDeviceId": "pci\\ven_8086&dev_4680"},
            {"nothing": b"useful"},
        ]
    )
    assert (card.vendor, card.driver, card.driver_version) == (NVIDIA, "NVIDIA", "32.0.15.7283")
    assert basic.driver is None
    assert intel.vendor == INTEL


def test_this_machine_can_be_asked() -> None:
    assert all(card.name and card.vendor for card in bus_gpus())
