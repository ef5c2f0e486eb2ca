"""A test that misbehaves fails: tried with a real pytest run of tests that misbehave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MISBEHAVING = """
import threading
import warnings

from tests.helpers import leaks

leaks._GRACE_S = 0.05
kept = []


def test_leaves_a_thread():
    release = threading.Event()
    threading.Thread(target=release.wait, name="stray", daemon=True).start()
    kept.append(release)


def test_leaves_a_timer(qtbot):
    from PySide6.QtCore import QTimer

    kept.append(QTimer())
    kept[-1].start(60_000)


def test_leaves_a_timer_in_a_widget(qtbot):
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QWidget

    kept.append(QWidget())
    QTimer(kept[-1]).start(50_000)


def test_leaves_a_qt_thread(qtbot):
    from PySide6.QtCore import QThread

    from tests.helpers import qt_leaks

    qt_leaks._GRACE_MS = 50
    kept.append(QThread())
    kept[-1].start()


def test_makes_qt_warn(qtbot):
    from PySide6.QtCore import qWarning

    qWarning("something is wrong")


def test_warns():
    warnings.warn("deprecated", DeprecationWarning, stacklevel=1)


def test_behaves(qtbot):
    assert True


def test_ends_what_was_left(qtbot):
    from PySide6.QtCore import QThread

    for thread in kept:
        if isinstance(thread, QThread):
            thread.quit()
            thread.wait()
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a run of those tests under this project's own settings."""
    file = tmp_path_factory.mktemp("misbehaving") / "test_misbehaving.py"
    file.write_text(MISBEHAVING, encoding="utf-8")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-v", "--color=no"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", ROOT / "pyproject.toml", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        ("test_leaves_a_thread", "ERROR"),
        ("test_leaves_a_timer", "ERROR"),
        ("test_leaves_a_timer_in_a_widget", "ERROR"),
        ("test_leaves_a_qt_thread", "ERROR"),
        ("test_makes_qt_warn", "FAILED"),
        ("test_warns", "FAILED"),
    ],
)
def test_misbehaviour_fails(outcomes, test, verdict):
    summary = outcomes.partition("short test summary info")[2]
    assert any(
        line.startswith(verdict) and line.split(" - ")[0].endswith(f"::{test}")
        for line in summary.splitlines()
    )


def test_reason_is_told(outcomes):
    assert "thread 'stray' still runs" in outcomes
    assert "every 60000 ms is still active" in outcomes
    assert "QTimer every 50000 ms is still active, owned by QWidget" in outcomes
    assert "QThread QThread still runs" in outcomes
    assert "something is wrong" in outcomes


def test_good_test_passes_beside_them(outcomes):
    assert "2 failed, 6 passed, 4 errors" in outcomes
