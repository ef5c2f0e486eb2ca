"""The sentence under the gauge."""

from __future__ import annotations

from moelauncher.core.memory.forecast_text import forecast_text, over_full_text
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from tests.helpers.planned_models import GIB, MIB


def _device(name: str, kind: str, used: int, free: int | None) -> DeviceForecast:
    return DeviceForecast(
        name=name,
        kind=kind,
        dense_bytes=used,
        expert_bytes=0,
        kv_bytes=0,
        recurrent_bytes=0,
        compute_bytes=0,
        compute_source="estimate",
        driver_bytes=0,
        leave_free_bytes=0,
        free_bytes=free,
    )


def _forecast(
    *devices: DeviceForecast, spare: int | None = None, streams: bool = False
) -> MemoryForecast:
    return MemoryForecast(
        devices=devices,
        fits=all(device.fits for device in devices),
        spare_bytes=spare,
        text="",
        compute_source="estimate",
        streams_from_disk=streams,
    )


RAM = _device("RAM", "cpu", GIB, 8 * GIB)


def test_fits_over_and_unknown() -> None:
    fits = _forecast(_device("CUDA0", "gpu", GIB, 4 * GIB), RAM, spare=3 * GIB)
    assert forecast_text(fits) == "Fits, 3.0 GiB to spare."
    over = _forecast(_device("CUDA0", "gpu", 5 * GIB, 4 * GIB), RAM)
    assert forecast_text(over) == "1.0 GiB over."
    unknown = _forecast(_device("CUDA0", "gpu", GIB, None), RAM)
    assert forecast_text(unknown) == "How much memory is free is not known."


def test_the_device_is_named_where_there_are_several() -> None:
    first = _device("CUDA0", "gpu", 5 * GIB, 4 * GIB)
    second = _device("CUDA1", "gpu", 6 * GIB, 4 * GIB)
    assert forecast_text(_forecast(first, second, RAM)) == "2.0 GiB over on CUDA1."
    full_ram = _device("RAM", "cpu", 9 * GIB, 8 * GIB)
    assert forecast_text(_forecast(full_ram)) == "1.0 GiB over on RAM."


def test_without_a_gpu_what_streams_does_not_fit() -> None:
    full_ram = _device("RAM", "cpu", 9 * GIB, 8 * GIB)
    text = forecast_text(_forecast(full_ram, spare=full_ram.spare_bytes, streams=True))
    assert text.startswith("1.0 GiB of the weights do not fit in RAM")


def test_streaming_is_explained_beside_the_verdict_on_the_gpu() -> None:
    full_ram = _device("RAM", "cpu", 9 * GIB, 8 * GIB)
    card = _device("CUDA0", "gpu", GIB, 4 * GIB)
    text = forecast_text(_forecast(card, full_ram, spare=3 * GIB, streams=True))
    assert text == (
        "The GPU has 3.0 GiB to spare. 1.0 GiB of the weights do not fit in RAM and stream from"
        " disk: every token may wait for the drive."
    )
    other = _device("CUDA1", "gpu", GIB, 8 * GIB)
    text = forecast_text(_forecast(card, other, full_ram, spare=3 * GIB, streams=True))
    assert text.startswith("The fullest GPU has 3.0 GiB to spare. 1.0 GiB of the weights")


def test_what_helps() -> None:
    over = _forecast(_device("CUDA0", "gpu", 5 * GIB + 205 * MIB, 4 * GIB), RAM)
    both = over_full_text(over, more_layers=3, smaller_ctx=24576)
    assert both == ("1.2 GiB over: move 3 more layers to the CPU, or shrink the context to 24k.")
    one = over_full_text(over, more_layers=1, smaller_ctx=None)
    assert one == "1.2 GiB over: move one more layer to the CPU."
    dense = over_full_text(over, more_layers=2, smaller_ctx=None, dense=True)
    assert dense == "1.2 GiB over: keep 2 layers less on the GPU."
    assert over_full_text(over, more_layers=None, smaller_ctx=8192).endswith("to 8k.")
    assert "neither" in over_full_text(over, more_layers=None, smaller_ctx=None)
    fits = _forecast(_device("CUDA0", "gpu", GIB, 4 * GIB), RAM, spare=3 * GIB)
    assert over_full_text(fits, more_layers=1, smaller_ctx=None) == "Fits, 3.0 GiB to spare."
