"""helpers/layout_faults.py sees what cannot be read, and nothing else."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from moelauncher.gui.controls.elided_label import ElidedLabel
from tests.helpers.layout_faults import layout_faults

WORDS = "Expert layers on the CPU"
WIDE, NARROW = QRect(10, 10, 300, 40), QRect(10, 10, 30, 40)


@pytest.fixture
def top(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(400, 200)
    widget.show()
    return widget


def placed(widget: QWidget, place: QRect) -> QWidget:
    widget.setGeometry(place)
    widget.show()
    return widget


def combo(top: QWidget) -> QComboBox:
    made = QComboBox(top)
    made.addItem(WORDS)
    return made


@pytest.mark.parametrize(
    "make", [lambda top: QLabel(WORDS, top), lambda top: QPushButton(WORDS, top), combo]
)
def test_words_need_their_width(top: QWidget, make) -> None:
    widget = placed(make(top), WIDE)
    assert layout_faults(top) == []
    placed(widget, NARROW)
    (fault,) = layout_faults(top)
    assert WORDS in fault
    widget.hide()
    assert layout_faults(top) == []


def test_words_that_wrap_need_their_height(top: QWidget) -> None:
    label = QLabel(WORDS * 4, top)
    label.setWordWrap(True)
    placed(label, QRect(10, 10, 300, 150))
    assert layout_faults(top) == []
    placed(label, QRect(10, 10, 300, 10))
    assert len(layout_faults(top)) == 1


def test_a_label_that_shortens_itself_is_in_order(top: QWidget) -> None:
    placed(ElidedLabel(WORDS, top), NARROW)
    assert layout_faults(top) == []


def test_what_leaves_its_parent_is_cut(top: QWidget) -> None:
    placed(QPushButton("x", top), QRect(390, 10, 40, 40))
    (fault,) = layout_faults(top)
    assert "leaves its parent" in fault


def test_what_lies_on_another_is_told_unless_clicks_go_through(top: QWidget) -> None:
    placed(QPushButton("x", top), QRect(10, 10, 60, 40))
    upper = placed(QLabel("y", top), QRect(40, 10, 60, 40))
    (fault,) = layout_faults(top)
    assert "overlaps" in fault
    upper.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    assert layout_faults(top) == []


def test_what_can_be_scrolled_to_is_in_order(top: QWidget) -> None:
    area = QScrollArea(top)
    content = QWidget()
    content.setFixedSize(100, 900)
    placed(QPushButton("far down", content), QRect(0, 850, 90, 40))
    area.setWidget(content)
    placed(area, QRect(0, 0, 200, 150))
    placed(QPushButton("below", top), QRect(0, 160, 90, 30))
    assert layout_faults(top) == []
    content.setFixedSize(300, 900)
    (fault,) = layout_faults(top)
    assert "leaves its parent" in fault
