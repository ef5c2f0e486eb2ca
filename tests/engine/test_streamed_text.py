"""Text of every script comes through whole, wherever tokens cut it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelauncher.core.chats.reasoning import splitter_for
from moelauncher.engine.generate import _ReplyText
from moelauncher.engine.llama_engine import LlamaEngine

TEXTS = {
    "emoji": "🙂 👩‍👩‍👧‍👦 🏳️‍🌈 🇯🇵 👍🏽 1️⃣",
    "cjk": "東京は晴れです。你好，世界！안녕하세요 𠮷野家",
    "combining": "e\u0301 n\u0303 a\u0308\u0332 Z\u0351\u036b\u0343 ก็ ṩ \u1e9b\u0323 क्षि",
    "right to left": "שלום עולם، مرحبا بالعالم \u202bא\u202c ﷺ \u200f123",
    "all together": "Grüße 🙂東京 e\u0301 שלום ```py\nx = '🙂'\n``` مرحبا 🏳️‍🌈 end",
}


def streamed(pieces: list[bytes], template: str = "", prompt: str = "") -> tuple[str, str]:
    """What the chat gets of a reply that comes in these pieces: the answer, the thinking."""
    text = _ReplyText(splitter_for(template, prompt), ("never said",))
    pairs = [text.feed(piece) for piece in pieces]
    pairs.append(text.flush())
    assert not any("\ufffd" in part for pair in pairs for part in pair)
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)


def cut_within_characters(pieces: list[bytes]) -> int:
    n_cut = 0
    for piece in pieces:
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError:
            n_cut += 1
    return n_cut


def test_tokens_of_a_real_vocabulary(smollm2: LlamaEngine) -> None:
    running = smollm2._resident.running
    assert running is not None
    vocabulary = running.model.vocabulary
    for text in TEXTS.values():
        pieces = [vocabulary.piece(token) or b"" for token in vocabulary.tokenise(text)]
        assert cut_within_characters(pieces), "else it would show nothing"
        assert b"".join(pieces).decode("utf-8") == text
        assert streamed(pieces)[0] == text


@pytest.mark.parametrize("kind", TEXTS)
def test_byte_by_byte_and_with_thinking(kind: str) -> None:
    text = TEXTS[kind]
    pieces = [bytes([byte]) for byte in f"<think>\n{text}\n</think>\n\n{text}".encode()]
    assert streamed(pieces, "<think>") == (text, text)


@settings(deadline=None)
@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(sorted(TEXTS.values())))
    whole = text.encode("utf-8")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    edges = [0, *cuts, len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    assert streamed(pieces)[0] == text
