"""Tune in the window, with scripted sweeps: the dialog, the store, the view by setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QPushButton, QTableWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.paths import app_paths
from moelauncher.core.session_state import SessionState
from moelauncher.core.speed.measurement import Measurement
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.speed.split_search import LAYER_SPLIT
from moelauncher.core.speed.sweep import Sweep
from moelauncher.core.speed.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneEvent,
    TuneJob,
    Visiting,
    setting_of,
)
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import GIB, ScriptedWindow

RATES = {LAYER_SPLIT: 20.0, 0: 50.0, 1: 60.0, 2: 55.0, 3: 45.0, 4: 40.0}


def scripted(job: TuneJob, sweep: Sweep, case_of: object, cancelled: object) -> Iterator[TuneEvent]:
    """Visits what the search asks for; stop 0 does not run, one repeat is disturbed."""
    number = 0
    while (stop := sweep.next_stop()) is not None:
        yield Visiting(stop, sweep.n_visits, sweep.limit, 12.0)
        if stop == 0:
            sweep.fail(0)
            yield Failed(0, LauncherError("There is not enough memory.", "Close others."))
            continue
        number += 1
        request = case_of(stop).request  # type: ignore[operator]
        rate = RATES[request.placement.cpu_moe] * (1.0 if request.use_mmap else 1.2)
        disturbed = "The computer slept for 9 s." if number == 2 else ""
        sweep.add(stop, rate, disturbed=bool(disturbed), prompt_rate=300.0)
        yield Measured(
            stop,
            Measurement(
                job.model,
                job.model_name,
                setting_of(request),
                job.machine,
                1.0,
                job.n_prompt,
                job.n_generate,
                job.n_prompt,
                300.0,
                rate,
                vram_bytes=1 << 30,
                disturbance=disturbed,
            ),
        )
    yield Decided(sweep.decision(), "", 30.0)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.tune = scripted
    made.window.speed.build_plot()
    yield made
    made.close()


def sweep_through(window: ScriptedWindow, qtbot: QtBot) -> None:
    window.window.findChild(QPushButton, "tuneButton").click()
    window.window.findChild(QPushButton, "tuneStartButton").click()
    dialog = window.session.tuning.dialog
    qtbot.waitUntil(lambda: bool(dialog.verdict.text()))


def test_a_sweep_fills_table_and_plot_and_can_be_taken(
    window: ScriptedWindow, qtbot: QtBot
) -> None:
    assert window.window.findChild(QPushButton, "tuneButton").isEnabled()
    sweep_through(window, qtbot)
    dialog = window.session.tuning.dialog
    table = dialog.findChild(QTableWidget, "tuneTable")
    texts = [
        [table.item(row, column).text() for column in range(table.columnCount())]
        for row in range(table.rowCount())
    ]
    assert [row[0] for row in texts] == sorted(row[0] for row in texts)
    assert "There is not enough memory." in [row[4] for row in texts]
    assert any("slept" in row[4] for row in texts)
    assert "1 is the fastest" in dialog.verdict.text()
    speeds = {one.stop: one.median for one in window.window.speed.settings.speeds}
    assert speeds[1] == 60.0
    window.window.findChild(QPushButton, "tuneTakeButton").click()
    assert window.session.planner.choices().cpu_moe == 1
    assert not dialog.isVisible()


def test_the_progress_says_what_is_measured(window: ScriptedWindow, qtbot: QtBot) -> None:
    seen = Event()

    def one_visit(
        job: TuneJob, sweep: Sweep, case_of: object, cancelled: object
    ) -> Iterator[TuneEvent]:
        yield Visiting(3, 0, 4, 90.0)
        seen.wait(20)
        yield from scripted(job, sweep, case_of, cancelled)

    window.tune = one_visit
    window.window.findChild(QPushButton, "tuneButton").click()
    window.window.findChild(QPushButton, "tuneStartButton").click()
    dialog = window.session.tuning.dialog
    qtbot.waitUntil(lambda: "left" in dialog.progress.text)
    shown = dialog.progress.text
    seen.set()
    assert shown.startswith("On the CPU: 3 · ")
    qtbot.waitUntil(lambda: bool(dialog.verdict.text()))


def test_the_answers_of_the_best_setting_can_be_compared(
    window: ScriptedWindow, qtbot: QtBot
) -> None:
    button = window.window.findChild(QPushButton, "tuneCompareButton")
    window.window.findChild(QPushButton, "tuneButton").click()
    assert not button.isEnabled()
    window.session.tuning.dialog.close()
    sweep_through(window, qtbot)
    button.click()
    assert not window.session.tuning.dialog.isVisible()
    dialog = window.session.answers.dialog
    assert dialog.isVisible()
    assert dialog.layers.value() == 1
    dialog.close()


def test_a_lever_is_tried_where_its_box_is_ticked_and_taken_with_the_stop(
    window: ScriptedWindow, qtbot: QtBot
) -> None:
    assert window.session.planner.choices().use_mmap
    dialog = window.session.tuning.dialog
    dialog.findChild(QCheckBox, "tuneLever-mmap").setChecked(True)
    sweep_through(window, qtbot)
    table = dialog.findChild(QTableWidget, "tuneTable")
    names = [table.item(row, 0).text() for row in range(table.rowCount())]
    assert "1, file not mapped" in names
    assert names.index("1, file not mapped") == names.index("1") + 1
    assert "File not mapped: " in dialog.verdict.text()
    window.window.findChild(QPushButton, "tuneTakeButton").click()
    taken = window.session.planner.choices()
    assert (taken.cpu_moe, taken.use_mmap) == (1, False)
    known = window.session.known
    facts = window.session.planner.facts
    assert known.store is not None and facts is not None
    kept = known.store.choice(known.fingerprint(facts), known.machine().name)
    assert kept is not None and not kept.use_mmap


def test_what_was_tuned_at_the_command_line_is_taken_by_a_window_that_never_chose(
    window: ScriptedWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    sweep_through(window, qtbot)
    facts, store = window.session.planner.facts, window.session.known.store
    assert facts is not None and store is not None
    newest = store.everything()[-1]
    tuned = replace(newest.setting, cpu_moe=3, n_threads=2, use_mmap=False, which="last")
    other = MeasurementStore(app_paths(tmp_path / "two" / "base").measurements_file)
    other.remember_choice(newest.model, newest.machine.name, tuned, 1.0)
    other.close()
    again = ScriptedWindow(qtbot, tmp_path / "two", tmp_path / "tiny.gguf")
    try:
        taken = again.session.planner.choices()
        assert (taken.cpu_moe, taken.context.n_threads, taken.which) == (3, 2, "last")
        assert not taken.use_mmap
        again.session.planner.auto()
        again.session.known.read_again()
        assert again.session.planner.choices().cpu_moe != 3, "who chooses is not overruled"
    finally:
        again.close()


def test_measurements_are_there_after_a_restart(
    window: ScriptedWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    sweep_through(window, qtbot)
    window.session.tuning.dialog.close()
    again = ScriptedWindow(qtbot, tmp_path, tmp_path / "tiny.gguf")
    try:
        again.window.speed.build_plot()
        again.window.findChild(QPushButton, "settingViewButton").click()
        assert {one.stop for one in again.window.speed.settings.speeds} >= {1, 2}
        tip = again.window.speed.settings.tip_at(again.window.speed.settings.width() / 2)
        assert "repeats" in tip
        again.window.model_list.upsert(entry_of(tmp_path / "tiny.gguf"))
        index = again.window.model_list.list.model().index(0, 0)
        row = index.data(Qt.ItemDataRole.AccessibleTextRole)
        assert "60 tok/s" in row
    finally:
        again.close()


def test_what_the_command_line_measures_meanwhile_is_shown(
    window: ScriptedWindow, qtbot: QtBot
) -> None:
    sweep_through(window, qtbot)
    window.session.tuning.dialog.close()
    settings = window.window.speed.settings
    window.see()
    assert max(one.median for one in settings.speeds) == 60.0
    other = MeasurementStore(window.paths.measurements_file)
    try:
        newest = other.everything()[-1]
        other.add(replace(newest, tok_s=99.0, setting=replace(newest.setting, cpu_moe=3)))
    finally:
        other.close()
    window.see()
    assert {one.stop: one.median for one in settings.speeds}[3] > 45.0


def test_cancel_while_the_memory_is_freed_begins_no_sweep(
    window: ScriptedWindow, qtbot: QtBot
) -> None:
    begun: list[TuneJob] = []

    def remembering(job: TuneJob, *rest: object) -> Iterator[TuneEvent]:
        begun.append(job)
        return iter(())

    window.tune = remembering
    window.launch()
    window.window.findChild(QPushButton, "tuneButton").click()
    window.window.findChild(QPushButton, "tuneStartButton").click()
    assert window.session.state is SessionState.UNLOADING
    cancel = window.window.findChild(QPushButton, "tuneCancelButton")
    cancel.click()
    window.unloaded()
    window.wait(cancel.isEnabled)
    dialog = window.session.tuning.dialog
    assert (cancel.text(), begun) == ("Close", [])
    assert dialog.verdict.text() == "Cancelled before anything was measured."
    assert len(window.engine.loads) == 2, "what was loaded comes back"
    dialog.close()


def test_the_dialog_says_what_it_will_do(window: ScriptedWindow, qtbot: QtBot) -> None:
    window.window.findChild(QPushButton, "tuneButton").click()
    dialog = window.session.tuning.dialog
    assert "unloaded first" in dialog.about.accessibleName() + dialog.about.text()
    assert window.session.state is SessionState.SELECTED
    dialog.close()


def test_a_plain_layer_split_is_one_row_more(window: ScriptedWindow, qtbot: QtBot) -> None:
    box = window.window.findChild(QCheckBox, "tuneSplitBox")
    window.window.findChild(QPushButton, "tuneButton").click()
    dialog = window.session.tuning.dialog
    # The tiny model fits on the card: there is nothing to compare with.
    assert not box.isEnabled()
    assert "fits on the GPU" in box.toolTip()
    assert not dialog.wants_split
    dialog.close()
    # A card that lacks one byte for all of it.
    window.window.placement.slider.setValue(0)
    spare = window.plan.forecast.gpus[0].spare_bytes
    assert spare is not None
    window.see(1.0 + (spare + 1) / GIB)
    window.window.findChild(QPushButton, "tuneButton").click()
    assert box.isEnabled()
    box.setChecked(True)
    window.window.findChild(QPushButton, "tuneStartButton").click()
    qtbot.waitUntil(lambda: bool(dialog.verdict.text()))
    table = dialog.findChild(QTableWidget, "tuneTable")
    names = [table.item(row, 0).text() for row in range(table.rowCount())]
    assert names[-1].startswith("Layer split (")
    assert "A plain layer split" in dialog.verdict.text()
