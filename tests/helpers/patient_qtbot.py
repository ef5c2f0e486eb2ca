"""pytest-qt's waits, with the patience that a busy machine may need."""

from __future__ import annotations

from typing import Any

from pytestqt.qtbot import QtBot

#: How long to wait for what comes within a second where nothing else goes on.
PATIENCE_MS = 120_000


class PatientQtBot(QtBot):
    """Its waits end after :data:`PATIENCE_MS` unless a test says otherwise, not after 5 s."""

    def waitSignal(self, signal: object, **options: Any) -> Any:
        return super().waitSignal(signal, **{"timeout": PATIENCE_MS, **options})

    def waitUntil(self, callback: Any, **options: Any) -> None:
        super().waitUntil(callback, **{"timeout": PATIENCE_MS, **options})

    def waitExposed(self, widget: Any, **options: Any) -> Any:
        return super().waitExposed(widget, **{"timeout": PATIENCE_MS, **options})
