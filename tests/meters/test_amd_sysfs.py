"""AMD cards in a tree laid out like /sys/class/drm."""

from __future__ import annotations

from pathlib import Path

from moelauncher.meters.amd_sysfs import AmdSysfsMeter


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


FULL = {
    "card1/device/mem_info_vram_total": "25753026560\n",
    "card1/device/mem_info_vram_used": "1073741824\n",
    "card1/device/mem_info_gtt_used": "52428800\n",
    "card1/device/gpu_busy_percent": "37\n",
    "card1/device/product_name": "Radeon RX 7900 XTX\n",
    "card1/device/uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
    "card1/device/current_link_speed": "16.0 GT/s PCIe\n",
    "card1/device/current_link_width": "16\n",
    "card1/device/hwmon/hwmon4/temp1_input": "54000\n",
    "card1-DP-1/status": "disconnected\n",
    "card1-HDMI-A-1/status": "connected\n",
}


def test_a_card_with_everything(tmp_path: Path) -> None:
    write(tmp_path, FULL)
    (card,) = AmdSysfsMeter(tmp_path).read()
    assert card.name == "Radeon RX 7900 XTX"
    assert card.total_bytes == 25753026560
    assert card.used_bytes == 1 << 30
    assert card.free_bytes == 25753026560 - (1 << 30)
    assert card.shared_bytes == 50 << 20
    assert card.utilisation == 0.37
    assert card.temperature_c == 54.0
    assert card.pci_address == "0000:03:00.0"
    assert card.pcie == "4.0 x16"
    assert card.drives_display is True


def test_missing_files_are_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"card0/device/mem_info_vram_total": "100\n"})
    (card,) = AmdSysfsMeter(tmp_path).read()
    assert card.name == "AMD GPU card0"
    assert card.total_bytes == 100
    for value in (card.used_bytes, card.free_bytes, card.shared_bytes, card.utilisation):
        assert value is None
    assert (card.temperature_c, card.pci_address, card.pcie, card.drives_display) == (None,) * 4


def test_other_makers_and_connectors_are_no_card(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"card0/device/vendor": "0x8086\n", "card1-DP-1/device/mem_info_vram_total": "5\n"},
    )
    assert AmdSysfsMeter(tmp_path).read() == []


def test_nonsense_in_a_file_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {**FULL, "card1/device/mem_info_vram_used": "many\n"})
    (card,) = AmdSysfsMeter(tmp_path).read()
    assert card.used_bytes is None


def test_cards_in_order_of_their_numbers(tmp_path: Path) -> None:
    write(tmp_path, {f"card{n}/device/mem_info_vram_total": f"{n}\n" for n in (10, 2, 1)})
    assert [card.total_bytes for card in AmdSysfsMeter(tmp_path).read()] == [1, 2, 10]


def test_no_such_folder(tmp_path: Path) -> None:
    assert AmdSysfsMeter(tmp_path / "none").read() == []
