"""Which GPUs are used, which are not and why not, and what would mend that.

In: what the meters, the bus, Vulkan and llama.cpp each see. Out: :class:`Verdict` values. Pure;
any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.program.doctor_facts import (
    AMD,
    INTEL,
    NVIDIA,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
    BusGpu,
    GpuSightings,
    VulkanGpu,
)
from moelauncher.core.translate import tr
from moelauncher.core.units import GIB, format_bytes
from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict

#: A GPU with less free cannot hold attention and KV cache of a usual model.
_LITTLE_VRAM_BYTES = 2 * GIB
_HOT_C = 87.0
#: More than a desktop's own windows leave there.
_MUCH_SHARED_BYTES = 1 * GIB
#: Makers whose cards compute; the others are a server's or a virtual machine's screen.
_MAKERS = (NVIDIA, AMD, INTEL)
#: What reserves a card for a virtual machine.
_RESERVED = ("vfio-pci", "xen-pciback")


def check_gpus(snapshot: MachineSnapshot, seen: GpuSightings) -> tuple[Verdict, ...]:
    """All verdicts on GPUs."""
    usable = [device for device in seen.devices if device.kind in ("gpu", "igpu")]
    verdicts = []
    readings = {gpu.device_name: gpu for gpu in snapshot.gpus}
    for device in usable:
        reading = readings.get(device.name)
        verdicts.append(_used(device, reading))
        verdicts += _window_on_memory(device, reading, seen)
        verdicts += _spilling(device, reading, seen)
    verdicts += _unused(snapshot, seen)
    if verdicts or seen.build.problem:
        return tuple(verdicts)
    return (Verdict(WARNING, "GPU", *_none_found(seen)),)


def first_glance(snapshot: MachineSnapshot, seen: GpuSightings) -> tuple[Verdict, ...]:
    """Only whether each GPU is used, under the name that its owner knows it by."""
    names = {_subject(device): device.description for device in seen.devices}
    details = (tr("Resizable BAR, {name}"), tr("Shared memory, {name}"))
    skipped = {text.format(name=device.name) for device in seen.devices for text in details}
    return tuple(
        replace(verdict, subject=names.get(verdict.subject, verdict.subject))
        for verdict in check_gpus(snapshot, seen)
        if verdict.subject not in skipped
    )


def unused_gpu(snapshot: MachineSnapshot, seen: GpuSightings) -> Verdict | None:
    """The verdict on a GPU that is there and that llama.cpp does not use; None without one."""
    return next(_unused(snapshot, seen), None)


def all_used(seen: GpuSightings) -> bool:
    """Whether llama.cpp can use every card that the system finds."""
    usable = [device for device in seen.devices if device.kind in ("gpu", "igpu")]
    cards = [card for card in seen.bus if card.vendor in _MAKERS]
    return all(any(_is_card(device, card) for device in usable) for card in cards)


# GPUs that llama.cpp uses


def _used(device: BackendDevice, reading: GpuReading | None) -> Verdict:
    subject = _subject(device)
    if is_software(device.description):
        text = tr("This is no real GPU but a program that imitates one.")
        return Verdict(WARNING, subject, text, tr("Install the driver of your GPU."))
    free = device.free_bytes if reading is None else reading.free_bytes
    total = device.total_bytes if reading is None else reading.total_bytes
    if reading is not None and reading.throttle_reasons:
        reasons = ", ".join(reading.throttle_reasons)
        text = tr("The GPU is slowed down: {reasons}.").format(reasons=reasons)
        return Verdict(WARNING, subject, text, tr("Check its cooling and power supply."))
    if reading is not None and (reading.temperature_c or 0) >= _HOT_C:
        text = tr("The GPU is hot: {degrees:.0f} °C.").format(degrees=reading.temperature_c)
        return Verdict(WARNING, subject, text, tr("Check its cooling."))
    if free is None:
        return Verdict(GOOD, subject, tr("llama.cpp can use this GPU."))
    sizes = {"free": format_bytes(free), "total": format_bytes(total)}
    if free < _LITTLE_VRAM_BYTES:
        text = tr("Only {free} of {total} VRAM is free.").format(**sizes)
        return Verdict(WARNING, subject, text, tr("Close programs that use the GPU."))
    return Verdict(GOOD, subject, tr("{free} of {total} VRAM is free.").format(**sizes))


def _window_on_memory(
    device: BackendDevice, reading: GpuReading | None, seen: GpuSightings
) -> Iterator[Verdict]:
    """Resizable BAR: whether the processor reaches all of the card's memory at once."""
    card = next((card for card in seen.bus if _is_card(device, card)), None)
    listed = seen.vulkan.gpus if seen.vulkan is not None else ()
    vulkan = next((gpu for gpu in listed if gpu.name == device.description), None)
    total = (reading.total_bytes if reading else None) or device.total_bytes
    if vulkan is not None and vulkan.kind == "discrete":
        visible = vulkan.visible_bytes
    elif card is not None and card.visible_bytes is not None and device.kind == "gpu":
        visible = card.visible_bytes
    else:
        return
    if not visible or not total:
        return
    subject = tr("Resizable BAR, {name}").format(name=device.name)
    if visible * 2 >= total:
        yield Verdict(GOOD, subject, tr("On: the processor reaches all of its memory at once."))
        return
    text = tr("Off: the processor reaches {part} of {total} at once.").format(
        part=format_bytes(visible), total=format_bytes(total)
    )
    advice = tr(
        "Switch on “Resizable BAR” (or “Smart Access Memory”) and “Above 4G Decoding” in the "
        "BIOS: loading and moving models gets quicker."
    )
    yield Verdict(WARNING, subject, text, advice)


def _spilling(
    device: BackendDevice, reading: GpuReading | None, seen: GpuSightings
) -> Iterator[Verdict]:
    """Windows moves what does not fit into shared memory, and says nothing."""
    if not seen.is_windows or reading is None:
        return
    subject = tr("Shared memory, {name}").format(name=device.name)
    if (reading.shared_bytes or 0) >= _MUCH_SHARED_BYTES:
        text = tr("{size} of the GPU's data lie in main memory.").format(
            size=format_bytes(reading.shared_bytes)
        )
        advice = tr("Close programs that use the GPU, or keep more layers on the CPU.")
        yield Verdict(WARNING, subject, text, advice)
    elif "nvidia" in device.description.lower():
        text = tr(
            "Little is there. Too full a GPU would spill into it, and the window would say so; "
            "“CUDA - Sysmem Fallback Policy” in NVIDIA's settings can forbid it."
        )
        yield Verdict(GOOD, subject, text)


# GPUs that it does not use


def _unused(snapshot: MachineSnapshot, seen: GpuSightings) -> Iterator[Verdict]:
    usable = [device for device in seen.devices if device.kind in ("gpu", "igpu")]
    told = [gpu for gpu in snapshot.gpus if gpu.device_name is not None]
    cards = [card for card in seen.bus if card.vendor in _MAKERS]
    # A processor's own graphics beside a card that is used is no loss.
    idle = [card for card in cards if not any(_is_card(device, card) for device in usable)]
    for card in idle:
        beside = any(not is_software(device.description) for device in usable)
        if beside and card.vendor != NVIDIA and len(cards) > 1:
            continue
        text, advice = _why_unused(card, seen)
        yield Verdict(WARNING if beside else BAD, card.name, text, advice)
    known = {card.pci_address for card in cards}
    for gpu in snapshot.gpus:
        if gpu in told or gpu.pci_address in known or (idle and gpu.pci_address is None):
            continue
        card = BusGpu(_maker(gpu), gpu.name, gpu.pci_address, gpu.driver or gpu.source, gpu.driver)
        text, advice = _why_unused(card, seen)
        yield Verdict(WARNING if usable else BAD, gpu.name, text, advice)


def _none_found(seen: GpuSightings) -> tuple[str, str]:
    """Nothing that computes was seen: that there is nothing, or what may hide it."""
    state = seen.vulkan.state if seen.vulkan is not None else None
    if state == VULKAN_CRASHES:
        text = tr("The Vulkan driver crashes, so no GPU is used and the processor computes all.")
        return text, tr("Update or remove the graphics driver, then run the doctor again.")
    if state == VULKAN_MISSING:
        text = tr("No GPU was found, and no Vulkan loader to find one; the processor computes all.")
        return text, tr("If there is a GPU, install its driver with Vulkan.")
    if state == VULKAN_REFUSES and seen.vulkan is not None and seen.vulkan.drivers:
        text = tr("No Vulkan driver starts, so no GPU is used and the processor computes all.")
        return text, tr("If there is a GPU, install its driver anew.")
    text = tr("No GPU was found; everything is computed by the processor.")
    return text, tr("If there is one, install its driver.")


def _why_unused(card: BusGpu, seen: GpuSightings) -> tuple[str, str]:
    """The first thing in the way from the card to llama.cpp, and what to do about it."""
    vulkan = seen.vulkan
    if seen.wish not in ("", "auto"):
        text = tr("The setting “GPU interface” ({wish}) leaves this GPU out.")
        return text.format(wish=seen.wish), tr("Set it back to auto, and start again.")
    if card.driver is None:
        return tr("No driver runs this GPU."), _get_driver(card, seen)
    if card.driver in _RESERVED:
        text = tr("It is reserved for a virtual machine ({driver}).").format(driver=card.driver)
        return text, tr("Give it back to this system if models shall run on it.")
    if seen.build.gpu_offload is False and not seen.packaged:
        return _other_build()
    if vulkan is not None and vulkan.state == VULKAN_MISSING:
        return tr("The Vulkan loader is missing, so programs find no GPU."), _get_loader(seen)
    if vulkan is not None and vulkan.state == VULKAN_CRASHES:
        text = tr("The Vulkan driver crashes when it is asked for its GPUs, so it is left out.")
        return text, tr("Update the graphics driver, then run the doctor again.")
    if vulkan is not None and not any(_is_listed(card, gpu) for gpu in vulkan.gpus):
        if card.driver == "nouveau":
            text = tr("The driver nouveau runs it, which offers Vulkan nothing.")
            return text, _get_driver(card, seen)
        return tr("Vulkan does not list this GPU."), _get_vulkan_driver(card, seen)
    if seen.build.gpu_modules or seen.packaged:
        text = tr("Vulkan lists this GPU, but llama.cpp does not take it.")
        return text, tr("It may be too old for llama.cpp; an update of its driver may help.")
    return _other_build()


def _other_build() -> tuple[str, str]:
    text = tr("This build of llama.cpp cannot use the GPU.")
    return text, tr(
        "Take one that can: “packaging/dev.py run --wheels vulkan” (README, “With your GPU”)."
    )


def _get_driver(card: BusGpu, seen: GpuSightings) -> str:
    if seen.is_windows:
        text = tr("Install the newest graphics driver from {maker}'s site, then restart.")
        return text.format(maker=card.vendor)
    if card.vendor == NVIDIA:
        return tr("Install NVIDIA's driver (Debian, Ubuntu: package nvidia-driver), then restart.")
    return tr("Install the firmware of the card and the package mesa-vulkan-drivers, then restart.")


def _get_loader(seen: GpuSightings) -> str:
    if seen.is_windows:
        return tr("It comes with the graphics driver: install the newest one.")
    return tr("Install it: libvulkan1 on Debian and Ubuntu, vulkan-loader on Fedora.")


def _get_vulkan_driver(card: BusGpu, seen: GpuSightings) -> str:
    if seen.is_windows:
        return _get_driver(card, seen)
    if card.vendor == NVIDIA:
        return tr("Its Vulkan part is missing or of another version: reinstall NVIDIA's driver.")
    return tr("Install the package mesa-vulkan-drivers (on Arch vulkan-radeon or vulkan-intel).")


# Who is who


def _is_card(device: BackendDevice, card: BusGpu) -> bool:
    if device.pci_address and card.pci_address:
        return device.pci_address == card.pci_address
    return card.vendor == _vendor_in(device.description) and not is_software(device.description)


def _is_listed(card: BusGpu, gpu: VulkanGpu) -> bool:
    return gpu.vendor == card.vendor and gpu.kind != "software"


def _maker(gpu: GpuReading) -> str:
    return NVIDIA if gpu.source == "NVML" else _vendor_in(gpu.name)


def _vendor_in(name: str) -> str:
    words = set(re.split(r"\W+", name.lower()))
    if words & {"nvidia", "geforce", "rtx", "gtx", "quadro", "tesla"}:
        return NVIDIA
    if words & {"amd", "radeon", "ati"}:
        return AMD
    return INTEL if words & {"intel", "arc", "iris", "uhd"} else ""


def is_software(description: str) -> bool:
    """Whether a device of that name is a program that imitates a GPU on the processor."""
    name = description.lower()
    return "llvmpipe" in name or "swiftshader" in name or "basic render" in name


def _subject(device: BackendDevice) -> str:
    return f"{device.name} ({device.description})"
