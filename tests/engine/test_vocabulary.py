"""Tokens and bytes under a model's vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.vocabulary import Vocabulary
from tests.helpers.engines import load_request, run
from tests.helpers.gguf_files import write_tiny_model

MARKS = ("<think>", "</think>")


@pytest.fixture
def vocabulary(engine: LlamaEngine, tmp_path: Path) -> Vocabulary:
    """A byte-level vocabulary whose thinking marks are control tokens, as in some models."""
    path = write_tiny_model(tmp_path / "tiny.gguf", "dense", more_special_tokens=MARKS)
    assert run(engine, load_request(path)).report.n_ctx
    running = engine._resident.running
    assert running is not None
    return running.model.vocabulary


def one(vocabulary: Vocabulary, text: str) -> int:
    (token,) = vocabulary.tokenise(text)
    return token


def test_control_marks_in_a_prompt_are_single_tokens(vocabulary: Vocabulary) -> None:
    start, end = one(vocabulary, "<|im_start|>"), one(vocabulary, "<|im_end|>")
    assert vocabulary.tokenise("<|im_start|>a<|im_end|>") == [start, one(vocabulary, "a"), end]


def test_marks_of_thinking_reach_the_text_and_other_control_tokens_do_not(
    vocabulary: Vocabulary,
) -> None:
    assert vocabulary.piece(one(vocabulary, "<think>")) == b"<think>"
    assert vocabulary.piece(one(vocabulary, "<|im_start|>")) == b""
    assert vocabulary.piece(one(vocabulary, "<|im_end|>")) is None
    assert vocabulary.piece(one(vocabulary, "th")) == b"th"


def test_every_byte_survives(vocabulary: Vocabulary) -> None:
    text = "naïve 日本 🦙 \x00\t\r\n"
    pieces = [vocabulary.piece(token) or b"" for token in vocabulary.tokenise(text)]
    assert b"".join(pieces) == text.encode("utf-8")


def test_lone_surrogates_of_a_clipboard_do_no_harm(vocabulary: Vocabulary) -> None:
    assert vocabulary.tokenise("a\ud800b")


@pytest.mark.parametrize("adds_bos", [True, False])
def test_bos_comes_once_and_only_where_it_is_wanted(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, adds_bos: bool
) -> None:
    monkeypatch.setattr(vocabulary, "_adds_bos", adds_bos)
    bos = one(vocabulary, vocabulary.bos_text)
    plain = vocabulary.tokenise_prompt("hi")
    assert (plain[0] == bos) is adds_bos
    # Many templates write BOS themselves.
    assert vocabulary.tokenise_prompt(vocabulary.bos_text + "hi").count(bos) == 1
