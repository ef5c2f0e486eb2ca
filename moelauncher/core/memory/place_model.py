"""From the slider's stop to a placement: which experts stay on the CPU, and each layer's GPU.

In: :class:`ModelFacts`, the GPUs, the slider's stop, a wished split. Out: :class:`Placement`.
Pure, microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moelauncher.core.errors import LauncherError, WrongArguments
from moelauncher.core.memory.placement import (
    Placement,
    PlacementDevice,
    blocks_at_stop,
    expert_stops,
    layer_devices,
)
from moelauncher.core.memory.tensor_names import expert_pattern
from moelauncher.core.memory.tensor_split import split_by_bytes
from moelauncher.core.translate import tr

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.margins import Margins


def place(
    facts: ModelFacts,
    gpus: Sequence[PlacementDevice],
    *,
    cpu_moe: int,
    which: str = "first",
    n_gpu_layers: int | None = None,
    tensor_split: Sequence[float] | None = None,
    context: ContextSettings | None = None,
    margins: Margins | None = None,
) -> Placement:
    """The placement at slider stop ``cpu_moe`` (clamped to the stops there are).

    ``n_gpu_layers`` None means everything. Without ``tensor_split`` several GPUs share the
    layers by bytes: weights left on the GPU, plus KV cache, state and compute where
    ``context`` is given, in the room that ``margins`` leave. Raises WrongArguments for a
    split that does not match the GPUs, LauncherError for an unknown ``which`` and negative
    counts.
    """
    if which not in ("first", "last"):
        raise LauncherError(
            tr("“{which}” is no choice of expert layers.").format(which=which),
            tr('Choose "first" or "last".'),
        )
    if cpu_moe < 0 or (n_gpu_layers is not None and n_gpu_layers < 0):
        raise LauncherError(tr("A number of layers cannot be negative."))
    devices = tuple(gpus)
    chosen = blocks_at_stop(facts, cpu_moe, which)
    everything = facts.n_layer_all + 1
    on_gpu = everything if n_gpu_layers is None else min(n_gpu_layers, everything)
    if not devices:
        on_gpu = 0
    split = _split(facts, devices, chosen, on_gpu, tensor_split, context, margins)
    return Placement(
        cpu_moe=len(chosen),
        of=len(expert_stops(facts)),
        which=which,
        devices=devices,
        cpu_expert_layers=chosen,
        n_gpu_layers=on_gpu,
        layer_devices=layer_devices(facts.n_layer_all, on_gpu, len(devices), split),
        tensor_split=split,
        # Without a GPU an override would only keep weights out of the repacked CPU buffers.
        patterns=tuple(expert_pattern(block) for block in chosen) if devices else (),
    )


def _split(
    facts: ModelFacts,
    devices: tuple[PlacementDevice, ...],
    cpu_expert_layers: tuple[int, ...],
    n_gpu_layers: int,
    tensor_split: Sequence[float] | None,
    context: ContextSettings | None,
    margins: Margins | None,
) -> tuple[float, ...]:
    if tensor_split:
        if len(tensor_split) != max(len(devices), 1):
            raise _wrong_split(len(tensor_split), len(devices))
        # llama.cpp adds them up in 32-bit floats: beyond these the sum is no number any more.
        if not all(0 <= part < 1e30 for part in tensor_split) or max(tensor_split) < 1e-30:
            raise WrongArguments(
                tr("A tensor split needs numbers of 0 or more, and one above 0."),
                tr("Give one number a GPU, for example 3,2."),
            )
        return tuple(float(part) for part in tensor_split) if len(devices) > 1 else ()
    if len(devices) < 2:
        return ()
    return split_by_bytes(facts, devices, cpu_expert_layers, n_gpu_layers, context, margins)


def _wrong_split(n_parts: int, n_gpus: int) -> WrongArguments:
    parts = tr("1 part") if n_parts == 1 else tr("{n} parts").format(n=n_parts)
    if n_gpus == 0:
        gpus, hint = tr("there is no GPU"), tr("Leave it out: everything is in RAM.")
    elif n_gpus == 1:
        gpus, hint = tr("there is 1 GPU"), tr("Leave it out: the only GPU takes all of it.")
    else:
        gpus = tr("there are {n} GPUs").format(n=n_gpus)
        hint = tr("Give one number a GPU, for example 3,2.")
    text = tr("The tensor split has {parts}, but {gpus}.").format(parts=parts, gpus=gpus)
    return WrongArguments(text, hint)
