"""elided_label.py and steady_label.py: text that is cut tells all, text that grows stays."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from moelauncher.gui.controls.elided_label import ElidedLabel, shortened
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.theme import font

LONG = "Expert weights of all layers stay in RAM. " * 4


def test_a_cut_text_stands_in_the_tooltip(qtbot) -> None:
    label = ElidedLabel(LONG)
    qtbot.addWidget(label)
    label.resize(120, 20)
    label.show()
    assert label.elided()
    assert label.toolTip() == LONG.strip()
    label.resize(5000, 20)
    assert not label.elided()
    assert label.toolTip() == ""
    label.set_text("short", "another tip")
    assert label.toolTip() == "another tip"


def test_nothing_is_ever_markup(qtbot) -> None:
    for label in (ElidedLabel(), SteadyLabel(1, font("small"))):
        qtbot.addWidget(label)
        label.set_text("<b>x</b>")
        assert label.textFormat() == Qt.TextFormat.PlainText
        assert label.text() == "<b>x</b>"


def test_a_label_gives_way_to_any_width(qtbot) -> None:
    label = ElidedLabel(LONG)
    qtbot.addWidget(label)
    assert label.minimumSizeHint().width() == 0


def test_a_steady_label_grows_and_does_not_shrink(qtbot) -> None:
    label = SteadyLabel(2, font("small"))
    qtbot.addWidget(label)
    label.resize(200, 60)
    label.show()
    before = label.sizeHint().height()
    label.set_text("short")
    assert label.sizeHint().height() == before
    label.set_text(LONG)
    grown = label.sizeHint().height()
    assert grown > before
    label.set_text("short")
    assert label.sizeHint().height() == grown


def test_a_steady_label_measures_anew_in_another_width(qtbot) -> None:
    label = SteadyLabel(2, font("small"))
    qtbot.addWidget(label)
    label.resize(120, 60)
    label.show()
    label.set_text(LONG)
    narrow = label.sizeHint().height()
    label.resize(2000, 60)
    assert label.sizeHint().height() < narrow


def test_a_name_that_looks_like_html_is_no_html_in_the_tooltip(qtbot) -> None:
    label = ElidedLabel("<b>bold</b> & <img src=x> name, much too long")
    qtbot.addWidget(label)
    label.resize(60, 20)
    label.show()
    assert "&lt;img src=x&gt;" in label.toolTip()
    assert "<img" not in label.toolTip()


@pytest.mark.parametrize(
    ("room", "shows"),
    [
        (
            "llama · Q4_1 · 135M, 135M active · 30 layers",
            "llama · Q4_1 · 135M, 135M active · 30 layers",
        ),
        ("llama · Q4_1 · 135M, 135M active · 30 …", "llama · Q4_1 · 135M, 135M active …"),
        ("llama · Q4_1 …", "llama · Q4_1 …"),
        ("llama · Q", "llama …"),
    ],
)
def test_a_text_of_parts_loses_whole_parts(qapp, room: str, shows: str) -> None:
    metrics = QFontMetrics(font("body"))
    text = "llama · Q4_1 · 135M, 135M active · 30 layers"
    assert shortened(text, metrics, metrics.horizontalAdvance(room)) == shows


def test_where_no_part_fits_the_first_is_cut(qapp) -> None:
    metrics = QFontMetrics(font("body"))
    text = "architecture · Q4_1"
    cut = shortened(text, metrics, metrics.horizontalAdvance("architect…"))
    assert cut.startswith("archi")
    assert cut.endswith("…")
    assert "·" not in cut
    assert shortened(text, metrics, metrics.horizontalAdvance("arc…")) == "…"
