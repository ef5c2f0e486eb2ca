"""The slider's meaning: which layers' experts stay on the CPU, and where every layer goes.

In: :class:`ModelFacts`, the GPUs, the slider's stop. Out: :class:`Placement`. Pure, microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlacementDevice:
    """A GPU to place on: real (llama.cpp's device name) or pretended (the user's name)."""

    name: str
    free_bytes: int | None
    total_bytes: int | None = None
    pretended: bool = False


@dataclass(frozen=True)
class Placement:
    """Where a model goes. Devices are indices into ``devices``; -1 is main memory."""

    cpu_moe: int  # slider stop, 0..of
    of: int  # number of expert layers
    which: str  # "first" | "last": which expert layers go to the CPU
    devices: tuple[PlacementDevice, ...]  # the GPUs, none on a machine without one
    cpu_expert_layers: tuple[int, ...]  # block indices
    n_gpu_layers: int  # llama.cpp's -ngl; n_layer_all + 1 means everything
    layer_devices: tuple[int, ...]  # length n_layer_all + 1; the last one is the output layer
    tensor_split: tuple[float, ...]  # one a GPU; empty with no or one GPU
    patterns: tuple[str, ...]  # tensor_buft_overrides patterns, all to the CPU buffer
