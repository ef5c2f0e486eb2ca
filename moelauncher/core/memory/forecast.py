"""Memory per device and kind, before a load: what llama.cpp will allocate.

In: facts, placement, context settings, what is free, and the engine's dry run where it has
answered. Out: :class:`MemoryForecast`. Pure; any thread; fast enough for every slider stop.

Weights come from the file's header, KV cache and state from the formula until the dry run
says them too, compute buffers from an estimate until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from moelauncher.core.memory.compute_estimate import estimate_compute_bytes, output_buffer_bytes
from moelauncher.core.memory.forecast_text import forecast_text
from moelauncher.core.memory.kv_cache import (
    kv_bytes_per_layer,
    kv_type_problem,
    recurrent_bytes_per_layer,
)
from moelauncher.core.memory.layer_bytes import pads_rows, row_padding
from moelauncher.core.memory.margins import Margins
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from moelauncher.core.memory.placement import MAIN_MEMORY, RAM, tensor_device
from moelauncher.core.memory.tensor_names import is_routed_expert
from moelauncher.core.memory.weight_probes import RefusedWeights, weight_probes

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.placement import Placement, PlacementDevice

#: llama.cpp asks for the output matrix of these before the embedding, and so does not see
#: that it could be the same one.
_TIED_COPIED_IN_RAM = frozenset({"gemma3n", "gemma4"})


@dataclass(frozen=True)
class DryRunResult:
    """What llama.cpp itself said it would allocate, from a load without weights.

    The mappings are keyed by llama.cpp's device name ("CUDA0", "Vulkan0"); everything that
    lies in main memory (CPU, pinned host buffers, output) is under "RAM". A missing key
    means that nothing was reported there. ``problem`` is one sentence when the dry run
    failed or took too long; the numbers are then empty and the formula stays.
    """

    kv_bytes: Mapping[str, int] = field(default_factory=dict)
    recurrent_bytes: Mapping[str, int] = field(default_factory=dict)
    compute_bytes: Mapping[str, int] = field(default_factory=dict)
    output_bytes: int = 0  # the host buffer for logits, in RAM
    n_ctx: int | None = None  # what llama.cpp made of the wish
    flash_attention: bool | None = None
    problem: str = ""


def forecast(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    *,
    margins: Margins | None = None,
    ram_free_bytes: int | None = None,
    ram_total_bytes: int | None = None,
    dry_run: DryRunResult | None = None,
    use_mmap: bool = True,
    refused_weights: RefusedWeights | None = None,
) -> MemoryForecast:
    """What a load under ``placement`` takes of each device.

    ``dry_run`` must be of the same facts, placement and context. It is not asked where a
    device is pretended, nor where it failed; ``note`` then says why. ``refused_weights``: what
    the GPUs cannot compute with; it stays in main memory.
    """
    margins = margins or Margins()
    note = dry_run.problem if dry_run is not None else ""
    if context.kv_type != "f16":
        note = note or kv_type_problem(facts, context.kv_type)
    pretended = any(device.pretended for device in placement.devices)
    answered = None if dry_run is None or dry_run.problem or pretended else dry_run
    sums = _sums(facts, placement, context, use_mmap)
    if refused_weights and not pretended:
        _keep_in_ram(sums, facts, placement, refused_weights)
    if answered is None:
        compute = estimate_compute_bytes(facts, placement, context)
        output_bytes = output_buffer_bytes(facts)
    else:
        names = [device.name for device in placement.devices] + [RAM]
        compute = tuple(answered.compute_bytes.get(name, 0) for name in names)
        output_bytes = answered.output_bytes
    devices = tuple(
        _device(
            sums[index],
            _with_ram_room(device, ram_free_bytes),
            compute[index],
            answered,
            margins,
        )
        for index, device in enumerate(placement.devices)
    )
    ram = replace(
        _ram(
            sums[-1],
            compute[-1] + output_bytes,
            answered,
            margins,
            ram_free_bytes,
            ram_total_bytes,
        ),
        lent_bytes=sum(device.used_bytes for device in devices if device.shares_ram),
    )
    # Weights of a mapped file may stay on disk; what is computed with may not.
    held = ram.used_bytes - ram.weights_bytes + ram.lent_bytes + ram.leave_free_bytes
    held_fits = ram.free_bytes is None or held <= ram.free_bytes
    used_gpus = [
        device.spare_bytes
        for index, device in enumerate(devices)
        if index in placement.layer_devices and device.spare_bytes is not None
    ]
    result = MemoryForecast(
        devices=(*devices, ram),
        fits=ram.fits and all(device.fits for device in devices),
        spare_bytes=min(used_gpus, default=None) if devices else ram.spare_bytes,
        text="",
        compute_source="estimate" if answered is None else "dry-run",
        streams_from_disk=use_mmap and held_fits and not ram.fits,
        mapping_would_help=not use_mmap and held_fits and not ram.fits,
        note=note,
    )
    return replace(result, text=forecast_text(result))


@dataclass
class _Sums:
    dense_bytes: int = 0
    expert_bytes: int = 0
    kv_bytes: int = 0
    recurrent_bytes: int = 0


def _sums(
    facts: ModelFacts, placement: Placement, context: ContextSettings, use_mmap: bool
) -> list[_Sums]:
    """Weights, KV and state per GPU and, last, of main memory."""
    sums = [_Sums() for _ in range(len(placement.devices) + 1)]
    pads = [pads_rows(device.name) and not device.pretended for device in placement.devices]
    padding = row_padding(facts) if any(pads) else None
    kv = kv_bytes_per_layer(facts, context)
    state = recurrent_bytes_per_layer(facts)
    on_cpu = frozenset(placement.cpu_expert_layers)
    used: set[int] = set()
    for layer in facts.layers:
        if not layer.loaded:
            continue
        index = layer.index
        device = placement.layer_devices[index]
        used.add(device)
        here = sums[device]
        here.dense_bytes += layer.dense_bytes
        here.kv_bytes += kv[index]
        here.recurrent_bytes += state[index]
        where = sums[MAIN_MEMORY] if index in on_cpu else here
        where.expert_bytes += layer.expert_bytes
        if padding is not None and device != MAIN_MEMORY and pads[device]:
            here.dense_bytes += padding.dense[index]
            if index not in on_cpu:
                here.expert_bytes += padding.experts[index]
    for device in used:
        sums[device].dense_bytes += facts.rope_bytes
    sums[MAIN_MEMORY].dense_bytes += facts.token_embd_bytes
    output = placement.layer_devices[-1]
    sums[output].dense_bytes += facts.output_bytes
    one_copy = use_mmap or facts.arch not in _TIED_COPIED_IN_RAM
    if output == MAIN_MEMORY and facts.tied_output and one_copy:
        # In main memory the output layer reads the same copy, or the same pages of the file.
        sums[MAIN_MEMORY].dense_bytes -= tied_matrix_bytes(facts)
    elif padding is not None and output != MAIN_MEMORY and pads[output]:
        sums[output].dense_bytes += padding.output
    return sums


def _keep_in_ram(
    sums: list[_Sums],
    facts: ModelFacts,
    placement: Placement,
    refused: RefusedWeights,
) -> None:
    """Take the tensors that their GPUs refuse into main memory."""
    ram = sums[MAIN_MEMORY]
    kept = {
        name: {
            tensor
            for probe, tensors in weight_probes(facts).items()
            if probe in refused.get(name, ())
            for tensor in tensors
        }
        for name in (device.name for device in placement.devices)
    }
    for tensor in facts.tensors:
        tied = facts.tied_output and tensor.name == "token_embd.weight"
        device = placement.layer_devices[-1] if tied else tensor_device(placement, tensor)
        if device == MAIN_MEMORY:
            continue
        if tensor.name not in kept[placement.devices[device].name]:
            continue
        if is_routed_expert(tensor.name):
            sums[device].expert_bytes -= tensor.n_bytes
            ram.expert_bytes += tensor.n_bytes
        else:
            sums[device].dense_bytes -= tensor.n_bytes
            # The copy of a tied matrix is one with the embedding again.
            ram.dense_bytes += 0 if tied else tensor.n_bytes


def tied_matrix_bytes(facts: ModelFacts) -> int:
    """Bytes of the embedding matrix that a model without its own output matrix uses twice."""
    for tensor in facts.tensors:
        if tensor.name == "token_embd.weight":
            return tensor.n_bytes
    return min(facts.token_embd_bytes, facts.output_bytes)


def _device(
    sums: _Sums,
    device: PlacementDevice,
    compute_bytes: int,
    answered: DryRunResult | None,
    margins: Margins,
) -> DeviceForecast:
    kv, state = _kv_and_state(sums, device.name, answered)
    in_use = bool(sums.dense_bytes or sums.expert_bytes or kv or state or compute_bytes)
    return DeviceForecast(
        name=device.name,
        kind="gpu",
        dense_bytes=sums.dense_bytes,
        expert_bytes=sums.expert_bytes,
        kv_bytes=kv,
        recurrent_bytes=state,
        compute_bytes=compute_bytes,
        compute_source="estimate" if answered is None else "dry-run",
        driver_bytes=margins.driver(device.name) if in_use else 0,
        leave_free_bytes=margins.leave_free(device.name) if in_use else 0,
        free_bytes=device.free_bytes,
        total_bytes=device.total_bytes,
        shares_ram=device.shares_ram,
    )


def _with_ram_room(device: PlacementDevice, ram_free_bytes: int | None) -> PlacementDevice:
    """An integrated GPU cannot have more than main memory has left, whatever its driver says."""
    if not device.shares_ram or ram_free_bytes is None:
        return device
    known = ram_free_bytes if device.free_bytes is None else device.free_bytes
    return replace(device, free_bytes=min(known, ram_free_bytes))


def _ram(
    sums: _Sums,
    compute_bytes: int,
    answered: DryRunResult | None,
    margins: Margins,
    free_bytes: int | None,
    total_bytes: int | None,
) -> DeviceForecast:
    kv, state = _kv_and_state(sums, RAM, answered)
    return DeviceForecast(
        name=RAM,
        kind="cpu",
        dense_bytes=sums.dense_bytes,
        expert_bytes=sums.expert_bytes,
        kv_bytes=kv,
        recurrent_bytes=state,
        compute_bytes=compute_bytes,
        compute_source="estimate" if answered is None else "dry-run",
        driver_bytes=0,
        leave_free_bytes=margins.leave_free(RAM),
        free_bytes=free_bytes,
        total_bytes=total_bytes,
    )


def _kv_and_state(sums: _Sums, name: str, answered: DryRunResult | None) -> tuple[int, int]:
    if answered is None:
        return sums.kv_bytes, sums.recurrent_bytes
    # A dry run that could not tell its devices apart says nothing here: the formula stays.
    kv = answered.kv_bytes.get(name, 0) if answered.kv_bytes else sums.kv_bytes
    state = (
        answered.recurrent_bytes.get(name, 0) if answered.recurrent_bytes else sums.recurrent_bytes
    )
    return kv, state
