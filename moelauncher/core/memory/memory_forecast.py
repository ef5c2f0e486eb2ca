"""What a load takes of each device, and whether it fits: the forecast's values.

Made by ``forecast.py``. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    #: An integrated GPU, whose memory is main memory.
    shares_ram: bool = False
    #: Of main memory: what integrated GPUs take of it. It stands in their own ``used_bytes``.
    lent_bytes: int = 0

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
        return self.free_bytes - self.lent_bytes - self.used_bytes - self.leave_free_bytes

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against it: an unknown amount of free memory does not."""
        spare = self.spare_bytes
        return spare is None or spare >= 0


@dataclass(frozen=True)
class MemoryForecast:
    """All devices, GPUs first and main memory last, with the sentence for the user.

    ``fits`` asks every device. ``spare_bytes`` is the tightest used GPU's (RAM's where there
    is no GPU); None where unknown. ``streams_from_disk`` says that it would load all the
    same, but weights that do not fit in RAM are read from the mapped file again and again.
    """

    devices: tuple[DeviceForecast, ...]
    fits: bool
    spare_bytes: int | None
    text: str
    compute_source: str  # "dry-run" | "estimate"
    streams_from_disk: bool = False
    #: The weights are to be read into RAM that they do not fit; mapped they would stream.
    mapping_would_help: bool = False
    #: Why the dry run's numbers are missing, or why llama.cpp would refuse these settings.
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
