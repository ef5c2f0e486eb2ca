"""One reply: the prompt is evaluated, tokens are drawn and told one by one.

In: :class:`GenerateRequest`, a loaded model and its context. Out: PromptProgress and
TokenEvent through ``emit``, then :class:`GenerationStats`. Engine thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moelauncher.core.chats.prompt_prefix import common_prefix
from moelauncher.core.chats.reasoning import (
    NoSplitter,
    ReasoningSplitter,
    begun_reply,
    splitter_for,
)
from moelauncher.core.engine_protocol import (
    ChatMessage,
    EngineEvent,
    GenerateRequest,
    GenerationStats,
    PromptProgress,
    TokenEvent,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.token_text import StopStrings, Utf8Joiner
from moelauncher.core.translate import tr
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.live_move import MovePause
from moelauncher.engine.load_model import LoadedModel
from moelauncher.engine.sampler import sample_function, sampler_chain
from moelauncher.engine.stop_flag import StopFlag


@dataclass(frozen=True)
class _Prompt:
    tokens: list[int]
    #: Where other prompts part from this one: another wording of the last question, and what
    #: follows it: a reply that reads otherwise in the history, or none and a further question.
    marks: tuple[int, ...]
    splitter: ReasoningSplitter


class Generation:
    """One run of :meth:`run`; what it counts is read by :meth:`_stats`."""

    def __init__(
        self,
        number: int,
        request: GenerateRequest,
        model: LoadedModel,
        context: EvaluatedContext,
        stop: StopFlag,
        emit: Callable[[EngineEvent], None],
        pause: MovePause,
    ) -> None:
        self._number = number
        self._request = request
        self._model = model
        self._template = model.template_for(request.template)
        self._context = context
        self._stop = stop
        self._emit = emit
        self._pause = pause
        self._paused_s = 0.0  # while tokens were drawn
        self._prompt_paused_s = 0.0
        self._started_s = time.perf_counter()
        self._prompt_tokens = self._cached_tokens = self._n_tokens = 0
        self._first_s: float | None = None
        self._last_s: float | None = None

    def run(self) -> GenerationStats:
        """Evaluate, draw, tell. A stop keeps what there is and is told in the stats.

        Raises LauncherError where there is no reply at all.
        """
        try:
            prompt = self._prompt()
            self._evaluate(prompt)
            reason = self._draw(prompt)
        except Cancelled:
            reason = "cancelled"
        self._context.keep_checkpoint()
        return self._stats(reason)

    def _prompt(self) -> _Prompt:
        request, vocabulary = self._request, self._model.vocabulary
        if request.raw_prompt is not None:
            tokens = vocabulary.tokenise_prompt(request.raw_prompt)
            prompt = _Prompt(tokens, (), NoSplitter())
        else:
            history = request.messages[:-1] if request.continues else request.messages
            text = self._render(history, open_reply=True)
            template = self._template.text
            splitter = splitter_for(template, text)
            if request.continues:
                begun = request.messages[-1]
                so_far, splitter = begun_reply(template, text, begun.reasoning, begun.content)
                text += so_far
            tokens = vocabulary.tokenise_prompt(text)
            prompt = _Prompt(tokens, self._marks(tokens), splitter)
        self._check_length(len(prompt.tokens))
        return prompt

    def _render(self, messages: Sequence[ChatMessage], open_reply: bool) -> str:
        return self._template.render(
            messages,
            self._request.template_values,
            open_reply=open_reply,
            cancelled=lambda: self._stop.raised,
        )

    def _marks(self, tokens: list[int]) -> tuple[int, ...]:
        if not (self._model.window or self._model.recurrent):
            return ()  # a plain cache can be cut anywhere
        messages = self._request.messages
        if self._request.continues:
            messages = messages[:-1]
        if not messages:
            return ()
        *before, last = messages
        # A reply that never came to a word is left away, and the next question joins this one.
        asked_on = replace(last, content=f"{last.content}\n\n…")
        others: list[tuple[list[ChatMessage], bool]] = [
            (before, False),
            ([*before, asked_on], True),
        ]
        found: set[int] = set()
        for history, open_reply in others:
            if not history:
                continue
            try:
                text = self._render(history, open_reply)
            except LauncherError:
                continue  # some templates want the reply opened, or a question
            found.add(common_prefix(tokens, self._model.vocabulary.tokenise_prompt(text)))
        return tuple(sorted(mark for mark in found if 0 < mark < len(tokens)))

    def _check_length(self, n_tokens: int) -> None:
        self._prompt_tokens = n_tokens
        if n_tokens == 0:
            raise LauncherError(tr("There is nothing to answer."), tr("Write a message first."))
        if n_tokens > self._context.n_ctx:
            raise LauncherError(
                tr("The conversation has {n} tokens, the context holds {limit}.").format(
                    n=n_tokens, limit=self._context.n_ctx
                ),
                tr("Choose a larger context, shorten the message, or begin a new conversation."),
            )

    def _evaluate(self, prompt: _Prompt) -> None:
        context, tokens = self._context, prompt.tokens
        self._cached_tokens = context.rewind(tokens, self._request.chat_id)
        self._tell_read(len(tokens))
        for mark in (*prompt.marks, len(tokens)):
            while len(context.tokens) < mark:
                if self._pause.wanted:
                    self._move_in_prompt(len(tokens))
                done = len(context.tokens)
                context.evaluate(tokens[done : min(mark, done + context.piece)], lambda _: None)
                self._tell_read(len(tokens))
            if mark < len(tokens):
                context.keep_checkpoint()

    def _tell_read(self, n_prompt: int) -> None:
        done, kept = len(self._context.tokens), self._cached_tokens
        elapsed_s = time.perf_counter() - self._started_s - self._prompt_paused_s
        self._emit(PromptProgress(self._number, done - kept, n_prompt - kept, kept, elapsed_s))

    def _move_in_prompt(self, n_prompt: int) -> None:
        """Let the model move between two pieces of the prompt; what it lost is read again."""
        began_s = time.perf_counter()
        try:
            self._model = self._pause.serve()
        finally:
            self._prompt_paused_s += time.perf_counter() - began_s
        if self._stop.raised:
            raise Cancelled
        self._context.unread = []
        self._cached_tokens = min(self._cached_tokens, len(self._context.tokens))
        self._check_length(n_prompt)
        self._tell_read(n_prompt)

    def _draw(self, prompt: _Prompt) -> str:
        model, request = self._model, self._request
        text = _ReplyText(prompt.splitter, request.stop)
        with sampler_chain(
            model.native, request.sampling, model.vocabulary.n_tokens, prompt.tokens
        ) as chain:
            try:
                return self._draw_tokens(chain, text)
            finally:
                answer, reasoning = text.flush()
                if answer or reasoning:
                    self._emit(
                        TokenEvent(
                            self._number, answer, reasoning, self._n_tokens, time.monotonic()
                        )
                    )

    def _draw_tokens(self, chain: object, text: _ReplyText) -> str:
        # The inner loop: everything it needs is bound to a local name before.
        model = self._model
        sample = sample_function(model.native, self._request.sampling, model.vocabulary.n_tokens)
        handle, append, synchronise, pieces, find_piece = self._at_hand()
        emit, stop = self._emit, self._stop
        number, feed, pause = self._number, text.feed, self._pause
        now, monotonic = time.perf_counter, time.monotonic
        limit = self._request.max_tokens
        endless = self._request.ignore_end_of_generation
        n_tokens = 0
        if limit is not None and limit <= 0:
            return "length"
        while True:
            if synchronise is not None:
                synchronise(handle)
            token = sample(chain, handle, -1)
            drawn_s = now()
            piece = pieces[token] if token in pieces else find_piece(token)
            if self._first_s is None:
                self._first_s = drawn_s
            if piece is None:
                if not endless:
                    return "stop"
                piece = b""
            self._last_s = drawn_s
            n_tokens += 1
            self._n_tokens = n_tokens
            answer, reasoning = feed(piece)
            emit(TokenEvent(number, answer, reasoning, n_tokens, monotonic()))
            if text.stopped:
                return "stop"
            if n_tokens == limit:
                return "length"
            if stop.raised:
                return "cancelled"
            if pause.wanted:
                # Drawn but not evaluated: its logits are computed where the model is then.
                self._follow_the_model()
                handle, append, synchronise, pieces, find_piece = self._at_hand()
                if stop.raised:
                    return "cancelled"
            if not append(token):
                return "context_full"

    def _at_hand(self) -> tuple[Any, Any, Any, dict[int, bytes | None], Any]:
        """What the inner loop calls of the model and the context that are there now."""
        model, context = self._model, self._context
        synchronise = model.native.lib.llama_synchronize if model.on_gpu else None
        vocabulary = model.vocabulary
        return context.handle, context.decoder(), synchronise, vocabulary.pieces, vocabulary.piece

    def _follow_the_model(self) -> None:
        """Let the model move, and read again what it could not bring along."""
        began_s = time.perf_counter()
        self._model = self._pause.serve()
        lost = self._context.unread
        self._context.unread = []

        def tell(done: int) -> None:
            self._emit(
                PromptProgress(
                    self._number, done, len(lost), 0, time.perf_counter() - began_s - moved_s
                )
            )

        moved_s = time.perf_counter() - began_s
        if lost and not self._stop.raised:
            tell(0)
            self._context.evaluate(lost, tell)
            self._context.keep_checkpoint()
        # The rates tell of the model at work, not of its way.
        self._paused_s += time.perf_counter() - began_s

    def _stats(self, reason: str) -> GenerationStats:
        elapsed_s = time.perf_counter() - self._started_s
        first_s, last_s = self._first_s, self._last_s
        ttft_s = None if first_s is None else first_s - self._started_s
        evaluated = self._prompt_tokens - self._cached_tokens
        reading_s = 0.0 if ttft_s is None else ttft_s - self._prompt_paused_s
        decode_s = 0.0
        if first_s is not None and last_s is not None:
            decode_s = last_s - first_s - self._paused_s
        return GenerationStats(
            finish_reason=reason,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            completion_tokens=self._n_tokens,
            prompt_tok_s=evaluated / reading_s if reading_s > 0 else None,
            tok_s=(self._n_tokens - 1) / decode_s if self._n_tokens > 1 and decode_s > 0 else None,
            ttft_s=ttft_s,
            elapsed_s=elapsed_s,
            context_used=len(self._context.tokens),
        )


class _ReplyText:
    """From token bytes to (answer, reasoning): characters whole, thinking apart, stops cut."""

    def __init__(self, splitter: ReasoningSplitter, stops: tuple[str, ...]) -> None:
        self._joiner = Utf8Joiner()
        self._splitter = splitter
        self._stops = StopStrings(stops)
        self.stopped = False

    def feed(self, piece: bytes) -> tuple[str, str]:
        """What ``piece`` adds."""
        answer, reasoning = self._splitter.feed(self._joiner.feed(piece))
        answer = self._stops.feed(answer)
        self.stopped = self._stops.hit
        return answer, reasoning

    def flush(self) -> tuple[str, str]:
        """What was held back; nothing behind a stop string."""
        if self.stopped:
            return "", ""
        answer, reasoning = self._splitter.flush()
        answer = self._stops.feed(answer)
        return answer if self._stops.hit else answer + self._stops.flush(), reasoning
