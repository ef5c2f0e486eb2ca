"""What a busy machine could fail, and does not: short waits, slow examples, examples by chance."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from pytestqt.qtbot import QtBot

from tests.helpers.patient_qtbot import PATIENCE_MS


def test_waits_of_the_window_are_long(qtbot: QtBot) -> None:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QWidget

    timer, widget = QTimer(), QWidget()
    qtbot.addWidget(widget)
    with qtbot.waitSignal(timer.timeout) as waiting:
        timer.timeout.emit()
    with qtbot.waitExposed(widget) as shown:
        widget.show()
    assert (waiting.timeout, shown._timeout) == (PATIENCE_MS, PATIENCE_MS)
    assert PATIENCE_MS > 60_000


def test_examples_are_the_same_each_time_and_may_be_slow() -> None:
    assert settings().derandomize
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
