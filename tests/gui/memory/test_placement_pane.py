"""gui/memory/placement_pane.py: values in without a signal, what the user does out as signals."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLabel,
    QPushButton,
    QSlider,
    QSpinBox,
    QWidget,
)

from moelauncher.core.memory.place_model import place
from moelauncher.core.session_state import Selection, SessionState, controls
from moelauncher.gui.memory.placement_pane import PlacementPane
from moelauncher.gui.memory.placement_values import PlacementValues
from tests.helpers.planned_models import GIB, MIB, gpu, made_facts

MODEL = made_facts([(60 * MIB, GIB // 2)] * 40, ctx_train=262144)


class Heard:
    """Collects every signal of a pane, by name."""

    def __init__(self, pane: PlacementPane) -> None:
        self.all: list[tuple[object, ...]] = []
        for name in (
            "stop_changed",
            "gpu_layers_changed",
            "options_changed",
            "auto_requested",
            "launch_requested",
            "cancel_requested",
            "unload_requested",
        ):
            getattr(pane, name).connect(lambda *args, name=name: self.all.append((name, *args)))


@pytest.fixture
def pane(qtbot) -> PlacementPane:
    pane = PlacementPane()
    qtbot.addWidget(pane)
    pane.resize(392, pane.sizeHint().height())
    pane.set_slider(40, 24, "24 of 40 stay in RAM.", True)
    pane.set_layers(MODEL, place(MODEL, [gpu(12)], cpu_moe=24))
    pane.show()
    return pane


@pytest.fixture
def heard(pane: PlacementPane) -> Heard:
    return Heard(pane)


def test_the_names_that_tests_and_assistive_tools_look_for(pane: PlacementPane) -> None:
    for name, kind in (
        ("expertSlider", QSlider),
        ("expertSpin", QSpinBox),
        ("layerStrip", QWidget),
        ("contextCombo", QComboBox),
        ("kvCombo", QComboBox),
        ("launchButton", QPushButton),
    ):
        widget = pane.findChild(kind, name)
        assert widget is not None, name
        assert widget.accessibleName(), name


def test_everything_that_takes_the_focus_has_a_name(pane: PlacementPane) -> None:
    pane.more_button.setChecked(True)
    for widget in pane.findChildren(QWidget):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            button_text = widget.text() if isinstance(widget, QAbstractButton) else ""
            inside_field = isinstance(widget.parent(), QComboBox | QSpinBox)
            assert widget.accessibleName() or button_text or inside_field, widget


def test_slider_and_spin_move_together_and_tell_once(pane: PlacementPane, heard: Heard) -> None:
    pane.slider.setValue(30)
    assert pane.spin.value() == 30
    pane.spin.setValue(12)
    assert pane.slider.value() == 12
    assert heard.all == [("stop_changed", 30), ("stop_changed", 12)]


def test_values_in_tell_nobody(pane: PlacementPane, heard: Heard) -> None:
    pane.set_slider(30, 8, "8 of 30", True)
    values = PlacementValues(9, None, 16384, "q8_0", 6, 128, False, "last")
    pane.set_values(values)
    pane.set_layers(MODEL, place(MODEL, [gpu(12)], cpu_moe=9))
    pane.set_auto(True)
    pane.set_context_hint("largest that fits: 48k", 49152)
    assert heard.all == []
    assert pane.values() == values


def test_the_strip_moves_the_slider(pane: PlacementPane, heard: Heard) -> None:
    pane.strip.stop_requested.emit(7)
    assert pane.slider.value() == 7
    assert heard.all == [("stop_changed", 7)]


def test_ends_and_auto(qtbot, pane: PlacementPane, heard: Heard) -> None:
    qtbot.mouseClick(pane.all_gpu, Qt.MouseButton.LeftButton)
    assert (pane.slider.value(), pane.all_gpu.isChecked()) == (0, True)
    qtbot.mouseClick(pane.all_cpu, Qt.MouseButton.LeftButton)
    assert (pane.slider.value(), pane.all_cpu.isChecked()) == (40, True)
    assert not pane.all_gpu.isChecked()
    qtbot.mouseClick(pane.auto, Qt.MouseButton.LeftButton)
    assert pane.auto.isChecked()
    assert not pane.all_cpu.isChecked()
    assert heard.all == [("stop_changed", 0), ("stop_changed", 40), ("auto_requested",)]
    pane.slider.setValue(3)
    assert not pane.auto.isChecked()


def test_a_click_on_the_end_that_is_set_keeps_it_checked(qtbot, pane: PlacementPane) -> None:
    pane.set_slider(40, 40, "all", True)
    qtbot.mouseClick(pane.all_cpu, Qt.MouseButton.LeftButton)
    assert pane.all_cpu.isChecked()


def test_a_dense_model_gets_layers_on_the_gpu(qtbot, pane: PlacementPane, heard: Heard) -> None:
    reason = "This model is dense: it has no experts to move."
    pane.set_slider(0, 0, "", False, reason)
    assert not pane.slider.isEnabled()
    assert pane.sentence.text() == reason
    assert not pane.auto.isEnabled()
    pane.set_gpu_layers(33, 33, "All layers are on the GPU.")
    slider = pane.findChild(QSlider, "gpuLayersSlider")
    assert slider.isVisible()
    assert not pane.slider.isVisible()
    assert pane.all_gpu.isChecked()
    slider.setValue(20)
    assert pane.values().n_gpu_layers == 20
    qtbot.mouseClick(pane.all_cpu, Qt.MouseButton.LeftButton)
    assert pane.values().n_gpu_layers == 0
    assert heard.all == [("gpu_layers_changed", 20), ("gpu_layers_changed", 0)]
    pane.set_slider(40, 24, "24 of 40", True)
    pane.set_gpu_layers(None)
    assert pane.slider.isVisible()
    assert pane.values().n_gpu_layers is None


@pytest.mark.parametrize(
    ("name", "index", "field", "value"),
    [
        ("kvCombo", 1, "kv_type", "q8_0"),
        ("ubatchCombo", 0, "n_ubatch", 8),
        ("whichCombo", 1, "which", "last"),
        ("contextCombo", 3, "n_ctx", 32768),
    ],
)
def test_options_tell_once(
    pane: PlacementPane, heard: Heard, name: str, index: int, field: str, value: object
) -> None:
    combo = pane.findChild(QComboBox, name)
    combo.setCurrentIndex(index)
    combo.activated.emit(index)
    assert getattr(pane.values(), field) == value
    assert heard.all == [("options_changed",)]


def test_threads_and_mapping(qtbot, pane: PlacementPane, heard: Heard) -> None:
    assert pane.values().n_threads is None
    pane.more_button.setChecked(True)
    pane.more.threads.setValue(6)
    pane.more.mmap.click()
    assert pane.values().n_threads == 6
    assert not pane.values().use_mmap
    assert heard.all == [("options_changed",)] * 2


def test_more_folds(pane: PlacementPane) -> None:
    assert not pane.more.isVisible()
    pane.more_button.setChecked(True)
    assert pane.more.isVisible()
    pane.more_button.setChecked(False)
    assert not pane.more.isVisible()


@pytest.mark.parametrize(
    ("state", "selection", "text", "enabled", "unload"),
    [
        (SessionState.EMPTY, Selection.NONE, "Launch", False, False),
        (SessionState.SELECTED, Selection.LOADABLE, "Launch", True, False),
        (SessionState.LOADING, Selection.LOADABLE, "Cancel", True, False),
        (SessionState.READY, Selection.LOADABLE, "Apply", True, True),
    ],
)
def test_the_state_table_decides_the_buttons(
    pane: PlacementPane,
    state: SessionState,
    selection: Selection,
    text: str,
    enabled: bool,
    unload: bool,
) -> None:
    pane.set_controls(controls(state, selection, same_model=True, settings_differ=True))
    assert pane.launch.text() == text
    assert pane.launch.isEnabled() is enabled
    assert pane.unload.isEnabled() is unload


def test_the_large_button_launches_or_cancels(qtbot, pane: PlacementPane, heard: Heard) -> None:
    pane.set_controls(controls(SessionState.SELECTED, Selection.LOADABLE))
    qtbot.mouseClick(pane.launch, Qt.MouseButton.LeftButton)
    pane.set_controls(controls(SessionState.LOADING, Selection.LOADABLE))
    qtbot.mouseClick(pane.launch, Qt.MouseButton.LeftButton)
    pane.set_controls(controls(SessionState.READY, Selection.LOADABLE))
    qtbot.mouseClick(pane.unload, Qt.MouseButton.LeftButton)
    assert heard.all == [("launch_requested",), ("cancel_requested",), ("unload_requested",)]


def test_the_keyboard_goes_on_when_the_large_button_is_done(pane: PlacementPane) -> None:
    done = []
    pane.launch_done.connect(lambda: done.append(1))
    pane.set_controls(controls(SessionState.SELECTED, Selection.LOADABLE))
    pane.launch.setFocus()
    pane.set_controls(controls(SessionState.LOADING, Selection.LOADABLE))
    assert done == []
    pane.set_controls(controls(SessionState.READY, Selection.LOADABLE, same_model=True))
    assert done == [1]
    pane.set_controls(controls(SessionState.READY, Selection.LOADABLE, same_model=True))
    assert done == [1]


def test_a_button_that_is_off_says_why(pane: PlacementPane) -> None:
    shown = controls(SessionState.READY, Selection.LOADABLE, same_model=True)
    pane.set_controls(shown, "Apply", "Nothing was changed.")
    assert not pane.launch.isEnabled()
    assert pane.launch.toolTip() == "Nothing was changed."


def test_nothing_moves_while_it_loads(qtbot, pane: PlacementPane) -> None:
    pane.set_controls(controls(SessionState.SELECTED, Selection.LOADABLE))
    height, place_of_launch = pane.sizeHint().height(), pane.launch.geometry()
    pane.set_controls(controls(SessionState.LOADING, Selection.LOADABLE))
    pane.set_progress("reading 12.1 of 20.6 GiB · 1.4 GiB/s · 6 s left", 0.59)
    qtbot.wait(1)
    assert pane.sizeHint().height() == height
    assert pane.launch.geometry() == place_of_launch
    assert pane.progress.isVisible()
    assert pane.progress.fraction == 0.59
    pane.set_progress("", None)
    assert pane.progress.text == ""
    assert pane.sizeHint().height() == height


def test_progress_without_a_fraction_moves_and_stops(qtbot, pane: PlacementPane) -> None:
    pane.set_progress("checking the file", None)
    first = pane.progress._tick
    qtbot.waitUntil(lambda: pane.progress._tick != first)
    pane.set_progress("", None)
    assert pane.progress._timer == 0


def test_the_hint_sets_the_context(qtbot, pane: PlacementPane, heard: Heard) -> None:
    pane.set_context_hint("Largest context that fits: 48k", 49152)
    assert pane.hint.isVisible()
    qtbot.mouseClick(pane.hint, Qt.MouseButton.LeftButton)
    assert pane.values().n_ctx == 49152
    assert heard.all == [("options_changed",)]
    pane.set_progress("reading", 0.1)
    assert not pane.hint.isVisible()
    pane.set_progress("", None)
    assert pane.hint.isVisible()
    pane.set_context_hint("")
    assert not pane.hint.isVisible()


def test_text_from_a_file_is_never_a_mnemonic_or_markup(pane: PlacementPane) -> None:
    pane.set_slider(2, 1, "<b>A & B</b>", True)
    assert pane.sentence.text() == "<b>A & B</b>"
    assert pane.sentence.textFormat() == Qt.TextFormat.PlainText


def test_the_meters_do_not_undo_what_is_being_typed(qtbot, pane: PlacementPane) -> None:
    """Every second the same values come in again, since the machine was measured again."""
    values = pane.values()
    for field in (pane.spin.lineEdit(), pane.context.lineEdit()):
        field.setFocus()
        field.selectAll()
        qtbot.keyClicks(field, "12")
        pane.set_slider(40, values.stop, "24 of 40 stay in RAM.", True)
        pane.set_layers(MODEL, place(MODEL, [gpu(12)], cpu_moe=24))
        pane.set_values(values)
        assert field.text() == "12"
        field.clearFocus()


def test_words_that_nobody_knows_are_explained_where_they_stand(pane: PlacementPane) -> None:
    tips = {label.text(): label.toolTip() for label in pane.findChildren(QLabel) if label.toolTip()}
    assert "only a few of them" in tips["Expert layers on the CPU"]
    for name in ("expertSlider", "expertSpin"):
        assert "less VRAM" in pane.findChild(QWidget, name).toolTip()
    for text, name in (("Context", "contextCombo"), ("KV", "kvCombo"), ("Threads", "threadsSpin")):
        assert tips[text] == pane.findChild(QWidget, name).toolTip()
