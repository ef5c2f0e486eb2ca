"""gui/memory/context_combo.py: round sizes to choose from, any number to type."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QLocale, Qt

from moelauncher.gui.memory.context_combo import ContextCombo


@pytest.fixture
def combo(qtbot) -> ContextCombo:
    combo = ContextCombo()
    qtbot.addWidget(combo)
    return combo


def enter(qtbot, combo: ContextCombo, text: str) -> list[int]:
    told: list[int] = []
    combo.size_changed.connect(told.append)
    combo.lineEdit().selectAll()
    qtbot.keyClicks(combo.lineEdit(), text)
    qtbot.keyClick(combo.lineEdit(), Qt.Key.Key_Return)
    return told


@pytest.mark.parametrize(
    ("typed", "size"), [("24k", 24576), ("32768", 32768), ("12,000", 12000), ("7", 256)]
)
def test_numbers_as_people_type_them(qtbot, combo: ContextCombo, typed: str, size: int) -> None:
    assert enter(qtbot, combo, typed) == [size]
    assert combo.size_tokens == size
    assert combo.currentText() == QLocale().toString(size)


@pytest.mark.parametrize("typed", ["much", "-5", "0", "k"])
def test_nonsense_leaves_the_last_good_size(qtbot, combo: ContextCombo, typed: str) -> None:
    combo.set_size(8192)
    assert enter(qtbot, combo, typed) == []
    assert combo.size_tokens == 8192
    assert combo.currentText() == QLocale().toString(8192)


def test_the_model_s_maximum_ends_the_list(combo: ContextCombo) -> None:
    combo.set_maximum(40960)
    assert combo.sizes == (4096, 8192, 16384, 32768, 40960)
    combo.set_maximum(262144)
    assert combo.sizes[-2:] == (131072, 262144)
    combo.set_maximum(2048)
    assert combo.sizes == (2048,)
    combo.set_maximum(None)
    assert combo.sizes[-1] == 131072


def test_more_than_the_model_was_trained_for_can_be_typed(qtbot, combo: ContextCombo) -> None:
    combo.set_maximum(40960)
    assert enter(qtbot, combo, "1M") == [1 << 20]
    assert enter(qtbot, combo, "9000M") == [1 << 30]


def test_setting_a_size_tells_nobody(qtbot, combo: ContextCombo) -> None:
    told: list[int] = []
    combo.size_changed.connect(told.append)
    combo.set_size(16384)
    combo.set_maximum(65536)
    assert told == []
    assert combo.currentText() == QLocale().toString(16384)


def test_choosing_from_the_list(qtbot, combo: ContextCombo) -> None:
    told: list[int] = []
    combo.size_changed.connect(told.append)
    combo.setCurrentIndex(2)
    combo.activated.emit(2)
    assert told == [16384]
