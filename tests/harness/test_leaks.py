"""The leak checks of conftest.py really find what is left, and keep still otherwise."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.helpers import leaks
from tests.helpers.leaks import ThreadWatch


def test_thread_that_goes_on_is_named(monkeypatch):
    monkeypatch.setattr(leaks, "_GRACE_S", 0.05)
    release = threading.Event()
    watch = ThreadWatch()
    thread = threading.Thread(target=release.wait, name="stray")
    thread.start()
    try:
        found = watch.left_behind()
    finally:
        release.set()
        thread.join()
    assert len(found) == 1
    assert "'stray'" in found[0]
    assert watch.left_behind() == []


def test_active_timer_and_thread_are_named(qtbot, monkeypatch):
    from PySide6.QtCore import QObject, QThread, QTimer

    from tests.helpers import qt_leaks

    monkeypatch.setattr(qt_leaks, "_GRACE_MS", 50)
    watch = qt_leaks.QtWatch()
    owner = QObject()
    owner.setObjectName("pane")
    timer = QTimer(owner)
    timer.start(60_000)
    thread = QThread()
    thread.setObjectName("stray")
    thread.start()
    try:
        found = watch.left_behind()
    finally:
        timer.stop()
        thread.quit()
        thread.wait()
    assert any("60000 ms" in line and "pane" in line for line in found)
    assert any("QThread stray" in line for line in found)
    assert len(found) == 2
    assert watch.left_behind() == []


def test_gui_marker_comes_by_itself(request, qapp):
    assert request.node.get_closest_marker("gui")


def test_home_is_not_the_users_own(own_home):
    assert Path(os.environ["HOME"]) == own_home
    assert Path.home() == own_home
    assert list(own_home.iterdir()) == []
