"""Text to tokens and back, under the loaded model's vocabulary.

In: the native vocabulary. Out: token numbers, bytes of tokens. Any thread, while the model
lives.
"""

from __future__ import annotations

import ctypes
from typing import Any

from moelauncher.core.chats.reasoning import MARKS
from moelauncher.engine.native import Native


class Vocabulary:
    """A vocabulary, with the bytes of each token kept once they were asked for."""

    def __init__(self, native: Native, model: Any) -> None:
        self._lib = native.lib
        self._vocab = native.lib.llama_model_get_vocab(model)
        self._buffer = ctypes.create_string_buffer(4096)
        #: Bytes of a token; None for one that ends the generation. Filled by :meth:`piece`.
        self.pieces: dict[int, bytes | None] = {}
        self.n_tokens: int = self._lib.llama_vocab_n_tokens(self._vocab)
        self._bos: int = self._lib.llama_vocab_bos(self._vocab)
        self._adds_bos: bool = self._lib.llama_vocab_get_add_bos(self._vocab)
        self.bos_text = self._special_text(self._bos)
        self.eos_text = self._special_text(self._lib.llama_vocab_eos(self._vocab))

    def tokenise(self, text: str) -> list[int]:
        """Tokens of ``text``, its control marks read as such, nothing added. Thread-safe."""
        data = text.encode("utf-8", errors="replace")
        room = len(data) + 8
        while True:
            tokens = (ctypes.c_int32 * room)()
            count = self._lib.llama_tokenize(
                self._vocab, data, len(data), tokens, room, False, True
            )
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def tokenise_prompt(self, text: str) -> list[int]:
        """Tokens of a whole prompt: begins with BOS where the model wants one, and only once."""
        tokens = self.tokenise(text)
        if self._adds_bos and self._bos >= 0 and tokens[:1] != [self._bos]:
            tokens.insert(0, self._bos)
        return tokens

    def piece(self, token: int) -> bytes | None:
        """The bytes of ``token`` (empty for control tokens); None if it ends the generation."""
        if token not in self.pieces:
            ends = self._lib.llama_vocab_is_eog(self._vocab, token)
            self.pieces[token] = None if ends else self._shown_bytes(token)
        return self.pieces[token]

    def _shown_bytes(self, token: int) -> bytes:
        if self._lib.llama_vocab_is_control(self._vocab, token):
            # Control tokens are not text, but the marks of thinking have to reach the splitter.
            text = self._special_text(token)
            return text.encode("utf-8") if text in MARKS else b""
        return self._bytes_of(token, special=False)

    def _special_text(self, token: int) -> str:
        if token < 0:
            return ""
        return self._bytes_of(token, special=True).decode("utf-8", errors="replace")

    def _bytes_of(self, token: int, special: bool) -> bytes:
        buffer = self._buffer
        count = self._lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = self._lib.llama_token_to_piece(
                self._vocab, token, buffer, len(buffer), 0, special
            )
        return buffer.raw[: max(count, 0)]
