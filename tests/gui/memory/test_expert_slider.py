"""gui/memory/expert_slider.py: it goes where it is clicked, and shows which stops fit."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from moelauncher.gui.memory.expert_slider import ExpertSlider
from moelauncher.gui.palette import SEGMENT


@pytest.fixture
def slider(qtbot) -> ExpertSlider:
    slider = ExpertSlider()
    qtbot.addWidget(slider)
    slider.setRange(0, 40)
    slider.resize(340, 24)
    slider.show()
    return slider


@pytest.mark.parametrize("stop", [0, 1, 17, 39, 40])
def test_a_click_goes_there_at_once(qtbot, slider: ExpertSlider, stop: int) -> None:
    slider.setValue(20)
    qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x_of(stop)), 12))
    assert slider.value() == stop


def test_every_stop_of_a_drag_is_told(qtbot, slider: ExpertSlider) -> None:
    told: list[int] = []
    slider.valueChanged.connect(told.append)
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider._x_of(3)), 12))
    for stop in (4, 5, 6):
        qtbot.mouseMove(slider, QPoint(round(slider._x_of(stop)), 12))
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton)
    assert told == [3, 4, 5, 6]


def test_arrow_keys_move_by_one(qtbot, slider: ExpertSlider) -> None:
    slider.setValue(20)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert slider.value() == 21


def test_speeds_of_all_stops_tint_the_whole_groove(slider: ExpertSlider) -> None:
    slider.setValue(20)
    slider.set_fits([True] * 41)
    slider.set_speeds(dict.fromkeys(range(41), 60.0), expected=True)
    image = slider.grab().toImage()
    colors = {image.pixelColor(x, 12).rgb() for x in (3, 60, 280, 336)}
    assert len(colors) == 1


def test_stops_that_do_not_fit_are_hatched(slider: ExpertSlider) -> None:
    slider.setValue(40)
    slider.set_fits([stop >= 20 for stop in range(41)])
    image = slider.grab().toImage()
    left = {image.pixelColor(x, 12).rgb() for x in range(10, 140)}
    right = {image.pixelColor(x, 12).rgb() for x in range(200, 300)}
    assert SEGMENT.over.rgb() in left
    assert SEGMENT.over.rgb() not in right
