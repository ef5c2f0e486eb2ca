"""Which of a build's devices a model is placed on: llama.cpp's own choice.

In: :class:`BackendDevice` values in llama.cpp's order. Out: the GPUs. Pure; any thread.

The rule is that of ``llama_prepare_model_devices`` in the vendored ``src/llama.cpp``, for a
load that names no devices. Ours names them all the same, and so has to follow it:

* machines reached over the network (RPC) first, then this machine's cards;
* a card that two backends see (CUDA and Vulkan in one build) counts once, by its address;
* integrated GPUs only where there is no card, and only those of the backend that came first.
"""

from __future__ import annotations

from collections.abc import Sequence

from moelauncher.core.machine import BackendDevice

_RPC = "RPC"


def default_gpus(devices: Sequence[BackendDevice]) -> tuple[BackendDevice, ...]:
    """The devices that a model's layers are shared among; none: everything is in RAM."""
    remote: list[BackendDevice] = []
    cards: list[BackendDevice] = []
    integrated: list[BackendDevice] = []
    addresses: set[str] = set()
    for device in devices:
        if device.kind == "gpu" and device.backend == _RPC:
            remote.append(device)
        elif device.kind == "gpu":
            if device.pci_address is None or device.pci_address not in addresses:
                cards.append(device)
            if device.pci_address is not None:
                addresses.add(device.pci_address)
        elif shares_ram(device) and (not integrated or device.backend == integrated[0].backend):
            integrated.append(device)
    return (*remote, *(cards or integrated))


def allowed_devices(
    devices: Sequence[BackendDevice], names: Sequence[str]
) -> tuple[BackendDevice, ...]:
    """The devices without the GPUs that the user did not name; all where none of ``names`` is
    there, as after a card was taken out."""
    wanted = {name.lower() for name in names}
    named = [one for one in devices if one.name.lower() in wanted and one.kind in ("gpu", "igpu")]
    if not named:
        return tuple(devices)
    return tuple(one for one in devices if one in named or one.kind not in ("gpu", "igpu"))


def shares_ram(device: BackendDevice) -> bool:
    """Whether the device's memory is main memory: it must not be counted twice."""
    return device.kind == "igpu"
