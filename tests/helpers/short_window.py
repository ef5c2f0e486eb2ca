"""A window whose GPU has too little memory, in a process of its own on the Vulkan build.

Run as ``python -m tests.helpers.short_window BASEDIR LARGE_MODEL [PICTURE.png]``: loads the
sample model, then asks for a context and for a model that the device has no room for. Prints,
as JSON, what the window said after each step.
"""

from __future__ import annotations

import json
import resource  # not on Windows
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEventLoop
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QPlainTextEdit, QPushButton, QSlider, QWidget

from moelauncher import app
from moelauncher.core.session_state import SessionState

#: What the process may grow by: the software device takes its memory from it.
ROOM_BYTES = 1 << 30
PATIENCE_S = 240.0
MOST_OFFERS = 8


class ShortWindow:
    """The program, and what is pressed in it."""

    def __init__(self, basedir: str) -> None:
        self.program = app.build(["--demo", "--basedir", basedir])
        self.window = self.program.window

    def live_until(self, condition: Callable[[], bool]) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end_s, self.says()
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)

    def find(self, kind: type[Any], name: str) -> Any:
        found = self.window.findChild(kind, name)
        assert found is not None, name
        return found

    @property
    def selected(self) -> Path | None:
        """The file that is planned for."""
        facts = self.program.session.planner.facts
        return None if facts is None else facts.path

    def launch(self) -> None:
        """Press Launch or Apply, and live until the window is at rest again."""
        button = self.find(QPushButton, "launchButton")
        self.live_until(button.isEnabled)
        button.click()
        self.settle()

    def settle(self) -> None:
        self.live_until(lambda: self.program.session.state in RESTING)

    def wait_for_the_dry_run(self) -> None:
        """Live until the plan's numbers are llama.cpp's own."""
        planner = self.program.session.planner
        slider = self.find(QSlider, "expertSlider")

        def answered() -> bool:
            assert planner.plan is not None
            if planner.plan.forecast.note:  # a busy machine: it is asked anew after a move
                stop = slider.value()
                slider.setValue(stop + 1)
                slider.setValue(stop)
            return planner.plan.forecast.compute_source == "dry-run"

        self.live_until(answered)

    def choose_context(self, size: str) -> None:
        combo = self.find(QComboBox, "contextCombo")
        combo.lineEdit().setText(size)
        combo.lineEdit().editingFinished.emit()

    def says(self) -> dict[str, Any]:
        """What one sees now."""
        path = self.program.session.library.actions.loaded_path()
        offer = self.find(QPushButton, "offerButton")
        return {
            "state": self.program.session.state.value,
            "message": self.window.status.message.text(),
            "offer": offer.text() if offer.isVisible() else "",
            "model": "" if path is None else path.name,
            "context": self.window.status.context.text(),
        }


RESTING = (SessionState.READY, SessionState.SELECTED, SessionState.FAILED)


def limit_memory(more_bytes: int) -> None:
    """From here on this process cannot grow by more."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(basedir: str, large: str, picture: str = "") -> None:
    shown = ShortWindow(basedir)
    steps: dict[str, Any] = {}
    planner = shown.program.session.planner
    shown.live_until(lambda: bool(planner.machine.gpus) and planner.plan is not None)
    shown.find(QSlider, "expertSlider").setValue(0)
    shown.launch()
    steps["loaded"] = shown.says()
    limit_memory(ROOM_BYTES + Path(large).stat().st_size)

    # One layer's keys are more than the device takes in one piece.
    shown.choose_context("1M")
    shown.launch()
    steps["impossible context"] = shown.says()
    shown.choose_context("256k")
    shown.launch()
    steps["context refused"] = shown.says()

    shown.program.session.library.add_paths([Path(large)])
    shown.live_until(lambda: shown.selected == Path(large))
    shown.find(QSlider, "expertSlider").setValue(0)
    shown.wait_for_the_dry_run()
    shown.launch()
    steps["model refused"] = shown.says()
    if picture:
        shown.window.resize(1280, 800)
        QTest.qWait(300)
        shown.window.grab().save(picture)

    shown.find(QPlainTextEdit, "chatInput").setPlainText("What is the capital of France?")
    shown.find(QPushButton, "sendButton").click()
    shown.live_until(lambda: shown.program.session.state is SessionState.GENERATING)
    shown.settle()
    steps["chat"] = {"text": shown.find(QWidget, "chatView").toPlainText()}

    # The device says that it has more than it has, so one offer may not be enough.
    for _ in range(MOST_OFFERS):
        shown.find(QPushButton, "offerButton").click()
        shown.settle()
        steps["offer taken"] = shown.says()
        if steps["offer taken"]["model"] == Path(large).name:
            break
    shown.window.close()
    shown.program.close()
    sys.stdout.write(json.dumps(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
