"""Memory per device and kind, before a load: what llama.cpp will allocate.

In: facts, placement, context settings, what is free, and the engine's dry run where it has
answered. Out: :class:`MemoryForecast`. Pure; any thread; fast enough for every slider stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Main memory's name wherever devices are named.
RAM = "RAM"


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


@dataclass(frozen=True)
class DeviceForecast:
    """One device's share. ``free_bytes`` is what was free before, None where unknown."""

    name: str
    kind: str  # "gpu" | "cpu"
    dense_bytes: int  # attention, norms, routers, shared experts, embeddings, output
    expert_bytes: int  # routed experts
    kv_bytes: int
    recurrent_bytes: int
    compute_bytes: int
    compute_source: str  # "dry-run" | "estimate"
    driver_bytes: int  # the driver's own share, outside llama.cpp's buffers
    leave_free_bytes: int  # the user's margin
    free_bytes: int | None
    total_bytes: int | None = None

    @property
    def weights_bytes(self) -> int:
        """Dense weights and experts together."""
        return self.dense_bytes + self.expert_bytes

    @property
    def used_bytes(self) -> int:
        """All that a load takes from this device, the driver's share included."""
        return (
            self.weights_bytes
            + self.kv_bytes
            + self.recurrent_bytes
            + self.compute_bytes
            + self.driver_bytes
        )

    @property
    def spare_bytes(self) -> int | None:
        """What stays free above the margin; negative when over; None where free is unknown."""
        if self.free_bytes is None:
            return None
        return self.free_bytes - self.used_bytes - self.leave_free_bytes

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against it: an unknown amount of free memory does not."""
        spare = self.spare_bytes
        return spare is None or spare >= 0


@dataclass(frozen=True)
class MemoryForecast:
    """All devices, GPUs first and main memory last, with the sentence for the user.

    ``fits`` asks the GPUs and main memory. ``spare_bytes`` is the tightest GPU's (RAM's
    where there is no GPU); None where unknown. ``streams_from_disk`` says that weights
    do not fit in RAM and will be read from the file again and again (mapped files only).
    """

    devices: tuple[DeviceForecast, ...]
    fits: bool
    spare_bytes: int | None
    text: str
    compute_source: str  # "dry-run" | "estimate"
    streams_from_disk: bool = False
    #: Why the dry run's numbers are missing; else "".
    note: str = ""

    @property
    def ram(self) -> DeviceForecast:
        """Main memory."""
        return self.devices[-1]

    @property
    def gpus(self) -> tuple[DeviceForecast, ...]:
        """The GPUs, in the placement's order."""
        return self.devices[:-1]

    def device(self, name: str) -> DeviceForecast:
        """The device of that name; KeyError when there is none."""
        for device in self.devices:
            if device.name == name:
                return device
        raise KeyError(name)
