"""The sentence under the gauge, and the one that helps when something does not fit.

In: :class:`MemoryForecast`, and what would help. Out: text. Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_tokens

if TYPE_CHECKING:
    from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast


def forecast_text(forecast: MemoryForecast) -> str:
    """ "Fits, 1.3 GiB to spare.", what is over, or that free memory is unknown."""
    over = _tightest_over(forecast)
    if over is not None:
        spare = over.spare_bytes or 0
        many = len(forecast.gpus) > 1 or over.kind == "cpu"
        if many:
            text = tr("{size} over on {device}.").format(
                size=format_bytes(-spare), device=over.name
            )
        else:
            text = tr("{size} over.").format(size=format_bytes(-spare))
    elif forecast.streams_from_disk and not forecast.gpus:
        return streaming_text(forecast)
    elif forecast.spare_bytes is None:
        text = tr("How much memory is free is not known.")
    elif forecast.streams_from_disk:
        # Only the GPUs fit; of main memory the next sentence tells.
        size = format_bytes(forecast.spare_bytes)
        if len(forecast.gpus) > 1:
            text = tr("The fullest GPU has {size} to spare.").format(size=size)
        else:
            text = tr("The GPU has {size} to spare.").format(size=size)
    else:
        text = tr("Fits, {size} to spare.").format(size=format_bytes(forecast.spare_bytes))
    if forecast.streams_from_disk:
        text = f"{text} {streaming_text(forecast)}"
    if forecast.mapping_would_help:
        text = f"{text} {mapping_text()}"
    return text


def mapping_text() -> str:
    """What helps where weights are read into RAM that they do not fit."""
    return tr("Switch “Map model files” on: what does not fit then stays on disk.")


def streaming_text(forecast: MemoryForecast) -> str:
    """What it means that the weights do not fit in RAM."""
    over = -(forecast.ram.spare_bytes or 0)
    return tr(
        "{size} of the weights do not fit in RAM and stream from disk:"
        " every token may wait for the drive."
    ).format(size=format_bytes(over))


def over_full_text(
    forecast: MemoryForecast,
    *,
    more_layers: int | None,
    smaller_ctx: int | None,
    dense: bool = False,
) -> str:
    """ "1.2 GiB over: move 3 more layers to the CPU, or shrink the context to 24k".

    ``more_layers`` and ``smaller_ctx`` are None where that alone does not help.
    """
    over = _tightest_over(forecast)
    if over is None or (forecast.mapping_would_help and over.kind == "cpu"):
        return forecast_text(forecast)
    size = format_bytes(-(over.spare_bytes or 0))
    # The only GPU needs no name.
    if len(forecast.gpus) > 1 or over.kind == "cpu":
        lack = tr("{size} over on {device}").format(size=size, device=over.name)
    else:
        lack = tr("{size} over").format(size=size)
    layers = None
    if more_layers is not None:
        one = (
            tr("keep one layer less on the GPU") if dense else tr("move one more layer to the CPU")
        )
        several = (
            tr("keep {n} layers less on the GPU")
            if dense
            else tr("move {n} more layers to the CPU")
        )
        layers = one if more_layers == 1 else several.format(n=more_layers)
    shrink = (
        None
        if smaller_ctx is None
        else tr("shrink the context to {ctx}").format(ctx=format_tokens(smaller_ctx))
    )
    if layers and shrink:
        return tr("{lack}: {layers}, or {shrink}.").format(lack=lack, layers=layers, shrink=shrink)
    if layers or shrink:
        return tr("{lack}: {remedy}.").format(lack=lack, remedy=layers or shrink)
    return tr("{lack}: neither more layers on the CPU nor a smaller context is enough.").format(
        lack=lack
    )


def _tightest_over(forecast: MemoryForecast) -> DeviceForecast | None:
    """The device with the most missing; main memory only where it makes the load fail."""
    devices = forecast.gpus if forecast.streams_from_disk else forecast.devices
    over = [device for device in devices if not device.fits]
    return min(over, key=lambda device: device.spare_bytes or 0, default=None)
