"""The card shows what the core says, and nothing of a file is taken for HTML."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QLabel, QPushButton, QTableView
from pytestqt.qtbot import QtBot

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.model_card import ModelCard, card_of
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.gui.library.layer_chart import LayerChart
from moelauncher.gui.library.model_card import ModelCardDialog
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.planned_models import GIB, gpu

MACHINE = Machine(gpus=(gpu(8),), ram_free_bytes=8 * GIB, ram_total_bytes=8 * GIB)


@pytest.fixture
def card(tmp_path: Path) -> ModelCard:
    path = write_tiny_model(
        tmp_path / "m.gguf", "mtp", name="<b>Evil</b>", metadata={"general.license": "<i>mit</i>"}
    )
    return card_of(facts_of([read_header(path)]), MACHINE, ContextSettings(n_ctx=1024))


@pytest.fixture
def dialog(qtbot: QtBot, card: ModelCard) -> ModelCardDialog:
    shown = ModelCardDialog()
    qtbot.addWidget(shown)
    shown.set_card(card)
    shown.show()
    return shown


def texts(dialog: ModelCardDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel)]


def test_all_rows_are_shown_as_plain_text(dialog: ModelCardDialog, card: ModelCard) -> None:
    shown = texts(dialog)
    for label, value in (*card.summary, *card.here):
        assert label in shown and value in shown
    assert dialog.name.text() == "<b>Evil</b>"
    for label in dialog.findChildren(QLabel):
        assert label.textFormat() == label.textFormat().PlainText


def test_each_page_is_reached_by_its_button(dialog: ModelCardDialog) -> None:
    for number, name in enumerate(("cardOverview", "cardWeights", "cardMetadata", "cardTemplate")):
        button = dialog.findChild(QPushButton, name)
        assert button is not None
        button.click()
        assert dialog.pages.currentIndex() == number
        assert not dialog.grab().isNull()


def test_metadata_is_searched_in_keys_and_values(dialog: ModelCardDialog, card: ModelCard) -> None:
    table = dialog.findChild(QTableView, "metadataTable")
    assert table is not None
    model = table.model()
    assert model.rowCount() == len(card.metadata)
    dialog.metadata.search.setText("EXPERT_USED")
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == [
        "qwen35moe.expert_used_count"
    ]
    dialog.metadata.search.setText("<i>mit")
    assert model.index(0, 0).data() == "general.license"
    dialog.metadata.search.setText("(")
    assert model.rowCount() < len(card.metadata)


def test_the_template_is_there_as_it_stands_in_the_file(dialog: ModelCardDialog) -> None:
    assert dialog.template.toPlainText().startswith("{% for m in messages %}")


def test_another_model_takes_the_same_card(
    dialog: ModelCardDialog, tmp_path: Path, qtbot: QtBot
) -> None:
    facts = facts_of([read_header(write_tiny_model(tmp_path / "d.gguf", "dense", name="Dense"))])
    dialog.set_card(card_of(facts))
    assert dialog.name.text() == "Dense"
    assert not dialog.here_title.isVisible()
    assert [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()].count(
        "none: a dense model"
    ) == 1


def test_the_chart_names_the_layer_under_the_mouse(qtbot: QtBot, card: ModelCard) -> None:
    chart = LayerChart()
    qtbot.addWidget(chart)
    chart.resize(600, 200)
    assert chart.layer_at(QPointF(300, 100)) is None
    assert not chart.grab().isNull()
    chart.set_layers(card.layers)
    first, last = chart.layer_at(QPointF(70, 100)), chart.layer_at(QPointF(588, 100))
    assert first is not None and last is not None
    assert (first.index, last.index) == (0, 4)
    assert chart.layer_text(first).startswith("Layer 0: recurrent\ndense ")
    assert "MTP, not loaded" in chart.layer_text(last)
    assert chart.layer_at(QPointF(5, 100)) is None
    assert not chart.grab().isNull()
