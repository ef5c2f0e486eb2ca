"""The built window: first paint, longest block of its event loop, and what it costs decode.

Run: ``python -m tests.benchmarks.bench_window [--tokens N] [--repeat R]``. Prints ratios
and times; nothing is asserted. Wants a quiet machine: with one core per thread busy
elsewhere, the window and the engine share what is left.

* first paint: from the start of a fresh process, with warm caches, median of several;
* decode: tokens streaming into the real window (plot, chat, meters running) against a bare
  ``llama_decode`` loop with the same threads on the same model, turn by turn;
* the same against upstream's high-level ``Llama`` on the sample model;
* event loop: the longest gap between two firings of a 5 ms timer while tokens stream.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QPushButton

from moelauncher import app
from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.library.sample_model import build_sample_model, sample_model_path
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.session_state import SessionState
from moelauncher.engine.cpu_threads import physical_cores
from tests.benchmarks.bench_decode import bare_loop, high_level
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.places import build_cache

_FIRST_PAINT = """
import sys, time
from PySide6.QtCore import QEvent, QObject, QTimer
from moelauncher import app
class Watch(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            print(time.time(), flush=True)
            program.window.removeEventFilter(self)
            QTimer.singleShot(0, program.window.close)
        return False
program = app.build(["--basedir", sys.argv[1]])
watch = Watch()
program.window.installEventFilter(watch)
program.app.exec()
program.close()
"""


def first_paint_s(basedir: Path, runs: int) -> list[float]:
    """Seconds from process start to the window's first paint, warm-up left out."""
    times = []
    for _ in range(runs + 1):
        started_s = time.time()
        done = subprocess.run(
            [sys.executable, "-c", _FIRST_PAINT, str(basedir)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        times.append(float(done.stdout.split()[0]) - started_s)
    return times[1:]


class Gaps:
    """The longest time that the event loop did not come round."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last_s = time.perf_counter()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(5)
        self._timer.timeout.connect(self._tick)

    def start(self) -> None:
        """Begin to watch."""
        self._last_s = time.perf_counter()
        self._timer.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._timer.stop()

    def _tick(self) -> None:
        now_s = time.perf_counter()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s


class Streaming:
    """The program with a model loaded; measures replies in it."""

    def __init__(self, basedir: Path, arguments: list[str], n_tokens: int) -> None:
        self._n_tokens = n_tokens
        folder = basedir / "config"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.toml").write_text(
            f"[sampling]\ntemperature = 0.0\nmax_tokens = {n_tokens}\n", encoding="utf-8"
        )
        self.program = app.build([*arguments, "--basedir", str(basedir)])
        self.gaps = Gaps()
        launch = self._button("launchButton")
        _live_until(launch.isEnabled)
        launch.click()
        self._wait(SessionState.READY)
        _live_until(lambda: self.program.window.speed.plot is not None)

    def tok_s(self) -> float:
        """Decode rate of one reply that streams into the window, in a chat of its own."""
        self._button("newChatButton").click()
        return self.reply_tok_s()

    def reply_tok_s(self) -> float:
        """Decode rate of one reply that streams into the chat that is open."""
        self.program.window.findChild(QPlainTextEdit, "chatInput").setPlainText(
            "Tell me a long story about the sea and the people who live by it."
        )
        self._button("sendButton").click()
        self._wait(SessionState.GENERATING)
        self.gaps.start()
        self._wait(SessionState.READY)
        self.gaps.stop()
        reply = self.program.session.chat.conversation.last_reply
        assert reply is not None and reply.stats is not None
        if reply.stats.completion_tokens < self._n_tokens:
            print(f"  (a reply of {reply.stats.completion_tokens} tokens)")
        return reply.stats.tok_s or 0.0

    def close(self) -> None:
        """End the program."""
        self.program.window.close()
        self.program.close()

    def _button(self, name: str) -> QPushButton:
        found = self.program.window.findChild(QPushButton, name)
        assert isinstance(found, QPushButton)
        return found

    def _wait(self, state: SessionState) -> None:
        _live_until(lambda: self.program.session.state is state)


def _live_until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 300
    while not condition():
        QApplication.processEvents(
            QEventLoop.ProcessEventsFlag.AllEvents | QEventLoop.ProcessEventsFlag.WaitForMoreEvents
        )
        if time.monotonic() > until_s:
            raise TimeoutError("the window did not get there within 5 minutes")


def compare(
    title: str, streaming: Streaming, other: Callable[[int], float], n_tokens: int, repeat: int
) -> None:
    """Print the window's rate, the other one's, and the median of their ratios."""
    ours, theirs = [], []
    for _ in range(repeat + 1):
        ours.append(streaming.tok_s())
        theirs.append(other(n_tokens))
    ratio = statistics.median(a / b for a, b in zip(ours[1:], theirs[1:], strict=True))
    window, rival = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(f"{title}: window {window:.1f}, other {rival:.1f} tok/s, ratio {ratio:.3f}")
    print(f"  longest gap of the event loop {streaming.gaps.longest_s * 1000:.0f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    cache = build_cache(os.environ) / "test-models"
    settings = ContextSettings(n_ctx=4096, n_threads=default_threads(physical_cores()))
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        sample = build_sample_model(cache)
        target = sample_model_path(base / "sample" / "cache" / "sample")
        target.parent.mkdir(parents=True)
        shutil.copyfile(sample, target)
        paints = first_paint_s(base / "sample", arguments.repeat)
        print(f"first paint: median {statistics.median(paints):.2f} s, longest {max(paints):.2f} s")

        # Small enough for more than 200 tok/s on one thread, with an everyday amount of text.
        fast = write_tiny_model(
            base / "fast.gguf", "dense", n_layer=16, n_embd=512, n_head=8, n_head_kv=4,
            head_dim=64, n_ff=1536, n_ctx=4096,
        )  # fmt: skip
        streaming = Streaming(base / "fast", [str(fast)], arguments.tokens)
        bare, free = bare_loop(fast, settings)
        compare("fast model, bare loop", streaming, bare, arguments.tokens, arguments.repeat)
        free()
        streaming.close()

        streaming = Streaming(base / "sample", ["--demo"], arguments.tokens)
        upstream = high_level(sample, settings)
        compare(
            "sample model, upstream Llama", streaming, upstream, arguments.tokens, arguments.repeat
        )
        streaming.close()


if __name__ == "__main__":
    main()
