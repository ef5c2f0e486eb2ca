"""What streaming costs with a long chat open, against an empty one.

Run: .venv/bin/python -m tests.benchmarks.bench_chat_view

Prints the time of one append with its paint for both, their ratio (1.0: the old messages
cost nothing), the time to open the chat, to re-flow it after a resize, and what a frame takes
while the whole chat is scrolled through: right after opening, when heights are still estimates,
and settled, by small steps and by pages. 60 frames a second leave 16.7 ms; CPU time, which a busy
machine does not stretch.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.gui import theme
from moelauncher.gui.chats.chat_view import ChatView

STATS = GenerationStats("stop", 412, 0, 500, 310.0, 38.4, 0.2, 6.0, 912)
N_MESSAGES = 200
N_APPENDS = 300
REPLY = (
    "Attention and the KV cache are read **whole** for every token, so they belong on the "
    "GPU; of the experts only a few are. "
    * 33
    + "\n\n```python\ndef bus_bytes(n_embd, layers):\n    return 2 * n_embd * layers\n```\n\n"
    + "| placement | tok/s |\n|---|--:|\n| all on the GPU | 11.7 |\n| 24 on the CPU | 38.4 |\n"
)


def new_view() -> ChatView:
    view = ChatView()
    view.resize(776, 760)
    view.show()
    return view


def fill(view: ChatView) -> float:
    """Show the old messages; answers the seconds until the end of the chat is painted."""
    chat = Conversation()
    for number in range(N_MESSAGES // 2):
        chat = chat.ask(f"Question {number}: where does this layer go?")
        chat = chat.begin_reply("model").append(REPLY).finish(STATS, "24 layers on the CPU")
    began = time.perf_counter()
    view.show_conversation(chat)
    view.grab()
    return time.perf_counter() - began


def settle(app: QApplication, view: ChatView) -> float:
    """Let the idle layout end; answers its seconds."""
    began = time.perf_counter()
    app.processEvents()
    while view._idle.isActive():
        app.processEvents()
    return time.perf_counter() - began


def append_ms(app: QApplication, view: ChatView) -> list[float]:
    """Milliseconds of each append with the paint that it causes."""
    view.begin_reply("model")
    times = []
    for _ in range(N_APPENDS):
        began = time.perf_counter()
        view.append("and a few more words ", "")
        app.processEvents()
        times.append((time.perf_counter() - began) * 1000)
    view.finish_reply(STATS, "")
    return times


def scroll_ms(app: QApplication, view: ChatView, step: int) -> list[float]:
    """Milliseconds of each frame from the end of the chat to its beginning."""
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum())
    app.processEvents()
    times = []
    while bar.value() > 0:
        began = time.thread_time()
        bar.setValue(max(0, bar.value() - step))
        # As the event loop does it: the scrolled part is painted at once.
        app.processEvents()
        times.append((time.thread_time() - began) * 1000)
    return times


def tell_frames(name: str, times: list[float]) -> tuple[str, str]:
    ordered = sorted(times)
    late = sum(time_ms > 1000 / 60 for time_ms in times)
    figures = f"{statistics.median(ordered):.1f} / {ordered[int(len(ordered) * 0.99)]:.1f}"
    return f"scroll, {name}", f"{figures} / {ordered[-1]:.1f} ms, {late} of {len(times)} late"


def main() -> None:
    app = QApplication.instance() or QApplication([])
    theme.apply_theme(app, "dark")
    empty, full = new_view(), new_view()
    open_s = fill(full)
    idle_s = settle(app, full)
    app.processEvents()
    # Taken in turns, so that a busy machine slows both alike.
    rounds = [(append_ms(app, empty), append_ms(app, full)) for _ in range(3)]
    for view in (empty, full):
        settle(app, view)
    alone = statistics.median(t for a, _ in rounds for t in a)
    beside = statistics.median(t for _, b in rounds for t in b)
    began = time.perf_counter()
    full.resize(640, 760)
    app.processEvents()
    resize_s = time.perf_counter() - began
    settle_s = settle(app, full)
    fresh = new_view()
    fill(fresh)
    frames = [tell_frames("just opened, 60 px", scroll_ms(app, fresh, 60))]
    settle(app, fresh)
    frames.append(tell_frames("60 px a frame", scroll_ms(app, fresh, 60)))
    frames.append(tell_frames("a page a frame", scroll_ms(app, fresh, 700)))
    rows = [
        ("append, empty chat", f"{alone:.2f} ms"),
        (f"append, {N_MESSAGES} messages", f"{beside:.2f} ms"),
        ("ratio", f"{beside / alone:.2f}"),
        ("share of a core at 30 a second", f"{beside * 30 / 10:.1f} %"),
        (f"open {N_MESSAGES} messages, until painted", f"{open_s * 1000:.0f} ms"),
        ("    idle layout after it", f"{idle_s * 1000:.0f} ms"),
        ("resize, until painted", f"{resize_s * 1000:.0f} ms"),
        ("    idle layout after it", f"{settle_s * 1000:.0f} ms"),
        ("", "median / 99 % / longest"),
        *frames,
    ]
    for name, figure in rows:
        print(f"{name:36}{figure:>12}")


if __name__ == "__main__":
    main()
