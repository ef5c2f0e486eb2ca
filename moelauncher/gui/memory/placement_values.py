"""What the placement pane is set to, as one value. Pure; any thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlacementValues:
    """All choices of the pane. None: the program decides."""

    stop: int = 0  # expert layers on the CPU
    n_gpu_layers: int | None = None  # dense models only
    n_ctx: int = 4096
    kv_type: str = "f16"
    n_threads: int | None = None
    n_ubatch: int = 512
    use_mmap: bool = True
    which: str = "first"  # which expert layers go to the CPU first
