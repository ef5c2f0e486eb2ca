"""gui/controls/scroll_column.py: the bar lies over the margin and moves nothing."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from moelauncher.gui.controls.scroll_column import ScrollColumn


@pytest.fixture
def column(qtbot) -> ScrollColumn:
    content = QWidget()
    layout = QVBoxLayout(content)
    layout.setContentsMargins(0, 0, 0, 0)
    for height in (300, 300):
        part = QLabel("part")
        part.setFixedHeight(height)
        layout.addWidget(part)
    column = ScrollColumn(content, 200)
    qtbot.addWidget(column)
    column.resize(240, 800)
    with qtbot.waitExposed(column):
        column.show()
    return column


def test_the_content_keeps_its_width_when_the_bar_comes(column: ScrollColumn) -> None:
    assert not column.bar.isVisible()
    assert column.widget().width() == 240
    column.resize(240, 400)
    assert column.bar.isVisible()
    assert column.widget().width() == 240
    assert column.bar.geometry().right() == column.rect().right()
    assert column.bar.height() == 400
    column.resize(240, 800)
    assert not column.bar.isVisible()


def test_bar_and_content_move_together(column: ScrollColumn) -> None:
    column.resize(240, 400)
    column.bar.setValue(column.bar.maximum())
    assert column.bar.maximum() > 150
    assert column.widget().y() == -column.bar.maximum()
    column.ensureWidgetVisible(column.widget().findChildren(QLabel)[0], 0, 0)
    assert column.bar.value() == column.verticalScrollBar().value() < column.bar.maximum()


def test_it_is_as_wide_as_its_content_needs(qtbot, column: ScrollColumn) -> None:
    assert column.minimumWidth() == 200
    column.widget().findChildren(QLabel)[0].setMinimumWidth(320)
    qtbot.waitUntil(lambda: column.minimumWidth() == 320)
