"""How fast a placement will be: what one token reads from where, over how fast that goes.

In: facts, a forecast, measurements. Out: :class:`TokenTraffic` (bytes, from the tensor table)
and :class:`SpeedModel` (seconds a byte, a token and a hand-over, fitted to what was measured).
Pure; any thread.

A token needs all dense weights, the chosen experts (used / count of them) and the KV cache
so far, each from where it lies. Between GPU and RAM only activations cross the bus, a few KiB
a layer: that is why experts in RAM are not slow.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moelauncher.core.memory.placement import MAIN_MEMORY

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
    from moelauncher.core.memory.placement import Placement
    from moelauncher.core.speed.device_bandwidth import Bandwidths

_FLOAT_BYTES = 4
#: Values of common hardware: where the fit has nothing to go by, it stays near these.
_USUAL = (1 / 40e9, 1 / 300e9, 0.5e-3, 40e-6)
_TRUST_IN_USUAL = 0.003
#: How far a prediction from bandwidths alone is usually off.
_BANDWIDTH_ERROR = 0.3


@dataclass(frozen=True)
class TokenTraffic:
    """What one token reads and moves at a depth."""

    vram_bytes: float
    ram_bytes: float
    bus_bytes: float
    hand_overs: int  # from a GPU to the CPU or back
    #: Of ``vram_bytes``: each GPU's share, by name; empty where one GPU is as good as another.
    gpu_bytes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class SpeedModel:
    """Seconds a byte of RAM and VRAM, a token, and a hand-over. ``error`` is the median
    relative miss against the measurements it was fitted to. ``gpu_factors`` says how much
    longer a byte takes on a GPU that is not the quickest."""

    ram_s: float
    vram_s: float
    token_s: float
    hand_over_s: float
    error: float
    gpu_factors: tuple[tuple[str, float], ...] = ()

    def tok_s(self, traffic: TokenTraffic) -> float:
        """Predicted decode speed."""
        return 1 / (
            self.ram_s * traffic.ram_bytes
            + self.vram_s * weighed_vram(traffic, self.gpu_factors)
            + self.token_s
            + self.hand_over_s * traffic.hand_overs
        )


def weighed_vram(traffic: TokenTraffic, gpu_factors: Sequence[tuple[str, float]]) -> float:
    """Bytes of VRAM, as if the quickest GPU read them all."""
    factors = dict(gpu_factors)
    slower = sum(n_bytes * (factors.get(name, 1.0) - 1) for name, n_bytes in traffic.gpu_bytes)
    return traffic.vram_bytes + slower


#: Where nothing is known of a machine. Common hardware lies within a factor of two of it.
USUAL_HARDWARE = SpeedModel(*_USUAL, error=1.0)


def token_traffic(
    facts: ModelFacts, placement: Placement, forecast: MemoryForecast, n_ctx: int, depth: int
) -> TokenTraffic:
    """One token's traffic under ``placement``, with ``depth`` tokens before it."""
    share = facts.n_expert_used / facts.n_expert if facts.n_expert else 1.0
    filled = min(1.0, depth / n_ctx) if n_ctx else 0.0

    def read(device: DeviceForecast) -> float:
        kept = device.kv_bytes * filled + device.recurrent_bytes
        return device.dense_bytes + device.expert_bytes * share + kept

    # Of the embeddings one row is read, unless they are the output matrix there too.
    rows_only = 0 if facts.tied_output and placement.layer_devices[-1] == MAIN_MEMORY else 1
    ram = read(forecast.ram) - rows_only * facts.token_embd_bytes
    hand_overs = 0
    before = placement.layer_devices[0]
    on_cpu = frozenset(placement.cpu_expert_layers)
    for layer in facts.layers:
        if not layer.loaded:
            continue
        device = placement.layer_devices[layer.index]
        hand_overs += device != before
        before = device
        if layer.index in on_cpu and device != MAIN_MEMORY:
            hand_overs += 2
    hand_overs += placement.layer_devices[-1] != before
    shares = tuple((gpu.name, read(gpu)) for gpu in forecast.gpus)
    return TokenTraffic(
        vram_bytes=sum(n_bytes for _, n_bytes in shares),
        ram_bytes=max(0.0, ram),
        bus_bytes=float(hand_overs * (facts.n_embd or 0) * _FLOAT_BYTES),
        hand_overs=hand_overs,
        gpu_bytes=shares if len(shares) > 1 else (),
    )


def hardware_model(bandwidths: Bandwidths, gpus: Sequence[str]) -> SpeedModel | None:
    """What ``gpus`` and RAM should do by their measured bandwidth; None where one is unknown."""
    ram = bandwidths.ram_bytes_s
    known = [bandwidths.bytes_s.get(name) for name in gpus]
    speeds = [speed for speed in known if speed]
    if not ram or len(speeds) < len(gpus):
        return None
    usual = USUAL_HARDWARE
    quickest = max(speeds, default=1 / usual.vram_s)
    return SpeedModel(
        1 / ram,
        1 / quickest,
        usual.token_s,
        usual.hand_over_s,
        _BANDWIDTH_ERROR,
        tuple((name, quickest / speed) for name, speed in zip(gpus, speeds, strict=True)),
    )


def scaled_to(model: SpeedModel, traffic: TokenTraffic, tok_s: float) -> SpeedModel:
    """``model``, slower or faster in all by what one place showed."""
    factor = model.tok_s(traffic) / tok_s
    return replace(
        model,
        ram_s=model.ram_s * factor,
        vram_s=model.vram_s * factor,
        token_s=model.token_s * factor,
        hand_over_s=model.hand_over_s * factor,
    )


def fit_speed(
    measured: Sequence[tuple[TokenTraffic, float]], start: SpeedModel = USUAL_HARDWARE
) -> SpeedModel | None:
    """The model closest to ``measured`` (traffic, tok/s); None with fewer than two places.

    Where the measurements leave it open, it stays near ``start``.
    """
    if len({traffic for traffic, _ in measured}) < 2:
        return None
    import numpy as np  # not above: it would delay the window

    factors = start.gpu_factors
    rows = np.array(
        [[t.ram_bytes, weighed_vram(t, factors), 1.0, float(t.hand_overs)] for t, _ in measured]
    )
    rates = np.array([rate for _, rate in measured])
    usual = np.array([start.ram_s, start.vram_s, start.token_s, start.hand_over_s])
    # A machine that is slower or faster than usual is so in all, until the fit knows better.
    usual = usual * float(np.median(1 / (rows @ usual * rates)))
    # In units of the usual values, and each measurement relative to its own time a token.
    matrix = rows * usual * rates[:, None]
    goal = np.ones(len(rates))
    active = np.ones(4, dtype=bool)
    solution = np.ones(4)
    pull = np.sqrt(_TRUST_IN_USUAL) * np.eye(4)
    for _ in range(4):
        stacked = np.vstack([matrix[:, active], pull[:, active]])
        target = np.concatenate([goal, np.sqrt(_TRUST_IN_USUAL) * active])
        found = np.linalg.lstsq(stacked, target, rcond=None)[0]
        solution = np.zeros(4)
        solution[active] = found
        if (found >= 0).all():
            break
        active &= solution > 0  # nothing takes less than no time
    ram_s, vram_s, token_s, hand_over_s = (float(value) for value in solution * usual)
    if ram_s + vram_s + token_s + hand_over_s <= 0:
        return None
    model = SpeedModel(ram_s, vram_s, token_s, hand_over_s, 0.0, factors)
    misses = [abs(model.tok_s(traffic) / rate - 1) for traffic, rate in measured]
    return replace(model, error=statistics.median(misses))
