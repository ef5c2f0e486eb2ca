"""The switch beside Send, remembered for each model."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from moelauncher.core.program.window_state import StateFile
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.thinking_chip import ThinkingChip
from moelauncher.gui.chats.thinking_choice import ThinkingChoice

ON_OFF = TemplateSwitch("enable_thinking", (False, True), True)
EFFORT = TemplateSwitch("reasoning_effort", ("low", "medium", "high"), "medium")
MODEL = Path("model.gguf")


@pytest.fixture
def chip(qtbot):
    widget = ThinkingChip()
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def state(tmp_path):
    return StateFile(tmp_path / "window.json")


def test_without_a_switch_there_is_no_chip(chip, state):
    choice = ThinkingChoice(chip, state)
    choice.set_model(MODEL, ())
    assert chip.isHidden()
    assert choice.values() == {}


def test_one_press_turns_thinking_off_for_this_model(chip, state, qtbot):
    choice = ThinkingChoice(chip, state)
    choice.set_model(MODEL, (ON_OFF,))
    assert (chip.isVisible(), chip.text(), chip.isChecked()) == (True, "Thinking on", True)
    assert choice.values() == {"enable_thinking": True}
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert (chip.text(), chip.isChecked()) == ("Thinking off", False)
    assert choice.values() == {"enable_thinking": False}
    choice.set_model(Path("other.gguf"), (ON_OFF,))
    assert chip.text() == "Thinking on"
    choice.set_model(MODEL, (ON_OFF,))
    assert chip.text() == "Thinking off"


def test_the_switch_is_that_of_the_template_that_stands_in(chip, state):
    choice = ThinkingChoice(chip, state)
    choice.set_model(MODEL, (ON_OFF,))
    choice.set_stand_in((EFFORT,))
    assert choice.values() == {"reasoning_effort": "medium"}
    choice.set_stand_in(())
    assert chip.isHidden() and choice.values() == {}
    choice.set_stand_in(None)
    assert choice.values() == {"enable_thinking": True}


def test_an_effort_is_chosen_from_a_menu(chip, state, qtbot):
    choice = ThinkingChoice(chip, state)
    choice.set_model(MODEL, (EFFORT,))
    assert chip.text() == "Thinking: medium"
    menu = QMenu()
    qtbot.addWidget(menu)
    chip.fill_menu(menu)
    assert [(a.text(), a.isChecked()) for a in menu.actions()] == [
        ("low", False),
        ("medium", True),
        ("high", False),
    ]
    menu.actions()[2].trigger()
    assert chip.text() == "Thinking: high"
    assert choice.values() == {"reasoning_effort": "high"}


@pytest.mark.parametrize("stored", ["nonsense", 3, None, 1, 0, ["x"], {}])
def test_a_stored_choice_that_makes_no_sense_is_passed_over(chip, state, stored):
    state.set("thinking", {str(MODEL): stored})
    choice = ThinkingChoice(chip, state)
    choice.set_model(MODEL, (ON_OFF,))
    assert choice.values() == {"enable_thinking": True}
    state.set("thinking", stored)
    choice.set_model(MODEL, (EFFORT,))
    assert choice.values() == {"reasoning_effort": "medium"}
