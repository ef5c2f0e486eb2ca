"""What every engine speaks: requests in, a stream of frozen events out.

An engine owns one thread. Requests return a number at once; what happens is told by
events that carry this number, so late events of an abandoned request can be dropped.
``notify`` (given when the engine is made) is called on the engine's thread when events
wait; the consumer then calls :meth:`Engine.drain` on its own thread. Nothing blocks but
:meth:`Engine.drain` with a timeout, and :meth:`Engine.close`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.memory.placement import Placement
from moelauncher.core.template_switch import TemplateSwitch


@dataclass(frozen=True)
class LoadRequest:
    """Load ``path`` (the first shard) under ``placement``. Replaces what is loaded."""

    path: Path
    placement: Placement
    context: ContextSettings = field(default_factory=ContextSettings)
    use_mmap: bool = True
    #: False where the plan says that weights will stream from the mapped file. They must then
    #: stay as they are in it: copies in the CPU's own order would need RAM that is not there.
    weights_fit_ram: bool = True
    #: GPU weight bytes per device name that the plan promises; the load is verified against it.
    expected_gpu_weights: Mapping[str, int] = field(default_factory=dict)
    #: The conversation goes on: what the context holds is carried over, a reply in progress
    #: waits between two tokens and then goes on, and where the load fails or is stopped,
    #: what was loaded before comes back. Only for the file that is loaded already.
    keeps_chat: bool = False


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. ``temperature`` 0 is greedy; ``seed`` None is random."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    seed: int | None = None


@dataclass(frozen=True)
class ChatMessage:
    """One turn: ``role`` is "system", "user" or "assistant"."""

    role: str
    content: str
    reasoning: str = ""


@dataclass(frozen=True)
class GenerateRequest:
    """Answer ``messages``, or continue ``raw_prompt`` (no template) where that is given."""

    messages: tuple[ChatMessage, ...] = ()
    raw_prompt: str | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None  # None: until the context is full
    stop: tuple[str, ...] = ()
    #: Stands in for the model's own template; None: as the file has it.
    template: str | None = None
    #: Variables for the template ("enable_thinking", "reasoning_effort").
    template_values: Mapping[str, object] = field(default_factory=dict)
    #: The last message is a reply that was cut off: write on where it ends.
    continues: bool = False
    ignore_end_of_generation: bool = False  # benchmarks: always max_tokens
    #: Names the chat that this is of, for what is kept of it on the disk; "": none.
    chat_id: str = ""


@dataclass(frozen=True)
class BufferReport:
    """One buffer that llama.cpp said it allocated.

    ``kind``: weights, kv, recurrent, compute, output.
    """

    device: str  # "CUDA0", "Vulkan0", "CPU", "Vulkan_Host", "CPU_Mapped"
    kind: str
    n_bytes: int


@dataclass(frozen=True)
class CarriedChat:
    """What became of the conversation in the context when the model moved.

    ``how``: "kept" (the context was not touched), "restored" (state saved and put back),
    "read_again" (a reply in progress evaluates it anew before it goes on; at rest the next
    message does). ``reason`` says why it has to be read again, as a sentence; else "".
    """

    how: str
    n_tokens: int
    reason: str = ""


@dataclass(frozen=True)
class LoadReport:
    """What a load really did, read from llama.cpp's own log."""

    path: Path
    placement: Placement
    context: ContextSettings
    load_s: float
    n_ctx: int  # what llama.cpp made of it
    n_threads: int
    flash_attention: bool | None
    buffers: tuple[BufferReport, ...]
    template_source: str  # "model" | "chatml": without its own template a model gets ChatML
    #: What the template lets the user switch.
    switches: tuple[TemplateSwitch, ...] = field(default=(), kw_only=True)
    #: Where the load did not do what the plan said: one sentence each. Empty: verified.
    mismatches: tuple[str, ...] = ()
    #: llama.cpp's own warnings, as plain text.
    warnings: tuple[str, ...] = ()
    #: With ``keeps_chat``, where something was loaded before: what became of its context.
    carried: CarriedChat | None = None


#: So few tokens are read at the speed of writing: their rate says nothing of long prompts.
LEAST_TOLD_TOKENS = 8


@dataclass(frozen=True)
class GenerationStats:
    """The numbers of one reply (design: decode rate leaves the first token out)."""

    finish_reason: str  # "stop" | "length" | "context_full" | "cancelled"
    prompt_tokens: int  # whole prompt
    cached_tokens: int  # of these, not evaluated again
    completion_tokens: int
    prompt_tok_s: float | None  # evaluated tokens / time to the first sampled token
    tok_s: float | None  # (tokens - 1) / (last - first)
    ttft_s: float | None
    elapsed_s: float
    context_used: int  # tokens in the context afterwards

    @property
    def told_prompt_tok_s(self) -> float | None:
        """The prompt's rate where enough of it was evaluated to tell one."""
        evaluated = self.prompt_tokens - self.cached_tokens
        return self.prompt_tok_s if evaluated >= LEAST_TOLD_TOKENS else None


@dataclass(frozen=True)
class EngineEvent:
    """Root of all events; ``request`` is the number that the request returned."""

    request: int


@dataclass(frozen=True)
class LoadProgress(EngineEvent):
    """How far a load is.

    ``stage``: "checking" (child process), "reading", "context"; ``fraction`` 0..1 of it.
    """

    stage: str
    fraction: float
    elapsed_s: float


@dataclass(frozen=True)
class Loaded(EngineEvent):
    """The model is ready; the report says what the load really did."""

    report: LoadReport


@dataclass(frozen=True)
class LoadFailed(EngineEvent):
    """Nothing new is loaded; the error says why and what to do.

    ``restored`` is what is loaded again instead, the conversation with it; None: nothing is.
    """

    error: LauncherError
    #: Where memory was the reason: on which device, and how much was refused.
    shortage: MemoryShortage | None = None
    restored: LoadReport | None = None


@dataclass(frozen=True)
class LoadCancelled(EngineEvent):
    """The user ended the load. ``restored`` as with :class:`LoadFailed`."""

    restored: LoadReport | None = None


@dataclass(frozen=True)
class PromptProgress(EngineEvent):
    """Prefill: ``done`` of ``total`` tokens to evaluate; ``cached`` were there already."""

    done: int
    total: int
    cached: int
    elapsed_s: float


@dataclass(frozen=True)
class TokenEvent(EngineEvent):
    """One decoded token; ``text`` may be empty while a character or stop string is incomplete."""

    text: str
    reasoning: str  # text inside a thinking block, kept apart from the answer
    n_tokens: int  # completion tokens so far
    time_s: float  # monotonic


@dataclass(frozen=True)
class Finished(EngineEvent):
    """The reply is over, whole or stopped."""

    stats: GenerationStats


@dataclass(frozen=True)
class GenerateFailed(EngineEvent):
    """The reply ended with an error; the model is still loaded."""

    error: LauncherError


@dataclass(frozen=True)
class Unloaded(EngineEvent):
    """No model is loaded any more; its memory is given back."""


@dataclass(frozen=True)
class ChatKept(EngineEvent):
    """What was made of the chat is on the disk, or need not be: it is short, or unchanged."""


@dataclass(frozen=True)
class NativeLog(EngineEvent):
    """A line of llama.cpp's log. ``level``: "debug", "info", "warning", "error"."""

    level: str
    text: str


class Engine(Protocol):
    """One model at a time, one thread. All methods but ``close`` return at once."""

    def load(self, request: LoadRequest) -> int:
        """Queue a load. Ends with Loaded, LoadFailed or LoadCancelled."""

    def generate(self, request: GenerateRequest) -> int:
        """Queue a reply. Ends with Finished or GenerateFailed."""

    def unload(self) -> int:
        """Queue an unload. Ends with Unloaded (also when nothing was loaded)."""

    def stop(self, request: int | None = None) -> None:
        """Ask what runs and waits to end: a load is cancelled, a reply keeps what it has.

        With the number of a load that keeps the chat, only that one ends, not the reply.
        """

    def keep_chat(self) -> int:
        """Queue: write what was made of a long chat to the disk, for it is being left.

        Ends with ChatKept.
        """

    def forget_chat(self, chat_id: str) -> None:
        """Queue: remove what is kept of this chat on the disk, and keep no more of it.

        A later reply in that chat takes this back.
        """

    def drain(self, timeout_s: float = 0.0) -> list[EngineEvent]:
        """Take all waiting events, waiting up to ``timeout_s`` for the first."""

    def count_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> int | None:
        """Tokens of the prompt for these turns; None without a model. Any thread.

        ``template`` as in :class:`GenerateRequest`. Raises TemplateRefused.
        """

    def render_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> str | None:
        """The text that :meth:`count_prompt` counts; also None where it takes too long."""

    def find_switches(self, template: str) -> Sequence[TemplateSwitch]:
        """What ``template``, standing in for the loaded model's own, lets one switch.

        Nothing without a model. Tries it out, which may take a second. Any thread.
        """

    def count_tokens(self, text: str) -> int | None:
        """Tokens of ``text`` in the loaded model's vocabulary; None without one. Any thread."""

    def close(self) -> None:
        """Stop, unload, end the thread; blocks until it is gone."""
