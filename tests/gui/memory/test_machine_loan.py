"""The machine, lent for a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.library.catalog import entry_of
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.session_state import SessionState
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow


class Borrower:
    """A window with its loan, and how often the machine was free."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.model = write_tiny_model(folder / "tiny.gguf", "moe")
        self.window = ScriptedWindow(qtbot, folder, self.model)
        self.session = self.window.session
        self.loan = self.session.loan
        self.free = 0

    def launch(self, stop: int) -> None:
        self.window.window.placement.slider.setValue(stop)
        self.session.launch()
        self.arrives()

    def arrives(self, plan: LaunchPlan | None = None) -> None:
        """The load ends well; ``plan`` where nothing is planned for what is in view."""
        self.window.loaded(plan)
        self.window.wait(lambda: self.session.state is SessionState.READY)

    def take(self) -> None:
        def is_free() -> None:
            self.free += 1

        self.loan.take(is_free)

    def borrow(self) -> None:
        """Take it, and let what is loaded go."""
        self.take()
        assert (self.session.state, self.free) == (SessionState.UNLOADING, 0)
        self.window.unloaded()
        self.window.wait(lambda: self.free == 1)

    @property
    def stops(self) -> list[int]:
        """The stops of all loads that were asked for."""
        return [load.placement.cpu_moe for load in self.window.engine.loads]


@pytest.fixture
def borrower(qtbot: QtBot, tmp_path: Path) -> Iterator[Borrower]:
    made = Borrower(qtbot, tmp_path)
    yield made
    made.window.close()


def test_what_was_loaded_leaves_first_and_comes_back_as_it_was(borrower: Borrower) -> None:
    borrower.launch(1)
    borrower.window.window.placement.slider.setValue(3)  # looked at, not applied
    borrower.borrow()
    assert borrower.session.state is SessionState.SELECTED
    borrower.loan.give_back()
    assert borrower.stops == [1, 1]
    borrower.arrives()
    assert borrower.window.window.findChild(QPushButton, "launchButton").text().startswith("Apply")


def test_another_model_in_view_does_not_take_its_place(borrower: Borrower, tmp_path: Path) -> None:
    borrower.launch(1)
    borrower.window.select(write_tiny_model(tmp_path / "other.gguf", "moe"))
    borrower.borrow()
    borrower.loan.give_back()
    assert borrower.window.engine.loads[-1].path == borrower.model
    borrower.arrives()
    # Nor does its setting.
    borrower.loan.apply()
    assert borrower.session.state is SessionState.READY


def test_it_comes_back_where_nothing_loadable_is_selected_by_now(
    borrower: Borrower, tmp_path: Path
) -> None:
    borrower.launch(1)
    plan = borrower.window.plan
    borrower.borrow()
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"no model")
    borrower.window.window.model_list.entry_selected.emit(entry_of(bad))
    borrower.window.wait(lambda: borrower.session.state is SessionState.UNLOADABLE)
    borrower.loan.give_back()
    borrower.arrives(plan)


def test_where_nothing_was_loaded_nothing_is(borrower: Borrower) -> None:
    borrower.take()
    assert borrower.free == 1
    borrower.loan.give_back()
    borrower.loan.apply()
    assert borrower.stops == []


def test_a_setting_that_is_taken_while_the_model_comes_back_is_applied_then(
    borrower: Borrower,
) -> None:
    borrower.launch(1)
    borrower.borrow()
    borrower.loan.give_back()
    borrower.window.window.placement.slider.setValue(3)
    borrower.loan.apply()
    assert borrower.stops == [1, 1]
    borrower.window.loaded()
    borrower.window.wait(lambda: borrower.stops == [1, 1, 3])
    borrower.arrives()
    borrower.window.window.placement.slider.setValue(2)
    assert borrower.stops == [1, 1, 3], "once"


def test_a_setting_that_is_taken_is_applied_at_once_to_what_is_there(borrower: Borrower) -> None:
    borrower.launch(1)
    borrower.window.window.placement.slider.setValue(2)
    borrower.loan.apply()
    assert borrower.stops == [1, 2]


def test_it_waits_until_a_load_is_over(borrower: Borrower) -> None:
    borrower.session.launch()
    borrower.take()
    assert (borrower.free, borrower.window.engine.unloads) == (0, 0)
    borrower.window.loaded()
    borrower.window.wait(lambda: borrower.window.engine.unloads == 1)
