"""A chat view under test: replies put into it, its hot spots, clicks and drags on it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.gui.chats.chat_view import ChatView
from moelauncher.gui.chats.message_view import HotSpot

STATS = GenerationStats("stop", 412, 0, 212, 310.0, 38.4, 0.2, 6.0, 624)
CODE_REPLY = "Try **this**:\n\n```python\nprint('hi')\n```\nDone."
THOUGHT = "Let me see."


class Clock:
    """Time that passes only when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def reply(view: ChatView, text: str, label: str = "m", reasoning: str = "") -> None:
    view.begin_reply(label)
    if reasoning:
        view.append("", reasoning)
    view.append(text, "")
    view.finish_reply(STATS, "24 layers on the CPU")


def long_chat(view: ChatView, n_turns: int) -> None:
    for number in range(n_turns):
        view.add_user_message(f"question {number}")
        reply(view, f"answer {number}. " + "Some more words to wrap. " * 20)


def spots(view: ChatView, kind: str) -> list[tuple[QPoint, HotSpot]]:
    found = []
    left = view._left
    for message, top in zip(view._column.messages, view._column.tops, strict=True):
        for spot in message.hot_spots:
            if spot.kind == kind:
                center = spot.rect.center() + QPointF(left, top - view.verticalScrollBar().value())
                found.append((center.toPoint(), spot))
    return found


def click(qtbot, view: ChatView, point: QPoint) -> None:
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)


def drag(qtbot, view: ChatView, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(view.viewport(), end)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=end)
