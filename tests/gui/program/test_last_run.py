"""What the window says after an abnormal end, and what it notes for the next start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.program.mapped_files import as_json, as_they_stand
from moelauncher.gui.jobs import JobRunner
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


def leave_trace(logs: Path, text: str) -> None:
    (logs / f"crash-{2**22 + 1}.txt").write_text(text, encoding="utf-8")


def leave_marker(logs: Path, **facts: object) -> None:
    # No process has this number: it is above the largest that Linux gives.
    document = {"pid": 2**22 + 1, "version": "0.0.1", "started": 1.0} | facts
    (logs / "running-1.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def jobs(qtbot: QtBot) -> Iterator[JobRunner]:
    runner = JobRunner()
    yield runner
    runner.close()


@pytest.fixture
def news(window: ScriptedWindow, logs: Path, jobs: JobRunner) -> Callable[[], list[str]]:
    """What a start says of the run before, sentence by sentence, as far as it knows at once."""

    def told() -> list[str]:
        run, heard = LastRun(window.session, logs, jobs), []
        run.tell(heard.append)
        run.close()
        return heard

    return told


def test_an_orderly_end_is_no_news(news: Callable[[], list[str]]) -> None:
    assert news() == []
    assert news() == []


@pytest.mark.parametrize(
    ("activity", "sentence"),
    [
        ("loading", "It was loading big.gguf: keep more of it in RAM this time."),
        ("generating", "big.gguf was answering: if that recurs, keep more in RAM"),
    ],
)
def test_what_went_on_is_told_with_advice(
    news: Callable[[], list[str]], logs: Path, activity: str, sentence: str
) -> None:
    leave_marker(logs, activity=activity, model="big.gguf", cpu_moe=4)
    (text,) = news()
    kept = "your chat is open again." if activity == "generating" else "your chats were kept."
    assert text.startswith(f"The last run ended abruptly; {kept}")
    assert sentence in text


def test_a_trace_is_named(news: Callable[[], list[str]], logs: Path) -> None:
    leave_marker(logs, activity="ready")
    leave_trace(logs, "Fatal Python error")
    (text,) = news()
    assert f"What happened: {logs / 'last-crash.txt'}." in text


@pytest.mark.parametrize(
    ("fate", "sentence"),
    [
        ("changed", "big.gguf was cut short or overwritten while it was loaded: press Launch"),
        ("gone", "big.gguf is not there any more"),
        ("unchanged", "Probably a part of big.gguf could not be read, though the file is"),
    ],
)
def test_a_page_that_could_not_be_read_is_told_by_what_became_of_the_file(
    qtbot: QtBot, window: ScriptedWindow, logs: Path, jobs: JobRunner, fate: str, sentence: str
) -> None:
    model = logs.with_name("big.gguf")
    model.write_bytes(b"weights")
    mapped = as_json(as_they_stand([model]))
    leave_marker(logs, activity="generating", model="big.gguf", mapped=mapped)
    leave_trace(logs, "Fatal Python error: Bus error\n\nCurrent thread ...")
    if fate == "changed":
        model.write_bytes(b"")
    elif fate == "gone":
        model.unlink()
    run, heard = LastRun(window.session, logs, jobs), []
    run.tell(heard.append)
    qtbot.waitUntil(lambda: len(heard) == 2)
    run.close()
    first, second = heard
    assert first.startswith("The last run ended abruptly; your chat is open again. What happened")
    assert sentence in second
    assert "keep more" not in second
    assert second == run.news


def test_a_page_that_could_not_be_read_in_a_load_is_told_without_a_record(
    news: Callable[[], list[str]], logs: Path
) -> None:
    leave_marker(logs, activity="loading", model="big.gguf")
    leave_trace(logs, "Windows fatal exception: page error\n")
    (text,) = news()
    assert "A part of big.gguf could not be read while it was loaded: check its file" in text


def test_a_load_is_noted_before_it_begins(
    qtbot: QtBot, window: ScriptedWindow, logs: Path, jobs: JobRunner
) -> None:
    run = LastRun(window.session, logs, jobs)
    window.session.launch()
    (marker,) = logs.glob("running-*.json")

    def noted() -> dict[str, object]:
        return json.loads(marker.read_text(encoding="utf-8"))

    assert noted()["activity"] == "loading"
    model = Path(str(noted()["path"]))
    assert noted()["model"] == model.name and model.suffix == ".gguf"
    assert noted()["cpu_moe"] == window.plan.placement.cpu_moe
    qtbot.waitUntil(lambda: "mapped" in noted())
    assert noted()["mapped"] == as_json(as_they_stand([model]))
    run.close()
    assert not list(logs.glob("running-*.json"))


def test_the_model_that_runs_is_noted_whatever_is_selected(
    window: ScriptedWindow, tmp_path: Path, logs: Path, jobs: JobRunner
) -> None:
    run = LastRun(window.session, logs, jobs)
    loaded = window.session.planner.facts
    assert loaded is not None
    window.launch()
    window.select(write_truth_model(tmp_path, "gpt-oss-20b-mxfp4"))
    window.session.send("hi")
    (marker,) = logs.glob("running-*.json")
    noted = json.loads(marker.read_text(encoding="utf-8"))
    assert noted["activity"] == "prefill"
    assert noted["path"] == str(loaded.path)
    run.close()
