"""Greedy answers in the child process, and how far their distributions lie from another's.

In: parameters from JSON. Out: results for JSON. The reference's distributions go to a file,
where the next child finds them: they are too many for a pipe. Runs in the child only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelauncher.core.engine_protocol import ChatMessage
from moelauncher.core.errors import LauncherError
from moelauncher.core.token_text import Utf8Joiner
from moelauncher.core.translate import tr
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.load_model import LoadedModel, ModelContext, load_weights, make_context
from moelauncher.engine.native import load_native, log_to
from moelauncher.engine.placement_json import load_request_from_json
from moelauncher.engine.stop_flag import StopFlag

_FLOAT_BYTES = 4

_asked: _Asked | None = None


class _Asked:
    """The loaded model and its context."""

    def __init__(self, model: LoadedModel, context: ModelContext, stop: StopFlag) -> None:
        self.model = model
        self.context = context
        self.evaluated = EvaluatedContext(model, context, stop)
        self.n_vocab = model.vocabulary.n_tokens

    def prompt(self, text: str) -> list[int]:
        """The tokens of a chat with this one message; bare text where there is no template."""
        try:
            rendered = self.model.template_for(None).render([ChatMessage("user", text)], {})
        except LauncherError:
            rendered = text
        return self.model.vocabulary.tokenise_prompt(rendered)

    def read(self, tokens: list[int]) -> None:
        """Bring the context to these tokens."""
        kept = self.evaluated.rewind(tokens)
        self.evaluated.evaluate(tokens[kept:], lambda _: None)

    def log_distribution(self) -> NDArray[np.float64]:
        """Logarithms of the next token's probabilities."""
        lib = self.model.native.lib
        logits = lib.llama_get_logits_ith(self.context.handle, -1)
        if not logits:
            raise LauncherError(tr("llama.cpp gave no distribution of the next token."))
        address = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))
        values = np.ctypeslib.as_array(address, shape=(self.n_vocab,)).astype(np.float64)
        values -= values.max()
        values -= np.log(np.exp(values).sum())
        return values

    def ends(self, token: int) -> bool:
        return self.model.vocabulary.piece(token) is None

    def pieces(self, tokens: list[int]) -> list[str]:
        """The text of each token; bytes of an unfinished character go to the one that ends it."""
        joiner = Utf8Joiner()
        return [joiner.feed(self.model.vocabulary.piece(token) or b"") for token in tokens]


def answers_open(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Load a placement; flash attention "on", "off" or as llama.cpp chooses (None)."""
    global _asked
    request = load_request_from_json(parameters)
    stop = StopFlag()
    lines: list[tuple[str, str]] = []
    with log_to(lambda level, text: lines.append((level, text))):
        native = load_native()
        model = load_weights(native, request, lambda _: None, lambda: False, lines)
        model.flash_attention = parameters["flash_attention"]
        context = make_context(model, request.context, stop, lines)
    _asked = _Asked(model, context, stop)
    return {"n_vocab": _asked.n_vocab}


def answers_ask(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a prompt greedily. Without ``tokens`` it is the reference's answer, and its
    distributions are written to ``file`` from ``start`` on; with them they are compared."""
    if _asked is None:
        raise LauncherError(tr("No model is open to ask."))
    prompt = _asked.prompt(parameters["prompt"])
    n_tokens = int(parameters["n_tokens"])
    if len(prompt) + n_tokens > _asked.evaluated.n_ctx:
        raise LauncherError(
            tr("A context of {n_ctx} tokens does not hold {n} tokens to compare.").format(
                n_ctx=_asked.evaluated.n_ctx, n=len(prompt) + n_tokens
            ),
            tr("Choose a larger context."),
        )
    file, start = Path(parameters["file"]), int(parameters["start"])
    with log_to(lambda level, text: None):
        if parameters["tokens"] is None:
            return _reference(_asked, prompt, n_tokens, file, start)
        return _compared(_asked, prompt, list(parameters["tokens"]), n_tokens, file, start)


def _reference(
    asked: _Asked, prompt: list[int], n_tokens: int, file: Path, start: int
) -> dict[str, Any]:
    asked.read(prompt)
    append = asked.evaluated.decoder()
    tokens: list[int] = []
    try:
        with file.open("r+b" if file.exists() else "w+b") as kept:
            kept.seek(start * asked.n_vocab * _FLOAT_BYTES)
            while True:
                distribution = asked.log_distribution()
                kept.write(distribution.astype(np.float32).tobytes())
                tokens.append(int(distribution.argmax()))
                if len(tokens) == n_tokens or asked.ends(tokens[-1]) or not append(tokens[-1]):
                    break
    except OSError as error:
        raise LauncherError(
            tr("The first setting's numbers cannot be kept: {reason}.").format(
                reason=error.strerror or str(error)
            ),
            tr("Make room on the disk of the temporary folder."),
        ) from error
    return {"tokens": tokens, "pieces": asked.pieces(tokens)}


def _compared(
    asked: _Asked, prompt: list[int], tokens: list[int], n_tokens: int, file: Path, start: int
) -> dict[str, Any]:
    """Along the reference's text, then on from where the own one parts from it."""
    expected = np.fromfile(
        file,
        dtype=np.float32,
        count=len(tokens) * asked.n_vocab,
        offset=start * asked.n_vocab * _FLOAT_BYTES,
    ).reshape(len(tokens), asked.n_vocab)
    asked.read(prompt)
    append = asked.evaluated.decoder()
    divergences: list[float] = []
    parted_at: int | None = None
    parted_to = -1
    for place, token in enumerate(tokens):
        distribution = asked.log_distribution()
        divergences.append(divergence(expected[place], distribution))
        if parted_at is None and int(distribution.argmax()) != token:
            parted_at, parted_to = place, int(distribution.argmax())
        if place + 1 < len(tokens) and not append(token):
            break
    own = list(tokens)
    if parted_at is not None:
        own = [*tokens[:parted_at], parted_to]
        asked.read([*prompt, *tokens[:parted_at]])
        append = asked.evaluated.decoder()
        while len(own) < n_tokens and not asked.ends(own[-1]) and append(own[-1]):
            own.append(int(asked.log_distribution().argmax()))
    return {
        "pieces": asked.pieces(own),
        "parted_at": parted_at,
        "divergences": divergences,
    }


def divergence(expected: NDArray[np.float32], own: NDArray[np.float64]) -> float:
    """KL divergence of ``own`` from ``expected``, both logarithms of probabilities."""
    log = expected.astype(np.float64)
    log -= np.log(np.exp(log).sum())  # rounded to 32 bits when it was kept
    return max(0.0, float((np.exp(log) * (log - own)).sum()))
