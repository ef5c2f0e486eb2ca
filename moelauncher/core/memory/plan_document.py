"""A plan for people and programs: the JSON of ``plan --json``, and the terminal's table.

In: the model's list entry, facts, placement, forecast, context. Out: a dict, or lines of
text. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moelauncher.core.memory.llama_commands import llama_bench_command, llama_server_command
from moelauncher.core.memory.slider import expert_slider
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_tokens

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
    from moelauncher.core.memory.placement import Placement
    from moelauncher.core.speed.speed_outlook import ExpectedSpeed


def plan_document(
    model: Mapping[str, object],
    facts: ModelFacts,
    placement: Placement,
    forecast: MemoryForecast,
    context: ContextSettings,
    *,
    text: str | None = None,
    speed: ExpectedSpeed | None = None,
) -> dict[str, object]:
    """One JSON document. ``model`` is the entry as ``list --json`` prints it.

    ``total_bytes`` of a device is what llama.cpp's buffers take there; the driver's share
    and the margin are in ``fits`` and ``spare_bytes``. ``text`` replaces the forecast's
    sentence, where the caller knows what would help.
    """
    return {
        "model": dict(model),
        "placement": placement_document(placement),
        "devices": [_device_document(device) for device in forecast.devices],
        "fits": forecast.fits,
        "spare_bytes": forecast.spare_bytes,
        "text": text or forecast.text,
        **({} if speed is None else {"speed": speed.to_json()}),
        "commands": {
            "llama_server": llama_server_command(facts, placement, context),
            "llama_bench": llama_bench_command(facts, placement, context),
        },
    }


def placement_sentence(facts: ModelFacts, placement: Placement) -> str:
    """What the placement means, as the window says under its slider."""
    slider = expert_slider(facts, placement.devices)
    if slider.dense and placement.devices:
        return slider.gpu_layers_label(placement.n_gpu_layers)
    return slider.label(placement.cpu_moe)


def placement_document(placement: Placement) -> dict[str, object]:
    """A placement as every ``--json`` names it."""
    return {
        "cpu_moe": placement.cpu_moe,
        "of": placement.of,
        "which": placement.which,
        "layers": list(placement.cpu_expert_layers),
        "tensor_split": list(placement.tensor_split),
        "patterns": list(placement.patterns),
    }


def _buffer_bytes(device: DeviceForecast) -> int:
    return device.used_bytes - device.driver_bytes


def _device_document(device: DeviceForecast) -> dict[str, object]:
    return {
        "name": device.name,
        "kind": device.kind,
        "weights_bytes": device.weights_bytes,
        "expert_bytes": device.expert_bytes,
        "kv_bytes": device.kv_bytes,
        "recurrent_bytes": device.recurrent_bytes,
        "compute_bytes": device.compute_bytes,
        "compute_source": device.compute_source,
        "total_bytes": _buffer_bytes(device),
        "free_bytes": device.free_bytes,
        "fits": device.fits,
        **({"shares_ram": True} if device.shares_ram else {}),
    }


def plan_text(
    facts: ModelFacts,
    placement: Placement,
    forecast: MemoryForecast,
    context: ContextSettings,
    *,
    text: str | None = None,
    speed: ExpectedSpeed | None = None,
) -> str:
    """The plan as the terminal shows it: a sentence, a table, the verdict, the commands."""
    settings = tr("Context {ctx}, KV cache {kv_type}, ubatch {ubatch}.").format(
        ctx=format_tokens(context.n_ctx), kv_type=context.kv_type, ubatch=context.n_ubatch
    )
    lines = [
        f"{facts.name}  {facts.arch}  {facts.quant}  {format_bytes(facts.size_bytes)}",
        placement_sentence(facts, placement),
        settings,
        *_warnings(facts, context),
        "",
        *_table(forecast),
        *_shared_memory(forecast),
        "",
        text or forecast.text,
        *((forecast.note,) if forecast.note else ()),
        *(() if speed is None else (speed.text,)),
        "",
        tr("The same in llama.cpp's own programs:"),
        llama_server_command(facts, placement, context),
        llama_bench_command(facts, placement, context),
    ]
    return "\n".join(lines)


def _warnings(facts: ModelFacts, context: ContextSettings) -> tuple[str, ...]:
    warning = context_warning(facts, context.n_ctx)
    return (warning,) if warning else ()


def context_warning(facts: ModelFacts, n_ctx: int) -> str:
    """A sentence where the context is beyond what the model was trained for; else ""."""
    if facts.ctx_train is None or n_ctx <= facts.ctx_train:
        return ""
    return tr(
        "The model was trained for {train} tokens; beyond that, at {ctx}, answers may fall apart."
    ).format(train=format_tokens(facts.ctx_train), ctx=format_tokens(n_ctx))


def _shared_memory(forecast: MemoryForecast) -> tuple[str, ...]:
    names = [gpu.name for gpu in forecast.gpus if gpu.shares_ram]
    if not names:
        return ()
    return (
        tr("{names} is an integrated GPU: its memory is part of RAM, and counted once.").format(
            names=", ".join(names)
        ),
    )


def _table(forecast: MemoryForecast) -> list[str]:
    heads = (
        tr("Device"),
        tr("Dense"),
        tr("Experts"),
        tr("KV"),
        tr("State"),
        tr("Compute"),
        tr("Driver"),
        tr("Total"),
        tr("Free"),
    )
    rows: list[tuple[str, ...]] = [heads]
    for device in forecast.devices:
        mark = "~" if device.compute_source == "estimate" else ""
        cells = (
            device.dense_bytes,
            device.expert_bytes,
            device.kv_bytes,
            device.recurrent_bytes,
        )
        rows.append(
            (
                device.name,
                *(format_bytes(size) for size in cells),
                mark + format_bytes(device.compute_bytes),
                format_bytes(device.driver_bytes),
                format_bytes(device.used_bytes),
                format_bytes(device.free_bytes),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
