"""How several GPUs share the layers: by bytes, not by layer counts.

With experts on the CPU some layers weigh a tenth of the others. llama.cpp's default split
(by free memory, layers counted alike) then empties one card and overflows the other. Here
the boundaries follow the bytes: weights that stay on the GPU, KV cache, state, and the
logits beside the output layer.

In: facts, GPUs, the layers whose experts are on the CPU. Out: the numbers for
``--tensor-split``. Pure; any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from moelauncher.core.memory.compute_estimate import GpuCompute, gpu_compute
from moelauncher.core.memory.kv_cache import kv_bytes_per_layer, recurrent_bytes_per_layer
from moelauncher.core.memory.margins import Margins

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.placement import PlacementDevice

_BISECTIONS = 40


def layer_costs(
    facts: ModelFacts,
    cpu_expert_layers: Sequence[int],
    context: ContextSettings | None,
) -> tuple[int, ...]:
    """Bytes that each block, and last the output layer, would take on a GPU."""
    on_cpu = frozenset(cpu_expert_layers)
    if context is None:
        costs = [0] * facts.n_layer_all
    else:
        kv = kv_bytes_per_layer(facts, context)
        state = recurrent_bytes_per_layer(facts)
        costs = [a + b for a, b in zip(kv, state, strict=True)]
    for layer in facts.layers:
        if layer.loaded:
            experts = 0 if layer.index in on_cpu else layer.expert_bytes
            costs[layer.index] += layer.dense_bytes + experts
    return (*costs, facts.output_bytes)


def split_by_bytes(
    facts: ModelFacts,
    devices: Sequence[PlacementDevice],
    cpu_expert_layers: Sequence[int],
    n_gpu_layers: int,
    context: ContextSettings | None = None,
    margins: Margins | None = None,
) -> tuple[float, ...]:
    """The tensor split that loads the cards in proportion to their room.

    Room is what is free less the margin, the driver's share and the compute buffer. A card
    whose free memory is unknown counts like the average of the others.
    """
    margins = margins or Margins()
    start = max(facts.n_layer_all + 1 - n_gpu_layers, 0)
    costs = layer_costs(facts, cpu_expert_layers, context)[start:]
    rooms = [
        max(free - margins.leave_free(device.name) - margins.driver(device.name), 0)
        for device, free in zip(devices, _free(devices), strict=True)
    ]
    if context is None:
        return split_for_counts(share_layers(costs, rooms))
    pipeline = not cpu_expert_layers and start == 0
    compute = gpu_compute(facts, cpu_expert_layers, context, pipeline=pipeline)
    # First as if every card needed the largest compute buffer: quick, and balanced.
    reserved = compute.blocks_bytes + max(compute.staged_bytes, default=0)
    with_logits = [*costs[:-1], costs[-1] + max(compute.logits_bytes - reserved, 0)]
    counts = share_layers(with_logits, [max(room - reserved, 0) for room in rooms])
    if not _fits(costs, rooms, counts, compute, start):
        counts = _pack(costs, rooms, compute, start) or counts
    return split_for_counts(counts)


def _run_bytes(costs: Sequence[int], first: int, end: int, compute: GpuCompute, start: int) -> int:
    """What one card takes that holds the layers ``first`` to ``end`` (exclusive)."""
    if first == end:
        return 0
    blocks = min(end, len(costs) - 1)
    buffer = 0
    if first < blocks:
        staged = max(compute.staged_bytes[start + first : start + blocks])
        buffer = compute.blocks_bytes + staged
    if end == len(costs):
        buffer = max(buffer, compute.logits_bytes)
    return sum(costs[first:end]) + buffer


def _fits(
    costs: Sequence[int],
    rooms: Sequence[int],
    counts: Sequence[int],
    compute: GpuCompute,
    start: int,
) -> bool:
    ends = list(accumulate(counts))
    return all(
        _run_bytes(costs, end - count, end, compute, start) <= room
        for count, end, room in zip(counts, ends, rooms, strict=True)
    )


def _pack(
    costs: Sequence[int], rooms: Sequence[int], compute: GpuCompute, start: int
) -> tuple[int, ...] | None:
    """Fill card after card to the brim with each card's own compute buffer.

    A run only grows dearer with every layer, so this finds a cut that fits if there is one.
    """
    counts = []
    at = 0
    output = len(costs) - 1
    for room in rooms:
        first, total, buffer = at, 0, 0
        while at < len(costs):
            if at == output:
                more = max(buffer, compute.logits_bytes)
            else:
                more = max(buffer, compute.blocks_bytes + compute.staged_bytes[start + at])
            if total + costs[at] + more > room:
                break
            total, buffer = total + costs[at], more
            at += 1
        counts.append(at - first)
    return tuple(counts) if at == len(costs) else None


def _free(devices: Sequence[PlacementDevice]) -> tuple[int, ...]:
    known = [device.free_bytes for device in devices if device.free_bytes is not None]
    average = sum(known) // len(known) if known else 1 << 34
    return tuple(average if device.free_bytes is None else device.free_bytes for device in devices)


def split_for_counts(counts: Sequence[int]) -> tuple[float, ...]:
    """Numbers that llama.cpp turns into exactly ``counts`` layers a GPU.

    The rule compares ``i / n`` with the running sums in 32-bit floats. Whole counts would
    put a boundary exactly on such a fraction, where rounding decides; half a layer less
    keeps clear of it on both sides.
    """
    ends = [done - 0.5 if done else 0.0 for done in accumulate(counts)]
    ends[-1] = float(sum(counts))
    starts = [0.0, *ends[:-1]]
    return tuple(max(end - start, 0.0) for start, end in zip(starts, ends, strict=True))


def share_layers(costs: Sequence[int], rooms: Sequence[int]) -> tuple[int, ...]:
    """How many consecutive layers each card takes, so that the fullest is as empty as can be.

    Fullness is bytes over room. If some way to cut the layers fits every card, so does the
    one returned: fullness 1 is tried first, and only lowered from there.
    """
    if not costs:
        return (0,) * len(rooms)
    sums = [0, *accumulate(costs)]
    low, high = 0.0, 1.0
    best = _fill(sums, rooms, high)
    while best is None:
        low, high = high, high * 2
        if high > 2.0**40:
            roomiest = max(range(len(rooms)), key=lambda index: rooms[index])
            return tuple(len(costs) if i == roomiest else 0 for i in range(len(rooms)))
        best = _fill(sums, rooms, high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        filled = _fill(sums, rooms, middle)
        if filled is None:
            low = middle
        else:
            high, best = middle, filled
    return best


def _fill(sums: Sequence[int], rooms: Sequence[int], fullness: float) -> tuple[int, ...] | None:
    """Fill card after card up to ``fullness``; None where layers are left over."""
    counts = []
    at = 0
    last = len(sums) - 1
    for room in rooms:
        end = bisect_right(sums, sums[at] + room * fullness, lo=at) - 1
        counts.append(end - at)
        at = end
    return tuple(counts) if at == last else None
