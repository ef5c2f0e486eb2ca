"""gui/controls/steady_box.py: what stands below it keeps its place."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.steady_box import SteadyBox

LONG = "Expert weights of all layers stay in RAM. " * 6


def test_it_grows_with_its_content_and_never_shrinks_at_one_width(qtbot) -> None:
    box = SteadyBox(40)
    qtbot.addWidget(box)
    words = plain_label("short")
    words.setWordWrap(True)
    box.column.addWidget(words)
    box.resize(200, 40)
    box.show()
    assert box.sizeHint().height() == 40
    words.setText(LONG)
    qtbot.waitUntil(lambda: box.sizeHint().height() > 40)
    grown = box.sizeHint().height()
    words.setText("short")
    qtbot.wait(1)
    assert box.sizeHint().height() == grown
    box.resize(210, grown)
    assert box.sizeHint().height() == 40


def test_its_content_stands_at_the_top(qtbot) -> None:
    box = SteadyBox(100)
    qtbot.addWidget(box)
    inner = QWidget()
    inner.setFixedHeight(20)
    box.column.addWidget(inner)
    box.resize(200, 100)
    box.show()
    assert (inner.y(), inner.height()) == (0, 20)


def test_more_can_be_reserved_and_never_less(qtbot) -> None:
    box = SteadyBox(40)
    qtbot.addWidget(box)
    box.reserve(90)
    assert box.sizeHint().height() == 90
    box.reserve(50)
    assert box.sizeHint().height() == 90
