"""What a context has evaluated, and how it is brought to the next prompt.

In: the tokens that are wanted. Out: how many of them were there already; the rest is
evaluated in pieces. Keeps the list of tokens equal to llama.cpp's cache, also after an
abort. Engine thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelauncher.core.chats.prompt_prefix import PrefixPlan, least_missed, plan_prefix
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.translate import tr
from moelauncher.engine.kept_states import KeptState, KeptStates, read_marks
from moelauncher.engine.live_move import FreeRam, SavedChat, room_for_state
from moelauncher.engine.load_model import LoadedModel, ModelContext
from moelauncher.engine.stop_flag import StopFlag

#: Saved states may take this much RAM together. A long window in many layers takes more
#: than that at once (Llama 4: 1.2 GiB); then prompts that part are evaluated anew.
_CHECKPOINT_BYTES = 512 * 2**20

_SEQUENCE = 0
_NO_ROOM, _ABORTED = 1, 2  # results of llama_decode


@dataclass(frozen=True)
class _Checkpoint:
    """What cannot be cut in the cache (window, recurrent state), after ``n_tokens`` tokens."""

    n_tokens: int
    state: Any  # ctypes array of bytes


class EvaluatedContext:
    """The tokens in one context. Everything that decodes goes through it."""

    def __init__(
        self,
        model: LoadedModel,
        context: ModelContext,
        stop: StopFlag,
        kept: KeptStates | None = None,
    ) -> None:
        """``kept`` is where long chats stay on the disk; None: nowhere."""
        self._lib = model.native.lib
        self._stop = stop
        self._kept = kept
        self._checkpoints: list[_Checkpoint] = []
        self._chat_id = ""
        self.tokens: list[int] = []
        #: Tokens that a move lost: a reply in progress evaluates them before it goes on.
        self.unread: list[int] = []
        self._attach(model, context)

    def _attach(self, model: LoadedModel, context: ModelContext) -> None:
        self._model = model
        self._context = context
        # The position is left out: llama.cpp counts on from what its cache holds, and only
        # the last token of a batch gets logits.
        self._input = (ctypes.c_int32 * context.n_batch)()
        self._batch = self._lib.llama_batch_get_one(self._input, 0)

    @property
    def handle(self) -> Any:
        """The native context, for the sampler."""
        return self._context.handle

    @property
    def n_ctx(self) -> int:
        """Tokens that fit into the context."""
        return self._context.n_ctx

    def save(self, free_ram: FreeRam) -> SavedChat:
        """All that this context holds, to be put into another one by :meth:`move_to`."""
        lib, handle = self._lib, self._context.handle
        if self.unread:
            return SavedChat(self.unread, None, tr("It was not read again since the last move."))
        if not self.tokens:
            return SavedChat([], None, "")
        size = lib.llama_state_seq_get_size(handle, _SEQUENCE)
        reason = room_for_state(size, free_ram)
        if reason:
            return SavedChat(list(self.tokens), None, reason)
        try:
            state = (ctypes.c_uint8 * size)()
        except MemoryError:
            reason = tr("There is not enough RAM for its saved state, so it is read again.")
            return SavedChat(list(self.tokens), None, reason)
        if lib.llama_state_seq_get_data(handle, state, size, _SEQUENCE) != size:
            reason = tr("llama.cpp could not save its state, so it is read again.")
            return SavedChat(list(self.tokens), None, reason)
        return SavedChat(list(self.tokens), state, "")

    def move_to(self, model: LoadedModel, context: ModelContext, saved: SavedChat) -> str:
        """Go on in another, empty context on the same vocabulary, with what was saved.

        Returns why it has to be read again, as a sentence; "" where the state was put back.
        """
        flash_before, kv_before = self._model.flash_attention, self._context.settings.kv_type
        self._attach(model, context)
        self.tokens = []
        self.unread = []
        if not saved.tokens:
            self._checkpoints = []
            return ""
        reason = saved.reason
        if not reason and len(saved.tokens) > context.n_ctx:
            reason = tr("It has {n} tokens and the new context holds {limit}.").format(
                n=len(saved.tokens), limit=context.n_ctx
            )
        if not reason and self._put_back(saved.tokens, saved.state):
            return ""
        self._clear()
        self.unread = saved.tokens
        if reason:
            return reason
        if kv_before != context.settings.kv_type:
            return tr("The KV type changed from {old} to {new}, so it is read again.").format(
                old=kv_before, new=context.settings.kv_type
            )
        if flash_before != model.flash_attention:
            return tr("Flash attention is another here, so it is read again.")
        return tr("Its state did not fit the new context, so it is read again.")

    def _put_back(self, tokens: list[int], state: Any) -> bool:
        lib = self._lib
        handle, memory = self._context.handle, self._context.memory
        if lib.llama_state_seq_set_data(handle, state, len(state), _SEQUENCE) == 0:
            return False
        if lib.llama_memory_seq_pos_max(memory, _SEQUENCE) != len(tokens) - 1:
            return False
        self.tokens = list(tokens)
        return True

    def rewind(self, wanted: Sequence[int], chat_id: str = "") -> int:
        """Cut the context to what serves ``wanted``, of that chat; returns the tokens that stay."""
        self.unread = []
        if self._kept is not None:
            self._kept.recall(chat_id)
        plan = self._plan(wanted)
        if self._kept is not None and self._fetch(wanted, plan.keep, self._kept):
            plan = self._plan(wanted)
        if plan.checkpoint is not None:
            self._restore(plan.checkpoint)
        elif plan.keep < len(self.tokens):
            self._cut(plan.keep)
        self._chat_id = chat_id
        return len(self.tokens)

    def keep_on_disk(self) -> None:
        """Write what was evaluated to the disk, where it is long and may be kept there."""
        kept, lib, handle = self._kept, self._lib, self._context.handle
        if kept is None or self.unread or len(self.tokens) < kept.least_tokens or not kept.on:
            return
        if not kept.keeps(self._chat_id):
            return
        path = kept.path_for(self._kept_key(), self.tokens, self._chat_id)
        if kept.has(path):
            return
        marks = [(one.n_tokens, one.state) for one in self._checkpoints]
        size = lib.llama_state_seq_get_size(handle, _SEQUENCE)
        if not kept.wants(len(self.tokens), size + sum(len(state) for _, state in marks)):
            return
        tokens = (ctypes.c_int32 * len(self.tokens))(*self.tokens)

        def write(to: Path) -> bool:
            name = os.fsencode(to)
            return bool(lib.llama_state_seq_save_file(handle, name, _SEQUENCE, tokens, len(tokens)))

        kept.keep(path, write, marks)

    def _plan(self, wanted: Sequence[int]) -> PrefixPlan:
        return plan_prefix(
            self.tokens,
            wanted,
            oldest_position=self._lib.llama_memory_seq_pos_min(self._context.memory, _SEQUENCE),
            window=self._model.window,
            recurrent=self._model.recurrent,
            checkpoints=[checkpoint.n_tokens for checkpoint in self._checkpoints],
        )

    def _fetch(self, wanted: Sequence[int], here: int, kept: KeptStates) -> bool:
        """Change to another chat's state where one on the disk serves ``wanted`` better.

        What is given up for that, or for ``wanted`` itself, is written to the disk before.
        """
        if here < len(self.tokens) // 2 and len(self.tokens) - here >= kept.least_tokens:
            self.keep_on_disk()
        if len(wanted) - here < kept.least_tokens or not kept.on:
            return False
        window = self._model.window
        useful: list[tuple[int, KeptState]] = []
        for state in kept.all(self._kept_key()):
            plan = plan_prefix(
                state.tokens,
                wanted,
                oldest_position=max(0, len(state.tokens) - window) if window else 0,
                window=window,
                recurrent=self._model.recurrent,
                checkpoints=state.marks,
            )
            if plan.keep - here >= kept.least_tokens and len(state.tokens) <= self.n_ctx:
                useful.append((plan.keep, state))
        for _, state in sorted(useful, key=lambda one: one[0], reverse=True):
            if self._load_kept(state):
                kept.has(state.path)
                return True
            kept.drop(state.path)
        return False

    def _load_kept(self, kept: KeptState) -> bool:
        lib = self._lib
        self._clear()
        n_tokens = len(kept.tokens)
        tokens, count = (ctypes.c_int32 * n_tokens)(), ctypes.c_size_t()
        handle, name = self._context.handle, os.fsencode(kept.path)
        n_bytes = lib.llama_state_seq_load_file(
            handle, name, _SEQUENCE, tokens, n_tokens, ctypes.byref(count)
        )
        reached = lib.llama_memory_seq_pos_max(self._context.memory, _SEQUENCE)
        if not n_bytes or count.value != n_tokens or reached != n_tokens - 1:
            self._clear()
            return False
        self.tokens[:] = kept.tokens
        self._checkpoints = [
            _Checkpoint(length, (ctypes.c_uint8 * len(state)).from_buffer_copy(state))
            for length, state in read_marks(kept.path)
        ]
        return True

    def _kept_key(self) -> str:
        """All that a state depends on."""
        model, kv_type = self._model, self._context.settings.kv_type
        size, changed_ns = model.file_state
        return f"{model.path}|{size}|{changed_ns}|{kv_type}|{model.flash_attention}"

    @property
    def piece(self) -> int:
        """Tokens that are evaluated at once."""
        return len(self._input)

    def evaluate(self, tokens: Sequence[int], on_piece: Callable[[int], None]) -> None:
        """Append ``tokens``, in pieces; ``on_piece`` gets the number done after each.

        Raises Cancelled when the flag was raised (finished pieces stay), LauncherError when
        llama.cpp failed.
        """
        size = len(self._input)
        for start in range(0, len(tokens), size):
            if self._stop.raised:
                raise Cancelled
            piece = list(tokens[start : start + size])
            self._input[: len(piece)] = [*piece]
            self._batch.n_tokens = len(piece)
            result = self._lib.llama_decode(self._context.handle, self._batch)
            if result != 0:
                self._fail(result)
            self.tokens.extend(piece)
            on_piece(start + len(piece))

    def decoder(self) -> Callable[[int], bool]:
        """A function that appends one token; False when the context is full.

        It raises as :meth:`evaluate` does. Bound once a reply: this is the inner loop.
        """
        decode, handle, batch = self._lib.llama_decode, self._context.handle, self._batch
        batch.n_tokens = 1
        input_, tokens, limit = self._input, self.tokens, self.n_ctx

        def append(token: int) -> bool:
            if len(tokens) >= limit:
                return False
            input_[0] = token
            result = decode(handle, batch)
            if result != 0:
                if result == _NO_ROOM:
                    return False
                self._fail(result)
            tokens.append(token)
            return True

        return append

    def keep_checkpoint(self) -> None:
        """Save what the cache could not be cut back to; nothing to do for plain caches."""
        if not (self._model.window or self._model.recurrent) or not self.tokens:
            return
        if any(checkpoint.n_tokens == len(self.tokens) for checkpoint in self._checkpoints):
            return
        lib, handle = self._lib, self._context.handle
        flags = lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        size = lib.llama_state_seq_get_size_ext(handle, _SEQUENCE, flags)
        if size > _CHECKPOINT_BYTES:
            return
        state = (ctypes.c_uint8 * size)()
        if lib.llama_state_seq_get_data_ext(handle, state, size, _SEQUENCE, flags) != size:
            return
        self._checkpoints.append(_Checkpoint(len(self.tokens), state))
        while sum(len(checkpoint.state) for checkpoint in self._checkpoints) > _CHECKPOINT_BYTES:
            lengths = [checkpoint.n_tokens for checkpoint in self._checkpoints]
            del self._checkpoints[least_missed(lengths)]

    def _cut(self, keep: int) -> None:
        lib, memory = self._lib, self._context.memory
        # Sliding-window caches say True even where the cells before the cut are gone.
        if (
            keep > 0
            and lib.llama_memory_seq_rm(memory, _SEQUENCE, keep, -1)
            and lib.llama_memory_seq_pos_max(memory, _SEQUENCE) == keep - 1
        ):
            self._forget_behind(keep)
        else:
            self._clear()

    def _restore(self, n_tokens: int) -> None:
        lib, handle, memory = self._lib, self._context.handle, self._context.memory
        state = next(c.state for c in self._checkpoints if c.n_tokens == n_tokens)
        flags = lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        whole = (
            lib.llama_state_seq_set_data_ext(handle, state, len(state), _SEQUENCE, flags) > 0
            and lib.llama_memory_seq_rm(memory, _SEQUENCE, n_tokens, -1)
            and lib.llama_memory_seq_pos_max(memory, _SEQUENCE) == n_tokens - 1
        )
        if whole:
            self._forget_behind(n_tokens)
        else:
            self._clear()

    def _clear(self) -> None:
        self._lib.llama_memory_clear(self._context.memory, True)
        self._forget_behind(0)

    def _forget_behind(self, n_tokens: int) -> None:
        del self.tokens[n_tokens:]
        self._checkpoints = [c for c in self._checkpoints if c.n_tokens <= n_tokens]

    def _fail(self, result: int) -> None:
        """Raise for ``result``, with the token list true again."""
        if result == _NO_ROOM:  # nothing was begun
            raise LauncherError(
                tr("The context of {n} tokens has no room left for this.").format(n=self.n_ctx),
                tr("Choose a larger context, or begin a new conversation."),
            )
        self._find_sound_state()
        if result == _ABORTED:
            raise Cancelled
        raise LauncherError(
            tr("llama.cpp failed while computing."),
            tr("Load the model again; if it comes back, keep more layers on the CPU."),
            f"llama_decode: {result}",
        )

    def _find_sound_state(self) -> None:
        """After a step that was not finished: llama.cpp has dropped the cells of that step."""
        reached = self._lib.llama_memory_seq_pos_max(self._context.memory, _SEQUENCE) + 1
        saved = [checkpoint.n_tokens for checkpoint in self._checkpoints]
        if not self._model.recurrent:
            self._cut(min(max(reached, 0), len(self.tokens)))
        elif saved:
            self._restore(max(saved))  # the step has changed the state already
        else:
            self._clear()
