"""Jobs: lanes, errors, and an end that waits for no drive that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import LauncherError
from moelauncher.gui import job_threads, jobs
from moelauncher.gui.jobs import JobRunner


@pytest.fixture
def runner(qtbot: QtBot) -> Iterator[JobRunner]:
    made = JobRunner(threads=2)
    yield made
    made.close()
    made.deleteLater()


def _not_called(*_: object) -> None:
    raise AssertionError("this was not to be called")


def test_more_jobs_than_threads_all_answer(runner: JobRunner, qtbot: QtBot) -> None:
    answers: list[object] = []
    for number in range(20):
        runner.start(f"lane {number}", lambda r, c, n=number: n, answers.append, _not_called)
    qtbot.waitUntil(lambda: len(answers) == 20)
    assert sorted(answers) == list(range(20))  # type: ignore[type-var]


def test_the_newest_of_a_lane_answers(runner: JobRunner, qtbot: QtBot) -> None:
    gate = threading.Event()
    answers: list[object] = []
    runner.start("lane", lambda report, cancelled: gate.wait(30), _not_called, _not_called)
    runner.start("lane", lambda report, cancelled: "new", answers.append, _not_called)
    qtbot.waitUntil(lambda: answers == ["new"])
    gate.set()


def test_what_goes_wrong_is_told(runner: JobRunner, qtbot: QtBot) -> None:
    errors: list[LauncherError] = []

    def fail(report: object, cancelled: object) -> None:
        raise ZeroDivisionError("by zero")

    runner.start("lane", fail, _not_called, errors.append)
    qtbot.waitUntil(lambda: bool(errors))
    assert "by zero" in errors[0].message


def test_reports_arrive_before_the_answer(runner: JobRunner, qtbot: QtBot) -> None:
    heard: list[object] = []

    def work(report: jobs.Report, cancelled: object) -> str:
        report(1)
        report(2)
        return "end"

    runner.start("lane", work, heard.append, _not_called, heard.append)
    qtbot.waitUntil(lambda: "end" in heard)
    assert heard == [1, 2, "end"]


def test_the_end_waits_for_a_job_that_ends(runner: JobRunner) -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(report: jobs.Report, cancelled: object) -> None:
        begun.set()
        while not cancelled():  # type: ignore[operator]
            time.sleep(0.001)
        ended.set()

    runner.start("lane", work, _not_called, _not_called)
    assert begun.wait(30)
    runner.close()
    assert ended.is_set()


def test_what_is_asked_after_the_end_is_not_begun(runner: JobRunner, qtbot: QtBot) -> None:
    """By a timer that rings between the program's last word and its last event."""
    begun = threading.Event()
    runner.close()
    runner.start("late", lambda r, c: begun.set(), _not_called, _not_called)
    assert not runner.busy("late")
    assert not begun.wait(0.1)


def test_a_drive_that_hangs_is_left_behind(
    runner: JobRunner, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CLOSE_LIMIT_S", 0.05)
    monkeypatch.setattr(job_threads, "LEFT_BEHIND", [])
    drive, begun = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def hang(report: jobs.Report, cancelled: object) -> str:
        threads.append(threading.current_thread())
        begun.set()
        drive.wait(60)  # no look at cancelled: the system holds the thread
        report("late")
        return "later"

    runner.start("scan", hang, _not_called, _not_called, _not_called)
    runner.start("second", lambda r, c: begun.wait(30), _not_called, _not_called)
    assert begun.wait(30)
    runner.close()
    assert "job: scan" in job_threads.LEFT_BEHIND
    # The interpreter would not wait for it either.
    assert threads[0].is_alive() and threads[0].daemon
    # It comes back after all, to nobody.
    drive.set()
    threads[0].join(30)
    qtbot.wait(1)
    assert not threads[0].is_alive()
