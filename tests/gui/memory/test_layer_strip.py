"""gui/memory/layer_strip.py: one cell a layer, and the stop that a click or drag asks for."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.place_model import place
from moelauncher.gui.memory.layer_strip import LayerStrip
from moelauncher.gui.palette import SEGMENT
from tests.helpers.planned_models import GIB, MIB, gpu, made_facts

# Two leading dense blocks, eight with experts, one MTP block that is not loaded.
MODEL = made_facts([(80 * MIB, 0)] * 2 + [(60 * MIB, GIB // 2)] * 9, n_not_loaded=1)


@pytest.fixture
def strip(qtbot) -> LayerStrip:
    strip = LayerStrip()
    qtbot.addWidget(strip)
    strip.resize(220, strip.sizeHint().height())
    return strip


def show(strip: LayerStrip, stop: int, which: str = "first", facts: ModelFacts = MODEL) -> None:
    strip.set_layers(facts, place(facts, [gpu(24)], cpu_moe=stop, which=which))


def center(strip: LayerStrip, position: int) -> QPoint:
    return strip.cell_rect(position).center().toPoint()


def is_filled(strip: LayerStrip, position: int, color) -> bool:
    return strip.grab().toImage().pixelColor(center(strip, position)) == color


def test_filled_cells_are_experts_in_vram(strip: LayerStrip) -> None:
    show(strip, 3)
    filled = [p for p in range(11) if is_filled(strip, p, SEGMENT.experts)]
    assert filled == [5, 6, 7, 8, 9]
    assert [p for p in range(11) if is_filled(strip, p, SEGMENT.dense)] == [0, 1]


def test_last_layers_first(strip: LayerStrip) -> None:
    show(strip, 3, which="last")
    assert [p for p in range(11) if is_filled(strip, p, SEGMENT.experts)] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("which", ["first", "last"])
@pytest.mark.parametrize("stop", [0, 3, 8])
@pytest.mark.parametrize("position", range(2, 10))
def test_a_click_makes_the_cell_change_sides(
    qtbot, strip: LayerStrip, which: str, stop: int, position: int
) -> None:
    show(strip, stop, which)
    was = is_filled(strip, position, SEGMENT.experts)
    asked: list[int] = []
    strip.stop_requested.connect(asked.append)
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=center(strip, position))
    assert len(asked) == 1
    show(strip, asked[0], which)
    assert is_filled(strip, position, SEGMENT.experts) != was


def test_a_drag_carries_the_border_along(qtbot, strip: LayerStrip) -> None:
    show(strip, 0)
    asked: list[int] = []
    strip.stop_requested.connect(lambda stop: (asked.append(stop), show(strip, stop)))
    qtbot.mousePress(strip, Qt.MouseButton.LeftButton, pos=center(strip, 2))
    for position in (3, 4, 5):
        qtbot.mouseMove(strip, center(strip, position) + QPoint(2, 0))
    qtbot.mouseRelease(strip, Qt.MouseButton.LeftButton)
    assert asked == [1, 2, 3, 4]


def test_a_dense_model_has_nothing_to_click(qtbot, strip: LayerStrip) -> None:
    dense = made_facts([(60 * MIB, 0)] * 4)
    show(strip, 0, facts=dense)
    asked: list[int] = []
    strip.stop_requested.connect(asked.append)
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=center(strip, 1))
    assert asked == []
    assert is_filled(strip, 1, SEGMENT.dense)


def test_tooltips_tell_of_the_layer(strip: LayerStrip) -> None:
    show(strip, 3)
    assert "80 MiB of dense weights on RTX" in strip.tip_at(QPointF(center(strip, 0)))
    assert "512 MiB, are in RAM" in strip.tip_at(QPointF(center(strip, 2)))
    assert "512 MiB, are in RTX" in strip.tip_at(QPointF(center(strip, 9)))
    assert "not loaded" in strip.tip_at(QPointF(center(strip, 10)))


def test_the_strip_tells_itself_in_words(strip: LayerStrip) -> None:
    show(strip, 3)
    assert "5 layers" in strip.accessibleDescription()
    assert "3 in RAM" in strip.accessibleDescription()


@pytest.mark.parametrize("count", [1, 48, 94, 400])
def test_any_number_of_layers_stays_inside(strip: LayerStrip, count: int) -> None:
    show(strip, 0, facts=made_facts([(MIB, MIB)] * count))
    assert strip.cell_rect(count - 1).right() <= strip.width()
    assert not strip.grab().isNull()


def test_no_model_is_an_empty_strip(strip: LayerStrip) -> None:
    strip.set_layers(None, None)
    assert strip.stop_at(10, toggles=True) is None
    assert strip.tip_at(QPointF(10, 5)) == ""
