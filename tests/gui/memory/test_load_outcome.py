"""After a load: the report, the shortage with its offer, the restored state, the freed GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QPlainTextEdit, QPushButton, QTableWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.memory.load_records import LOADED, OUT_OF_MEMORY, SPILLED, LoadRecords
from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.program.settings import IDLE_UNLOAD_MINUTES
from moelauncher.core.session_state import SessionState
from tests.helpers.scripted_session import GIB, MIB, ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published model of 17 GiB: a header and holes."""
    return write_truth_model(tmp_path_factory.mktemp("model"), "qwen3-30b-a3b-q4_k_m")


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, model: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, model)
    yield made
    made.close()


def button(driver: ScriptedWindow, name: str) -> QPushButton:
    found = driver.window.findChild(QPushButton, name)
    assert found is not None, name
    return found


def message(driver: ScriptedWindow) -> str:
    return driver.window.status.message.text()


def records(driver: ScriptedWindow) -> LoadRecords:
    return LoadRecords(driver.paths.loads_file)


def load(driver: ScriptedWindow, **off_mib: float) -> None:
    driver.session.launch()
    driver.loaded(**off_mib)
    driver.wait(lambda: driver.session.state is SessionState.READY)


# The report


def test_a_load_as_planned_is_said_and_remembered(driver: ScriptedWindow) -> None:
    assert not button(driver, "loadReportButton").isVisible()
    plan = driver.plan
    load(driver)
    assert "as planned" in message(driver)
    assert not button(driver, "offerButton").isVisible()
    planned = plan.forecast.gpus[0].used_bytes
    driver.see(1 + (planned - 100 * MIB) / GIB, later_s=2)
    (record,) = records(driver).records
    assert (record.outcome, record.device) == (LOADED, "CUDA0 RTX 4070")
    assert record.measured_bytes == planned - 100 * MIB
    assert not record.had_context
    button(driver, "loadReportButton").click()
    dialog = driver.window.findChild(QDialog, "loadReport")
    table = driver.window.findChild(QTableWidget, "loadReportTable")
    assert dialog is not None
    assert dialog.isVisible()
    assert table is not None
    assert table.rowCount() == len(driver.session.outcome.accounts.comparison.rows) + 1
    button(driver, "copyLoadReportButton").click()
    copied = QApplication.clipboard().text()
    assert "qwen3-30b-a3b-q4_k_m" in copied
    assert "CUDA0" in copied
    assert str(driver.paths.data) not in copied
    assert str(Path.home()) not in copied


def test_a_forecast_that_was_wrong_asks_to_be_reported(driver: ScriptedWindow) -> None:
    load(driver, weights=40)
    assert "the forecast was off (CUDA0 weights +40 MiB)" in message(driver)
    button(driver, "offerButton").click()
    dialog = driver.window.findChild(QDialog, "loadReport")
    assert dialog is not None
    assert dialog.isVisible()
    button(driver, "copyLoadReportButton").click()
    assert "<-- wrong" in QApplication.clipboard().text()


def test_the_drivers_real_share_is_used_for_the_next_plan(driver: ScriptedWindow) -> None:
    load(driver)
    buffers = sum(b.n_bytes for b in driver.buffers(driver.plan) if b.device == "CUDA0")
    driver.see(1 + (buffers + 300 * MIB) / GIB, later_s=2)
    driver.session.unload()
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    # The context stays with the process: what it holds is no longer free, nor taken again.
    driver.see(1 + 300 / 1024, later_s=4)
    (gpu,) = driver.plan.forecast.gpus
    assert gpu.driver_bytes == 0
    assert gpu.free_bytes == 11 * GIB - 300 * MIB


def test_the_next_process_knows_the_drivers_share(
    driver: ScriptedWindow, qtbot: QtBot, tmp_path: Path, model: Path
) -> None:
    load(driver)
    buffers = sum(b.n_bytes for b in driver.buffers(driver.plan) if b.device == "CUDA0")
    driver.see(1 + (buffers + 300 * MIB) / GIB, later_s=2)
    again = ScriptedWindow(qtbot, tmp_path, model)
    (gpu,) = again.plan.forecast.gpus
    assert gpu.driver_bytes == 300 * MIB
    again.close()


def test_our_own_share_is_given_back_when_a_reload_is_judged(driver: ScriptedWindow) -> None:
    free = driver.plan.forecast.gpus[0].free_bytes
    load(driver)
    driver.see(10, later_s=2)
    assert driver.plan.forecast.gpus[0].free_bytes == free
    driver.see(11, later_s=3)  # another program took a GiB, or ours grew: nobody can tell
    assert driver.plan.forecast.gpus[0].free_bytes == free
    driver.see(11, own_gib=9, later_s=4)  # ... but the driver can
    assert driver.plan.forecast.gpus[0].free_bytes == free - GIB


def test_a_reload_right_after_an_unload_is_judged_by_what_was_before(
    driver: ScriptedWindow,
) -> None:
    free = driver.plan.forecast.gpus[0].free_bytes
    load(driver)
    driver.see(10, later_s=0.1)
    driver.session.unload()
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    load(driver)  # the meters have not spoken since
    driver.see(10, later_s=2)
    assert driver.plan.forecast.gpus[0].free_bytes == free


# A load that fails for memory


def test_a_shortage_names_the_device_and_offers_what_fits(driver: ScriptedWindow) -> None:
    driver.window.placement.slider.setValue(0)
    driver.session.launch()
    driver.failed(MemoryShortage("CUDA0", GIB, "weights"))
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    assert "CUDA0 is 7." in message(driver)
    assert "no room for the weights" in message(driver)
    offer = button(driver, "offerButton")
    assert offer.isVisible()
    assert offer.text().startswith("Load with ")
    offer.click()
    assert len(driver.engine.loads) == 2
    assert driver.plan.choices.cpu_moe > 0
    assert all(gpu.fits for gpu in driver.plan.forecast.gpus)
    assert offer.text().split()[2] == str(driver.plan.choices.cpu_moe)
    driver.loaded()
    driver.wait(lambda: driver.session.state is SessionState.READY)
    # The plan was said not to fit: that teaches nothing about the card.
    assert [record.spare_bytes < 0 for record in records(driver).records] == [True]


def test_a_load_that_was_said_to_fit_makes_the_margin_larger(driver: ScriptedWindow) -> None:
    driver.window.placement.slider.setValue(24)
    (before,) = driver.plan.forecast.gpus
    assert before.fits
    driver.session.launch()
    driver.failed(MemoryShortage("CUDA0", 300 * MIB, "compute"))
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    (record,) = records(driver).records
    assert record.outcome == OUT_OF_MEMORY
    (after,) = driver.plan.forecast.gpus
    assert after.leave_free_bytes > before.leave_free_bytes + (before.spare_bytes or 0)
    assert not after.fits
    # From the next reading on the driver's share is among what is used.
    driver.see(1.4, later_s=2)
    assert driver.plan.forecast.gpus[0].driver_bytes == 0
    assert not driver.plan.forecast.gpus[0].fits


def test_a_failed_change_brings_back_what_was_loaded(driver: ScriptedWindow) -> None:
    load(driver)
    first = driver.plan
    driver.window.placement.slider.setValue(0)
    driver.session.launch()
    driver.failed(MemoryShortage("CUDA0", GIB, "weights"))
    driver.wait(lambda: len(driver.engine.loads) == 3)
    assert driver.engine.loads[2].placement == driver.engine.loads[0].placement
    assert driver.session.state in (SessionState.CHECKING, SessionState.LOADING)
    driver.loaded(first)
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert "no room for the weights" in message(driver)
    assert "loaded again as it was before" in message(driver)
    assert button(driver, "offerButton").isVisible()
    driver.session.send("Hello?")
    assert driver.session.state is SessionState.PREFILL
    driver.finished()
    driver.wait(lambda: driver.session.state is SessionState.READY)


def test_where_even_that_fails_nothing_is_loaded(driver: ScriptedWindow) -> None:
    load(driver)
    driver.window.placement.slider.setValue(0)
    driver.session.launch()
    driver.failed(MemoryShortage("CUDA0", GIB, "weights"))
    driver.wait(lambda: len(driver.engine.loads) == 3)
    driver.failed(MemoryShortage("CUDA0", GIB, "weights"))
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    assert "as it was before failed too" in message(driver)
    assert len(driver.engine.loads) == 3, "it does not go on for ever"
    assert button(driver, "launchButton").isEnabled()


def test_any_other_failure_brings_it_back_too(driver: ScriptedWindow) -> None:
    load(driver)
    first = driver.plan
    driver.window.placement.slider.setValue(0)
    driver.session.launch()
    driver.failed()
    driver.wait(lambda: len(driver.engine.loads) == 3)
    driver.loaded(first)
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert "It did not load." in message(driver)
    assert not button(driver, "offerButton").isVisible()


# A spill


def test_a_spill_into_shared_memory_is_said_while_it_happens(driver: ScriptedWindow) -> None:
    driver.see(1, shared_gib=0.1)
    load(driver)
    driver.see(11, shared_gib=0.2, later_s=2)
    assert "shared system memory" not in message(driver)
    driver.see(11.9, shared_gib=1.6, later_s=3)
    assert "of CUDA0 moved into shared system memory" in message(driver)
    assert button(driver, "offerButton").text().startswith("Load with ")
    assert [record.outcome for record in records(driver).records] == [LOADED, SPILLED]
    driver.window.status.clear_message()
    driver.see(11.9, shared_gib=1.7, later_s=4)
    assert message(driver) == "", "once is enough"
    assert driver.plan.forecast.gpus[0].leave_free_bytes >= GIB


# Freeing the GPU


def test_a_freed_model_is_loaded_again_by_the_next_message(driver: ScriptedWindow) -> None:
    load(driver)
    button(driver, "unloadButton").click()
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    field = driver.window.findChild(QPlainTextEdit, "chatInput")
    assert field is not None
    field.setPlainText("Are you there?")
    assert button(driver, "sendButton").isEnabled()
    button(driver, "sendButton").click()
    assert len(driver.engine.loads) == 2
    assert driver.engine.loads[0] == driver.engine.loads[1]
    assert driver.engine.replies == []
    driver.loaded()
    driver.wait(lambda: len(driver.engine.replies) == 1)
    assert driver.engine.replies[0].messages[-1].content == "Are you there?"
    assert "Are you there?" in driver.window.chat.view.toPlainText()
    driver.finished()
    driver.wait(lambda: driver.session.state is SessionState.READY)


def test_a_message_is_not_lost_where_that_load_fails(driver: ScriptedWindow) -> None:
    load(driver)
    driver.session.unload()
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    driver.session.send("Are you there?")
    driver.failed(MemoryShortage("CUDA0", GIB, "weights"))
    driver.wait(lambda: driver.session.state is SessionState.FAILED)
    field = driver.window.findChild(QPlainTextEdit, "chatInput")
    assert field is not None
    assert field.toPlainText() == "Are you there?"


def test_a_model_that_was_never_loaded_is_not_loaded_by_a_message(driver: ScriptedWindow) -> None:
    driver.session.send("Are you there?")
    assert driver.engine.loads == []
    assert not driver.window.chat.composer._send_enabled


def test_idle_minutes_free_the_gpu(driver: ScriptedWindow) -> None:
    load(driver)
    assert not driver.session._idle.clock.isActive(), "never, unless it is asked for"
    driver.settings.set(IDLE_UNLOAD_MINUTES, 5)
    driver.session.send("Hello")
    assert not driver.session._idle.clock.isActive()
    driver.finished()
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert driver.session._idle.clock.interval() == 300_000
    driver.session._idle.clock.setInterval(0)
    driver.wait(lambda: driver.engine.unloads == 1)
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    assert "Idle for 5 minutes" in message(driver)
    assert "Hello" in driver.window.chat.view.toPlainText()
    assert not driver.session._idle.clock.isActive()
