"""What a context is made of: size, KV type, ubatch, threads. A plan and a load name the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ContextSettings:
    """What a context is made of; a change needs a new context, never a new load."""

    n_ctx: int = 4096
    kv_type: str = "f16"  # "f16" | "q8_0" | "q4_0"
    n_ubatch: int = 512
    n_threads: int | None = None  # None: physical cores - 1, at least 1
