"""What the window says after an abnormal end, and what it notes for the next start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.gui.program.last_run import LastRun
from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    window = ScriptedWindow(qtbot, tmp_path, write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m"))
    yield window
    window.close()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def leave_marker(logs: Path, **facts: object) -> None:
    # No process has this number: it is above the largest that Linux gives.
    document = {"pid": 2**22 + 1, "version": "0.0.1", "started": 1.0} | facts
    (logs / "running-1.json").write_text(json.dumps(document), encoding="utf-8")


def news(window: ScriptedWindow, logs: Path) -> str:
    run = LastRun(window.session, logs)
    run.close()
    return run.news


def test_an_orderly_end_is_no_news(window: ScriptedWindow, logs: Path) -> None:
    assert news(window, logs) == ""
    assert news(window, logs) == ""


@pytest.mark.parametrize(
    ("activity", "sentence"),
    [
        ("loading", "It was loading big.gguf: keep more of it in RAM this time."),
        ("generating", "big.gguf was answering: if that recurs, keep more in RAM"),
    ],
)
def test_what_went_on_is_told_with_advice(
    window: ScriptedWindow, logs: Path, activity: str, sentence: str
) -> None:
    leave_marker(logs, activity=activity, model="big.gguf", cpu_moe=4)
    text = news(window, logs)
    kept = "your chat is open again." if activity == "generating" else "your chats were kept."
    assert text.startswith(f"The last run ended abruptly; {kept}")
    assert sentence in text


def test_a_trace_is_named(window: ScriptedWindow, logs: Path) -> None:
    leave_marker(logs, activity="ready")
    (logs / f"crash-{2**22 + 1}.txt").write_text("Fatal Python error", encoding="utf-8")
    assert f"What happened: {logs / 'last-crash.txt'}." in news(window, logs)


def test_a_load_is_noted_before_it_begins(window: ScriptedWindow, logs: Path) -> None:
    run = LastRun(window.session, logs)
    window.session.launch()
    (marker,) = logs.glob("running-*.json")
    noted = json.loads(marker.read_text(encoding="utf-8"))
    assert noted["activity"] == "loading"
    assert noted["model"].endswith(".gguf")
    assert noted["cpu_moe"] == window.plan.placement.cpu_moe
    assert Path(noted["path"]).name == noted["model"]
    run.close()
    assert not list(logs.glob("running-*.json"))
