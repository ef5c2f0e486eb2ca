"""How several GPUs share the layers: by bytes, not by layer counts.

With experts on the CPU some layers weigh a tenth of the others. llama.cpp's default split
(by free memory, layers counted alike) then empties one card and overflows the other. Here
the boundaries follow the bytes: weights that stay on the GPU, KV cache and state.

In: facts, GPUs, the layers whose experts are on the CPU. Out: the numbers for
``--tensor-split``. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moelauncher.core.placement import PlacementDevice, layer_devices

if TYPE_CHECKING:
    from moelauncher.core.engine_protocol import ContextSettings
    from moelauncher.core.model_facts import ModelFacts


def layer_costs(
    facts: ModelFacts,
    cpu_expert_layers: Sequence[int],
    context: ContextSettings | None,
) -> tuple[int, ...]:
    """Bytes that each block, and last the output layer, would take on a GPU."""
    on_cpu = set(cpu_expert_layers)
    costs = [0] * (facts.n_layer_all + 1)
    for layer in facts.layers:
        if layer.loaded:
            experts = 0 if layer.index in on_cpu else layer.expert_bytes
            costs[layer.index] = layer.dense_bytes + experts
    costs[facts.n_layer_all] = facts.output_bytes
    return tuple(costs)


def split_for_counts(counts: Sequence[int]) -> tuple[float, ...]:
    """Numbers that llama.cpp turns into exactly ``counts`` layers a GPU.

    The rule compares ``i / n`` with the running sums in 32-bit floats. Whole counts would
    put a boundary exactly on such a fraction, where rounding decides; half a layer less
    keeps clear of it on both sides.
    """
    bounds: list[float] = []
    done = 0
    for count in counts:
        done += count
        bounds.append(done - 0.5 if done else 0.0)
    bounds[-1] = float(done)
    starts = [0.0, *bounds[:-1]]
    return tuple(max(end - start, 0.0) for start, end in zip(starts, bounds, strict=True))


def split_by_bytes(
    facts: ModelFacts,
    devices: Sequence[PlacementDevice],
    cpu_expert_layers: Sequence[int],
    n_gpu_layers: int,
    context: ContextSettings | None = None,
    *,
    reserved_bytes: Sequence[int] | None = None,
) -> tuple[float, ...]:
    """The tensor split that loads the cards in proportion to their room.

    ``reserved_bytes`` is what each card keeps for other things (margin, driver, compute).
    A card whose free memory is unknown counts like the average of the others.
    """
    costs = layer_costs(facts, cpu_expert_layers, context)
    start = max(facts.n_layer_all + 1 - n_gpu_layers, 0)
    counts = share_layers(costs[start:], _rooms(devices, reserved_bytes))
    split = split_for_counts(counts)
    assert tuple(
        layer_devices(facts.n_layer_all, n_gpu_layers, len(devices), split)[start:]
    ) == tuple(index for index, count in enumerate(counts) for _ in range(count))
    return split


def _rooms(
    devices: Sequence[PlacementDevice], reserved_bytes: Sequence[int] | None
) -> tuple[int, ...]:
    reserved = reserved_bytes or [0] * len(devices)
    known = [device.free_bytes for device in devices if device.free_bytes is not None]
    average = sum(known) // len(known) if known else 1
    return tuple(
        max((average if device.free_bytes is None else device.free_bytes) - taken, 0)
        for device, taken in zip(devices, reserved, strict=True)
    )


def share_layers(costs: Sequence[int], rooms: Sequence[int]) -> tuple[int, ...]:
    """How many consecutive layers each card takes, so that the fullest is as empty as can be.

    Fullness is bytes over room. The best bound is found exactly: the candidates are the
    fullnesses that some run of layers would have, and a greedy fill decides each.
    """
    n = len(costs)
    if n == 0:
        return (0,) * len(rooms)
    low, high = 0.0, 1.0
    while _fill(costs, rooms, high) is None:
        high *= 2
        if high > 2**60:
            return _all_on_roomiest(n, rooms)
    for _ in range(40):
        middle = (low + high) / 2
        if _fill(costs, rooms, middle) is None:
            low = middle
        else:
            high = middle
    filled = _fill(costs, rooms, high)
    assert filled is not None
    return filled


def _all_on_roomiest(n: int, rooms: Sequence[int]) -> tuple[int, ...]:
    best = max(range(len(rooms)), key=lambda index: rooms[index])
    return tuple(n if index == best else 0 for index in range(len(rooms)))


def _fill(costs: Sequence[int], rooms: Sequence[int], fullness: float) -> tuple[int, ...] | None:
    counts = []
    at = 0
    for room in rooms:
        budget = room * fullness
        taken = 0
        first = at
        while at < len(costs) and taken + costs[at] <= budget:
            taken += costs[at]
            at += 1
        counts.append(at - first)
    return tuple(counts) if at == len(costs) else None
