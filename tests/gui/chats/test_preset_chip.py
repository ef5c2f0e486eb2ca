"""The chip that names the preset, also where room is scarce."""

from __future__ import annotations

from PySide6.QtWidgets import QMenu

from moelauncher.core.chats.sampling_presets import Preset
from moelauncher.gui.chats.preset_chip import PresetChip


def test_a_long_name_is_cut_to_the_room(qtbot):
    chip = PresetChip()
    qtbot.addWidget(chip)
    chip.show()
    chip.set_presets(
        (Preset("own:x", "Tom & the very long name of a preset", {}),), "precise", None
    )
    chip.resize(chip.sizeHint())
    assert chip.text() == "Preset: precise"
    chip.set_presets((), "Tom & the very long name of a preset", "own:x")
    chip.resize(chip.sizeHint())
    assert chip.text().startswith("Preset: Tom && the") and chip.text().endswith("…")
    assert chip.sizeHint().width() <= 200
    assert chip.accessibleName() == "Preset: Tom & the very long name of a preset"
    chip.resize(chip.minimumSizeHint())
    assert chip.text().endswith("…")


def test_the_menu_tells_the_numbers_of_each_preset(qtbot):
    chip = PresetChip()
    qtbot.addWidget(chip)
    chip.set_presets((Preset("precise", "precise", {"temperature": 0.2, "top_k": 40}),), "x", "")
    menu = QMenu()
    qtbot.addWidget(menu)
    chip.fill_menu(menu)
    tips = {action.text(): action.toolTip() for action in menu.actions()}
    assert tips["precise"] == "Temperature 0.2 · Top-k 40"
    assert menu.toolTipsVisible()
