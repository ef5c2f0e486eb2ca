"""The list of models: selection, filter, menus, and what an empty list offers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QListView, QMenu, QPushButton

from moelauncher.gui.library import model_row_delegate
from moelauncher.gui.library.model_list_model import ModelListModel
from moelauncher.gui.library.model_list_pane import ModelListPane
from tests.gui.library.test_model_list_model import entry

A, B, C = entry("alpha"), entry("beta"), entry("gamma", problem="cut short")


@pytest.fixture
def pane(qtbot):
    widget = ModelListPane()
    qtbot.addWidget(widget)
    widget.resize(272, 700)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


@pytest.fixture
def told(pane):
    entries: list[object] = []
    pane.entry_selected.connect(entries.append)
    return entries


def shown(pane: ModelListPane) -> list[str]:
    model = pane.list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_the_widgets_that_others_look_for_are_there(pane):
    assert pane.findChild(QListView, "modelList").accessibleName() == "Models"
    assert pane.findChild(QLineEdit, "modelFilter").accessibleName() == "Filter models"


def test_a_click_selects(pane, told, qtbot):
    pane.set_entries([B, A, C])
    rect = pane.list.visualRect(pane.list.model().index(1, 0))
    qtbot.mouseClick(pane.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert told == [B]
    assert pane.selected() == B


def test_arrows_select(pane, told, qtbot):
    pane.set_entries([A, B, C])
    pane.select_path(A.path)
    pane.list.setFocus()
    qtbot.keyClick(pane.list, Qt.Key.Key_Down)
    qtbot.keyClick(pane.list, Qt.Key.Key_Down)
    assert told == [A, B, C]


def test_select_path(pane, told):
    pane.set_entries([A, B])
    assert pane.select_path(B.path)
    assert not pane.select_path(Path("/nowhere.gguf"))
    assert told == [B]


def test_select_path_ends_a_filter_that_hides_it(pane, told):
    pane.set_entries([A, B])
    pane.filter.setText("alpha")
    assert pane.select_path(B.path)
    assert pane.filter.text() == ""
    assert pane.selected() == B


def test_a_new_list_keeps_the_selection_without_telling_again(pane, told):
    pane.set_entries([A, B])
    pane.select_path(B.path)
    pane.set_entries([C, B, A])
    assert pane.selected() == B
    assert told == [B]


def test_what_changed_of_the_selected_model_is_told(pane, told):
    pane.set_entries([A, B])
    pane.select_path(A.path)
    broken = replace(A, problem="cut short")
    pane.upsert(broken)
    assert told == [A, broken]
    assert pane.selected() == broken
    assert shown(pane) == ["beta", "alpha"]


def test_other_rows_that_come_and_go_tell_nothing(pane, told):
    pane.set_entries([B])
    pane.select_path(B.path)
    pane.upsert(A)
    pane.upsert(C)
    pane.remove(A.path)
    assert told == [B]
    assert pane.entries() == [B, C]


def test_a_removed_selection_chooses_no_other_model(pane, told):
    pane.set_entries([A, B])
    pane.select_path(A.path)
    pane.remove(A.path)
    assert told == [A, None]
    assert pane.selected() is None


def test_a_selection_that_a_new_list_lacks_is_told(pane, told):
    pane.set_entries([A, B])
    pane.select_path(A.path)
    pane.set_entries([B])
    assert told == [A, None]


def test_a_filter_changes_no_selection(pane, told):
    pane.set_entries([A, B])
    pane.select_path(A.path)
    pane.filter.setText("beta")
    assert shown(pane) == ["beta"]
    assert pane.selected() is None
    pane.filter.clear()
    assert pane.selected() == A
    assert told == [A]


def test_down_goes_from_the_filter_to_the_list(pane, told, qtbot):
    pane.set_entries([A, B])
    pane.filter.setFocus()
    qtbot.keyClicks(pane.filter, "bet")
    qtbot.keyClick(pane.filter, Qt.Key.Key_Down)
    assert pane.list.hasFocus()
    assert told == [B]
    qtbot.keyClick(pane.filter, Qt.Key.Key_Escape)
    assert pane.filter.text() == ""


def test_the_filter_says_how_many_there_are(pane):
    pane.set_scanning(True)
    pane.set_entries([A, B])
    assert pane.filter.placeholderText() == "Looking for models: 2 so far"
    assert not pane.refresh_button.isEnabled()
    pane.set_scanning(False)
    assert pane.filter.placeholderText() == "Filter 2 models"
    assert pane.refresh_button.isEnabled()
    pane.remove(A.path)
    assert pane.filter.placeholderText() == "Filter 1 model"


def test_an_empty_list_offers_what_to_do(pane, qtbot):
    assert not pane.list.isVisible()
    demo = pane.findChild(QPushButton, "demoButton")
    assert demo.isVisible()
    with qtbot.waitSignal(pane.demo_requested):
        demo.click()
    pane.upsert(A)
    assert pane.list.isVisible()
    assert not demo.isVisible()


def test_a_filter_without_a_match_says_so(pane):
    pane.set_entries([A])
    pane.filter.setText("<b>")
    assert not pane.list.isVisible()
    assert "<b>" in pane._none._text.text()
    pane._none.show_all.click()
    assert pane.list.isVisible()


def test_buttons_ask(pane, qtbot):
    with qtbot.waitSignal(pane.refresh_requested):
        pane.refresh_button.click()
    with qtbot.waitSignal(pane.add_file_requested):
        pane.drop_hint.click()


def actions(menu: QMenu) -> dict[str, object]:
    return {action.text(): action for action in menu.actions() if action.text()}


def test_the_folder_menu_adds_and_removes(pane, qtbot):
    folder = Path("/models & more")
    pane.set_sources([folder])
    pane.menus.fill_folder_menu(pane._folder_menu)
    entries = actions(pane._folder_menu)
    with qtbot.waitSignal(pane.add_folder_requested):
        entries["Add folder…"].trigger()
    with qtbot.waitSignal(pane.add_file_requested):
        entries["Add file…"].trigger()
    remove = f"Remove {str(folder).replace('&', '&&')}"
    with qtbot.waitSignal(pane.remove_requested) as asked:
        entries[remove].trigger()
    assert asked.args == [folder]


def test_the_row_menu_copies_and_removes(pane, qtbot):
    pane.set_entries([A])
    pane.set_sources([A.path.parent])
    menu = QMenu(pane)
    assert pane._fill_row_menu(menu, pane.list.model().index(0, 0))
    entries = actions(menu)
    with qtbot.waitSignal(pane.copy_path_requested) as asked:
        entries["Copy path"].trigger()
    assert asked.args == [A]
    with qtbot.waitSignal(pane.remove_requested) as asked:
        entries[f"Remove {A.path.parent}"].trigger()
    assert asked.args == [A.path.parent]


def test_no_menu_beside_the_rows(pane):
    pane.set_entries([A])
    assert not pane._fill_row_menu(QMenu(pane), pane.list.indexAt(QPoint(10, 600)))


def test_rows_are_equally_tall_and_only_visible_ones_are_painted(pane, qtbot, monkeypatch):
    painted = []
    paint = model_row_delegate.ModelRowDelegate._paint_row

    def counted(self, painter, area, row):
        painted.append(row.entry.name)
        paint(self, painter, area, row)

    monkeypatch.setattr(model_row_delegate.ModelRowDelegate, "_paint_row", counted)
    pane.set_entries(entry(f"model {n:04}", n_expert=8, n_expert_used=2) for n in range(2000))
    pane.set_verdict(Path("/models/model 0000.gguf"), "fits", "good")

    def height(number):
        return pane.list.visualRect(pane.list.model().index(number, 0)).height()

    # So many are laid out in parts.
    qtbot.waitUntil(lambda: height(1999) > 0)
    pane.grab()
    assert len(pane.entries()) == 2000
    assert 0 < len(set(painted)) < 20
    assert {height(n) for n in (0, 1, 1999)} == {model_row_delegate.ModelRowDelegate.row_height()}


def test_a_selected_row_far_below_comes_into_view(pane, qtbot):
    pane.set_entries(entry(f"model {n:04}") for n in range(2000))
    assert pane.select_path(Path("/models/model 1990.gguf"))
    port = pane.list.viewport().rect()
    qtbot.waitUntil(lambda: port.intersects(pane.list.visualRect(pane.list.currentIndex())))


def test_the_drop_box_is_smaller_under_a_list(pane):
    alone = pane.drop_hint.sizeHint().height()
    pane.set_entries([A])
    assert pane.drop_hint.sizeHint().height() < alone
    pane.set_entries([])
    assert pane.drop_hint.sizeHint().height() == alone


def test_a_tooltip_shows_without_rendering_names_as_html(pane, qtbot):
    pane.set_entries([entry("<b>x</b>")])
    index = pane.list.model().index(0, 0)
    point = pane.list.visualRect(index).center()
    event = QHelpEvent(QEvent.Type.ToolTip, point, pane.list.viewport().mapToGlobal(point))
    QApplication.sendEvent(pane.list.viewport(), event)
    assert "&lt;b&gt;x&lt;/b&gt;" in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.data(ModelListModel.ROW).entry.name == "<b>x</b>"


@pytest.mark.parametrize("width", [224, 280])
def test_in_a_low_window_the_buttons_of_an_empty_list_do_not_overlap(pane, qtbot, width):
    pane.resize(width, pane.minimumSizeHint().height())
    qtbot.waitUntil(lambda: pane.height() >= pane.minimumSizeHint().height())
    pane.resize(width, pane.minimumSizeHint().height())
    parts = [pane.findChild(QLabel, "modelListHint")]
    parts += [button for button in pane.findChildren(QPushButton) if button.isVisible()]
    page = [part for part in parts if part.parent() is parts[0].parent()]
    assert len(page) == 4
    for above, below in pairwise(page):
        assert above.geometry().bottom() < below.geometry().top()
        assert below.height() >= below.sizeHint().height()
    assert page[0].height() >= page[0].heightForWidth(page[0].width())


def test_a_list_with_models_needs_less_height(pane):
    empty = pane.minimumSizeHint().height()
    pane.set_entries([A])
    assert pane.minimumSizeHint().height() < empty
