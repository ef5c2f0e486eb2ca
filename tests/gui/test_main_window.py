"""gui/main_window.py: everything can be reached at every size, sizes come back, files drop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from moelauncher.core.session_state import Selection, SessionState, controls
from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.main_window import MINIMUM_SIZE, MainWindow
from tests.helpers.memory_values import GIB, MIB, device, forecast, snapshot

TOO_MUCH = (
    "78.0 GiB too much on the GPU: move 5 more expert layers to the CPU, or shrink the context"
)


@pytest.fixture
def window(qtbot) -> MainWindow:
    window = MainWindow(ModelListPane(), ChatPane())
    qtbot.addWidget(window)
    return window


def shown(qtbot, window: MainWindow, width: int, height: int) -> MainWindow:
    window.resize(width, height)
    with qtbot.waitExposed(window):
        window.show()
    return window


def mime(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def drop(target: QWidget, data: QMimeData) -> bool:
    """Drag ``data`` onto ``target`` and let go; whether it was taken."""
    enter = QDragEnterEvent(
        QPoint(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(target, enter)
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(target, event)
    return enter.isAccepted() and event.isAccepted()


@pytest.mark.parametrize(
    "name",
    [
        "memoryGauge",
        "expertSlider",
        "expertSpin",
        "layerStrip",
        "contextCombo",
        "kvCombo",
        "launchButton",
        "statusLine",
        "modelList",
        "modelFilter",
        "chatView",
        "chatInput",
        "sendButton",
        "stopButton",
    ],
)
def test_the_names_that_tests_and_assistive_tools_look_for(window: MainWindow, name: str) -> None:
    widget = window.findChild(QWidget, name)
    assert widget is not None
    assert widget.accessibleName()


@pytest.mark.parametrize(("width", "height"), [(1000, 640), (1280, 800), (2560, 1440)])
def test_nothing_is_cut_at_any_size(qtbot, window: MainWindow, width: int, height: int) -> None:
    shown(qtbot, window, width, height)
    assert window.size() == QSize(width, height)
    window.placement.more_button.setChecked(True)
    qtbot.wait(1)
    scroll = window.findChild(QScrollArea, "rightSide")
    assert scroll.widget().width() <= scroll.viewport().width()
    for pane in (window.memory, window.placement, window.speed):
        assert pane.height() >= pane.minimumSizeHint().height()
        assert pane.width() >= pane.minimumSizeHint().width()
    if scroll.widget().height() > scroll.viewport().height():
        assert scroll.verticalScrollBar().maximum() > 0


@pytest.mark.parametrize("n_gpus", [1, 2])
def test_at_1280_by_800_more_options_fit(qtbot, window: MainWindow, n_gpus: int) -> None:
    shown(qtbot, window, 1280, 800)
    window.speed.build_plot()
    window.memory.set_snapshot(snapshot())
    gpus = [device(f"CUDA{n}", recurrent_bytes=MIB * 60) for n in range(n_gpus)]
    window.memory.set_forecast(forecast(*gpus))
    window.placement.more_button.setChecked(True)
    qtbot.wait(1)
    assert window.findChild(QScrollArea, "rightSide").verticalScrollBar().maximum() == 0


def test_a_smallest_window_without_models_has_room_for_what_to_do(qtbot, window) -> None:
    shown(qtbot, window, MINIMUM_SIZE.width(), MINIMUM_SIZE.height())
    assert window.size() == MINIMUM_SIZE
    for pane in (window.model_list, window.chats):
        assert pane.height() >= pane.minimumSizeHint().height()


@pytest.mark.parametrize("n_gpus", [1, 2])
def test_at_1280_by_800_the_right_side_needs_no_scrolling(
    qtbot, window: MainWindow, n_gpus: int
) -> None:
    shown(qtbot, window, 1280, 800)
    window.speed.build_plot()
    # All kinds of memory, and too much of it: legend and sentence are at their longest.
    gpus = [device(f"CUDA{n}", recurrent_bytes=MIB * 60) for n in range(n_gpus)]
    gpus[0] = replace(gpus[0], expert_bytes=20 * gpus[0].expert_bytes)
    window.memory.set_snapshot(snapshot())
    window.memory.set_forecast(forecast(*gpus, text=TOO_MUCH))
    qtbot.wait(1)
    assert window.findChild(QScrollArea, "rightSide").verticalScrollBar().maximum() == 0


def test_panes_stay_where_they_are_whatever_the_memory_pane_says(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1280, 800)
    window.speed.build_plot()
    places = []
    for values in (
        None,
        forecast(device(), text="fits"),
        None,
        forecast(device(recurrent_bytes=MIB * 60, expert_bytes=20 * GIB), text=TOO_MUCH),
        forecast(device(), text="fits", note="The dry run took too long."),
    ):
        window.memory.set_snapshot(snapshot(note="" if values else "No GPU is used."))
        window.memory.set_forecast(values)
        qtbot.wait(1)
        places.append([pane.geometry() for pane in (window.placement, window.speed)])
    assert all(place == places[0] for place in places)


def test_a_larger_window_is_a_larger_chat(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1280, 800)
    before = (window.model_list.width(), window.chat.width(), window.memory.width())
    window.resize(1680, 800)
    qtbot.wait(1)
    after = (window.model_list.width(), window.chat.width(), window.memory.width())
    assert after == (before[0], before[1] + 400, before[2])


def test_sizes_come_back(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 952, 640)  # the screen of the tests is small
    window._columns.setSizes([226, 342, 382])
    window.toggle_log()
    window.placement.more_button.setChecked(True)
    qtbot.wait(1)
    stored = json.loads(json.dumps(window.state()))

    other = MainWindow(ModelListPane(), ChatPane())
    qtbot.addWidget(other)
    other.restore(stored)
    with qtbot.waitExposed(other):
        other.show()
    assert other._columns.sizes() == window._columns.sizes()
    assert other._rows.sizes() == window._rows.sizes()
    assert other.log.isVisible()
    assert other.placement.more.isVisible()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"columns": "wide", "rows": 3, "geometry": 7, "more": "yes"},
        {"columns": [1, 2], "rows": [True, 2], "geometry": "ünlesbar"},
        {"columns": [-5, 10**12, 0], "rows": [0, 0]},
        {"columns": [None, 1, 2], "geometry": "AAAA"},
    ],
)
def test_a_broken_state_is_passed_over(qtbot, window: MainWindow, state: dict) -> None:
    window.restore(state)
    shown(qtbot, window, 1280, 800)
    assert all(size > 100 for size in window._columns.sizes())
    assert not window.log.isVisible()
    assert not window.placement.more_button.isChecked()


def test_files_and_folders_drop_anywhere(qtbot, window: MainWindow, tmp_path: Path) -> None:
    shown(qtbot, window, 1280, 800)
    window.watch_drops()
    dropped: list[list[Path]] = []
    window.paths_dropped.connect(dropped.append)
    model = tmp_path / "ein Modell.gguf"
    assert drop(window, mime(model, tmp_path))
    assert dropped == [[model, tmp_path]]
    for child in window.findChildren(QWidget):
        if child.acceptDrops():
            dropped.clear()
            assert drop(child, mime(model)), child
            assert dropped == [[model]], child
    assert not window._drop_hint.isVisible()


def test_results_dropped_on_the_speed_pane_are_drawn_there(
    qtbot, window: MainWindow, tmp_path: Path
) -> None:
    shown(qtbot, window, 1280, 800)
    window.speed.build_plot()
    window.watch_drops()
    results: list[list[Path]] = []
    models: list[list[Path]] = []
    window.speed.results_dropped.connect(results.append)
    window.paths_dropped.connect(models.append)
    path = tmp_path / "results.json"
    assert drop(window.speed.plot, mime(path))
    assert (results, models) == ([[path]], [])
    # A model is a model wherever it is dropped, and results elsewhere are no results.
    assert drop(window.speed.plot, mime(tmp_path / "a.gguf"))
    assert drop(window.model_list, mime(path)) or drop(window, mime(path))
    assert len(results) == 1
    assert models == [[tmp_path / "a.gguf"], [path]]


def test_dropped_text_is_no_file(qtbot, window: MainWindow) -> None:
    dropped: list[object] = []
    window.paths_dropped.connect(dropped.append)
    data = QMimeData()
    data.setText("hello")
    assert not drop(window, data)
    web = QMimeData()
    web.setUrls([QUrl("https://example.org/model.gguf")])
    assert not drop(window, web)
    assert dropped == []


def test_the_hint_lies_over_the_window_while_files_are_dragged(
    qtbot, window: MainWindow, tmp_path: Path
) -> None:
    shown(qtbot, window, 1280, 800)
    data = mime(tmp_path)
    enter = QDragEnterEvent(
        QPoint(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(window, enter)
    assert window._drop_hint.isVisible()
    assert window._drop_hint.size() == window.centralWidget().size()


def test_warnings_show_the_log_and_hide_it(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1280, 800)
    window.status.set_warnings(1)
    qtbot.mouseClick(window.status.warnings, Qt.MouseButton.LeftButton)
    qtbot.wait(1)
    assert window.log.isVisible()
    assert window.log.height() >= 100
    window.toggle_log()
    assert not window.log.isVisible()


def test_closing_is_told(qtbot, window: MainWindow) -> None:
    window.show()
    with qtbot.waitSignal(window.closing):
        window.close()
    assert not window.isVisible()


def test_after_a_launch_one_types_into_the_chat(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1440, 900)
    window.placement.set_controls(controls(SessionState.SELECTED, Selection.LOADABLE))
    window.placement.launch.setFocus()
    window.placement.set_controls(controls(SessionState.READY, Selection.LOADABLE, same_model=True))
    assert window.focusWidget() is window.chat.composer.field


def test_tab_reaches_what_can_be_used(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1440, 900)
    window.activateWindow()
    window.chat.focus_input()
    reached: list[str] = []
    for _ in range(40):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        reached.append(window.focusWidget().objectName())
    order = [name for name in reached if name in _IN_TURN]
    start = order.index("folderButton")
    assert order[start : start + len(_IN_TURN)] == list(_IN_TURN)


#: A window without a model: what Tab goes through, from the upper left corner on.
_IN_TURN = (
    "folderButton",
    "refreshButton",
    "getModelButton",
    "demoButton",
    "dropHint",
    "newKeptChatButton",
    "chatsMenuButton",
    "chatSearch",
    "chatView",
    "chatInput",
    "memoryGauge",
    "liveSwitch",
    "contextCombo",
    "kvCombo",
    "moreButton",
)


def test_ctrl_q_closes_the_window(qtbot, window: MainWindow) -> None:
    shown(qtbot, window, 1440, 900)
    with qtbot.waitSignal(window.closing):
        qtbot.keyClick(window, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)
    assert not window.isVisible()
