"""Measurements copied, exported, imported, and those of chats kept apart."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import Finished, GenerationStats, TokenEvent
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import SessionState
from moelauncher.core.speed.measurement import CHAT, LAYERS, LLAMA_BENCH, Measurement, Setting
from tests.core.speed.test_llama_bench_json import row
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

STATS = GenerationStats("stop", 40, 10, 30, 100.0, 20.0, 0.3, 2.0, 70)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.window.speed.build_plot()
    made.window.speed.setting_button.setChecked(True)
    yield made
    made.close()


def measured(window: ScriptedWindow, stop: int, tok_s: float, **more: object) -> Measurement:
    known, facts = window.session.known, window.session.planner.facts
    assert facts is not None
    setting = Setting(stop, "first", 5, "CUDA0", 4096, "f16", 512, None, True)
    fields: dict[str, object] = {
        "model": known.fingerprint(facts),
        "model_name": facts.name,
        "setting": setting,
        "machine": known.machine(),
        "time_s": 1.0,
        "n_prompt": 512,
        "n_generated": 128,
        "depth": 512,
        "prompt_tok_s": 300.0,
        "tok_s": tok_s,
    }
    return Measurement(**(fields | more))  # type: ignore[arg-type]


def keep(window: ScriptedWindow, *measurements: Measurement) -> None:
    store = window.session.known.store
    assert store is not None
    store.add_all(measurements)
    window.session.known.read_again()


def choose(window: ScriptedWindow, text: str) -> None:
    """Click an entry of the pane's menu."""
    menu = QMenu()
    window.window.speed.fill_menu(menu, window.window.speed.views.shown)
    (action,) = (one for one in menu.actions() if one.text() == text)
    assert isinstance(action, QAction) and action.isEnabled()
    action.trigger()


def entries(window: ScriptedWindow) -> dict[str, bool]:
    menu = QMenu()
    window.window.speed.fill_menu(menu, window.window.speed.views.shown)
    return {one.text(): one.isEnabled() for one in menu.actions() if one.text()}


def test_nothing_measured_can_be_imported_only(window: ScriptedWindow) -> None:
    assert entries(window) == {
        "Copy as image": True,
        "Copy as Markdown": False,
        "Copy as CSV": False,
        "Export…": False,
        "Import llama-bench results…": True,
        "Remove imported results": False,
    }


def test_what_was_measured_is_copied_in_every_form(window: ScriptedWindow) -> None:
    keep(window, measured(window, 1, 60.0), measured(window, 1, 61.0))
    choose(window, "Copy as CSV")
    rows = list(csv.DictReader(io.StringIO(QApplication.clipboard().text())))
    assert [one["tok_s"] for one in rows] == ["60.0000", "61.0000"]
    choose(window, "Copy as Markdown")
    assert "60.50 ± 0.50 (tg128 @ d512)" in QApplication.clipboard().text()
    assert "llama-bench -m tiny.gguf" in QApplication.clipboard().text()
    choose(window, "Copy as image")
    assert not QApplication.clipboard().image().isNull()


def test_the_live_view_copies_its_curve(window: ScriptedWindow) -> None:
    window.window.speed.live_button.setChecked(True)
    window.window.speed.add_rate(1.0, 30.0)
    choose(window, "Copy as CSV")
    assert QApplication.clipboard().text() == "seconds,tok_s\n0.0,30.000\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.md", "| placement |"), ("a.csv", "model_name"), ("a.json", "moelauncher-measurements")],
)
def test_export_writes_the_form_that_the_name_asks_for(
    window: ScriptedWindow, tmp_path: Path, name: str, words: str
) -> None:
    keep(window, measured(window, 1, 60.0))
    window.session.share.export(tmp_path / name)
    window.wait(lambda: (tmp_path / name).exists())
    window.wait(lambda: "Exported" in window.window.status.message.text())
    assert words in (tmp_path / name).read_text(encoding="utf-8")


def test_export_that_cannot_be_written_is_said(window: ScriptedWindow, tmp_path: Path) -> None:
    keep(window, measured(window, 1, 60.0))
    (tmp_path / "folder.csv").mkdir()
    window.session.share.export(tmp_path / "folder.csv")
    window.wait(lambda: "Cannot write" in window.window.status.message.text())


def test_results_of_llama_bench_are_drawn_beside_and_can_be_removed(
    window: ScriptedWindow, tmp_path: Path
) -> None:
    keep(window, measured(window, 1, 60.0))
    path = tmp_path / "results.json"
    path.write_text(
        json.dumps(
            [
                row(model_filename="tiny.gguf", n_cpu_moe=2, samples_ts=[50.0]),
                row(model_filename="tiny.gguf", n_cpu_moe=0, n_gpu_layers=2, samples_ts=[20.0]),
            ]
        ),
        encoding="utf-8",
    )
    pane = window.window.speed
    pane.results_dropped.emit([path])
    window.wait(lambda: "2 repeats imported" in window.window.status.message.text())
    plot = pane.settings
    assert plot is not None
    assert [one.stop for one in plot.speeds] == [1]
    tip = plot.tip_at(plot.width() / 2)
    assert "1: 60.0 tok/s" in tip
    assert "2: 50.0 tok/s" in tip and "RTX 4070" in tip
    assert "2 layers on the GPU: 20.0 tok/s" in tip
    pane.results_dropped.emit([path])
    window.wait(lambda: "already" in window.window.status.message.text())
    choose(window, "Remove imported results")
    assert "RTX 4070, 2:" not in plot.tip_at(0)
    store = window.session.known.store
    assert store is not None
    assert {one.source for one in store.everything()} == {"tune"}


def test_another_models_results_are_refused(window: ScriptedWindow, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([row(model_filename="other.gguf")]), encoding="utf-8")
    window.session.share.take_results([path])
    window.wait(lambda: "another model" in window.window.status.message.text())
    store = window.session.known.store
    assert store is not None and store.everything() == []


def test_a_layer_split_is_a_level_in_the_plot(window: ScriptedWindow) -> None:
    one = measured(window, 0, 25.0)
    keep(window, replace(one, setting=replace(one.setting, n_gpu_layers=3, division=LAYERS)))
    plot = window.window.speed.settings
    assert plot is not None and plot.speeds == ()
    assert "Layer split, 3 layers on the GPU: 25.0 tok/s" in plot.tip_at(0)
    assert not window.window.speed.views.by_setting.empty.isVisible()


def test_replies_are_kept_apart(window: ScriptedWindow) -> None:
    window.launch()
    for n_tokens in (30, 4):
        window.session.send("hello")
        stats = replace(STATS, completion_tokens=n_tokens)
        window.engine.say(TokenEvent(0, "Hi", "", 1, 1.0), Finished(0, stats))
        window.wait(lambda: window.session.state is SessionState.READY)
    store = window.session.known.store
    assert store is not None
    window.wait(lambda: len(store.everything()) == 1)
    (kept,) = store.everything()
    assert (kept.source, kept.tok_s, kept.n_prompt, kept.depth) == (CHAT, 20.0, 30, 40)
    assert kept.source != LLAMA_BENCH
    window.session.known.read_again()
    assert not entries(window)["Copy as CSV"]
    plot = window.window.speed.settings
    assert plot is not None and plot.speeds == ()


def test_a_reply_whose_rate_cannot_be_kept_is_no_news(
    window: ScriptedWindow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the disk is full, what is said of the chat must stay to be read."""

    def full(measurement: Measurement) -> None:
        raise LauncherError("The disk is full.")

    assert window.session.known.store is not None
    monkeypatch.setattr(window.session.known.store, "add", full)
    window.launch()
    window.session.send("hello")
    window.window.status.set_message("The chat is not kept.", "error")
    stats = replace(STATS, completion_tokens=30)
    window.engine.say(TokenEvent(0, "Hi", "", 1, 1.0), Finished(0, stats))
    window.wait(lambda: "The disk is full." in caplog.text)
    assert window.window.status.message.text() == "The chat is not kept."
