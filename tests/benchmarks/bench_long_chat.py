"""What a chat of 200 messages that is open costs decode, against an empty one.

Run: ``python -m tests.benchmarks.bench_long_chat [--tokens N] [--repeat R]``. Prints the rates
of the real window, taken in turns, and the median of their ratios (0.97 and more is wanted).

The old messages are left out of what the model is given, so that both replies have the same
context: what differs is the window's work alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from tests.benchmarks.bench_chat_view import N_MESSAGES, REPLY, STATS
from tests.benchmarks.bench_window import Streaming
from tests.helpers.gguf_files import write_tiny_model


def long_chat() -> Conversation:
    """About 100,000 tokens in 200 messages, none of which the model is given."""
    chat = Conversation()
    for number in range(N_MESSAGES // 2):
        chat = chat.ask(f"Question {number}: where does this layer go?")
        chat = chat.begin_reply("model").append(REPLY).finish(STATS, "24 layers on the CPU")
    return chat.leave_out(chat.nodes)


def open_chat(streaming: Streaming, conversation: Conversation) -> float:
    """Open it as a click in the list does; answers the seconds until it is painted."""
    chat = KeptChat(new_chat_id(), conversation)
    session = streaming.program.session.chat
    session.keeper.save(chat)
    began_s = time.perf_counter()
    session.open_chat(chat.id)
    while session.chat.id != chat.id:
        QApplication.processEvents()
    streaming.program.window.grab()
    opened_s = time.perf_counter() - began_s
    while streaming.program.window.chat.view._idle.isActive():
        QApplication.processEvents()
    return opened_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    conversation = long_chat()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        # Small enough for more than 200 tok/s on one thread, with an everyday amount of text.
        model = write_tiny_model(
            base / "fast.gguf", "dense", n_layer=16, n_embd=512, n_head=8, n_head_kv=4,
            head_dim=64, n_ff=1536, n_ctx=4096,
        )  # fmt: skip
        streaming = Streaming(base / "fast", [str(model)], arguments.tokens)
        streaming.tok_s()
        empty, full, opened_s = [streaming.tok_s()], [], []
        for _ in range(arguments.repeat):
            opened_s.append(open_chat(streaming, conversation))
            full.append(streaming.reply_tok_s())
            empty.append(streaming.tok_s())
        streaming.close()
    # Each against the two beside it, so that a machine that grows slower does not count.
    beside = [(a + b) / 2 for a, b in pairwise(empty)]
    ratios = sorted(b / a for a, b in zip(beside, full, strict=True))
    ratio = statistics.median(ratios)
    print(f"empty chat {statistics.median(empty):.1f} tok/s")
    print(f"{N_MESSAGES} messages open {statistics.median(full):.1f} tok/s, ratio {ratio:.3f}")
    print(f"ratios from {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"opened and painted in {statistics.median(opened_s) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
