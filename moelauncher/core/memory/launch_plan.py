"""What a press on Launch would do, and what the gauge says about it beforehand.

In: facts, the user's choices, the machine. Out: :class:`LaunchPlan`. Pure; any thread;
microseconds without a dry run, so it is made anew for every stop of a drag.

On a machine whose build has no GPU everything runs on the CPU whatever the slider says.
The slider still shows what a card would have to hold: the plan then has a pretended GPU in
``forecast``, while ``placement`` (what is loaded) has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.memory.auto_placement import Machine, auto_placement, forecast_on
from moelauncher.core.memory.default_gpus import default_gpus, shares_ram
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.learned_margin import learned
from moelauncher.core.memory.load_records import LoadRecord, device_key
from moelauncher.core.memory.margins import Margins, default_leave_free
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.own_share import OwnShare, free_for_reload
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import Placement, PlacementDevice
from moelauncher.core.memory.slider import ExpertSlider, expert_slider
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings

#: The GPU that is planned for where the build has none.
IMAGINED_GPU = PlacementDevice(name="GPU", free_bytes=None, pretended=True)


@dataclass(frozen=True)
class LaunchChoices:
    """What the user chose: the slider's stop, or a dense model's layers on the GPU."""

    cpu_moe: int
    n_gpu_layers: int | None
    which: str
    context: ContextSettings
    use_mmap: bool


@dataclass(frozen=True)
class LaunchPlan:
    """``placement`` is what is loaded; ``shown`` and ``forecast`` are what is drawn."""

    choices: LaunchChoices
    placement: Placement
    shown: Placement
    forecast: MemoryForecast
    slider: ExpertSlider
    #: Whether the GPU in ``shown`` is an imagined one.
    imagined_gpu: bool
    #: The machine as it was planned for.
    machine: Machine

    @property
    def sentence(self) -> str:
        """The sentence under the slider."""
        if self.slider.dense:
            text = self.slider.gpu_layers_label(self.shown.n_gpu_layers)
            reason = self.slider.disabled_reason
            if reason:
                text = reason if self.imagined_gpu else f"{reason} {text}"
        else:
            text = self.slider.label(self.choices.cpu_moe)
        if self.imagined_gpu and not self.slider.dense:
            n_on_gpu = self.slider.last - self.choices.cpu_moe
            if not n_on_gpu:
                return tr("No GPU in use: everything runs on the CPU.")
            return tr(
                "No GPU in use: everything runs on the CPU."
                " A GPU would hold the experts of {n} of {last} layers."
            ).format(n=n_on_gpu, last=self.slider.last)
        return text

    @property
    def gpu_weights(self) -> Mapping[str, int]:
        """Weight bytes that the plan promises to each GPU, by name; a load is held to it."""
        if self.imagined_gpu:
            return {}
        return {device.name: device.weights_bytes for device in self.forecast.gpus}


def machine_of(
    devices: Sequence[BackendDevice],
    snapshot: MachineSnapshot | None,
    share: OwnShare,
    leave_free_bytes: Mapping[str, int],
    leave_free_everywhere: int | None,
    *,
    records: Sequence[LoadRecord] = (),
    had_context: Collection[str] = (),
) -> Machine:
    """The machine to plan for: llama.cpp's GPUs with what is free once our own model is gone.

    ``leave_free_bytes`` is the user's margin by device name, ``leave_free_everywhere`` the
    setting for all (None: 512 MiB beside a display, 256 MiB elsewhere, and more where
    ``records`` of past loads teach it). ``had_context``: devices on which this process
    computed already before what is free was counted; the driver's share is taken there.
    """
    readings = {gpu.device_name: gpu for gpu in (snapshot.gpus if snapshot else ())}
    gpus = []
    margins: dict[str, int] = {}
    drivers: dict[str, int] = {}
    for device in default_gpus(devices):
        shared = shares_ram(device)
        reading = readings.get(device.name)
        free = device.free_bytes if reading is None else free_for_reload(reading, share)
        total = device.total_bytes if reading is None else reading.total_bytes
        gpus.append(PlacementDevice(device.name, free, total, shares_ram=shared))
        past = learned(records, device_key(device.name, device.description))
        # What an integrated GPU leaves free is what the whole system lives on.
        draws = shared or (reading.drives_display if reading else None)
        usual = default_leave_free(draws) + past.extra_bytes
        everywhere = usual if leave_free_everywhere is None else leave_free_everywhere
        margins[device.name] = leave_free_bytes.get(device.name, everywhere)
        if device.name in had_context:
            drivers[device.name] = 0
        elif past.driver_bytes is not None:
            drivers[device.name] = past.driver_bytes
    return Machine(
        gpus=tuple(gpus),
        ram_free_bytes=None if snapshot is None else snapshot.ram_available_bytes + share.ram_bytes,
        ram_total_bytes=None if snapshot is None else snapshot.ram_total_bytes,
        margins=Margins(leave_free_bytes=margins, driver_bytes=drivers),
    )


def launch_plan(
    facts: ModelFacts,
    choices: LaunchChoices,
    machine: Machine,
    dry_run: DryRunResult | None = None,
) -> LaunchPlan:
    """The plan for these choices; ``dry_run`` must be of the plan's ``placement``."""
    real = placed(facts, choices, machine)
    result = forecast_on(facts, real, choices.context, machine, dry_run, use_mmap=choices.use_mmap)
    slider = expert_slider(facts, machine.gpus or (IMAGINED_GPU,))
    if machine.gpus:
        return LaunchPlan(choices, real, real, result, slider, imagined_gpu=False, machine=machine)
    imagined = replace(machine, gpus=(IMAGINED_GPU,))
    shown = placed(facts, choices, imagined)
    card = forecast_on(facts, shown, choices.context, imagined).gpus[0]
    # Nothing is held back for a display, nor by a driver, on a card that is not there.
    card = replace(card, driver_bytes=0, leave_free_bytes=0)
    drawn = replace(result, devices=(card, *result.devices), text=_without_gpu_text(result))
    return LaunchPlan(choices, real, shown, drawn, slider, imagined_gpu=True, machine=machine)


def _without_gpu_text(result: MemoryForecast) -> str:
    """What is said of main memory where an imagined GPU stands beside it."""
    if not result.ram.fits or result.spare_bytes is None:
        return result.text
    return tr("Fits in RAM, {size} to spare.").format(size=format_bytes(result.spare_bytes))


def auto_choices(facts: ModelFacts, choices: LaunchChoices, machine: Machine) -> LaunchChoices:
    """The same choices with Auto's placement: as many layers on the GPU as fit.

    Without a GPU nothing is to be saved, and all experts are said to be in RAM, where they are.
    """
    if not machine.gpus:
        stops = expert_slider(facts, (IMAGINED_GPU,))
        return replace(choices, cpu_moe=stops.last, n_gpu_layers=0 if stops.dense else None)
    chosen = auto_placement(facts, machine, choices.context, which=choices.which).placement
    dense = expert_slider(facts, machine.gpus).dense
    return replace(
        choices,
        cpu_moe=chosen.cpu_moe,
        n_gpu_layers=chosen.n_gpu_layers if dense else None,
    )


def placed(facts: ModelFacts, choices: LaunchChoices, machine: Machine) -> Placement:
    """Where the choices put the model on this machine."""
    return place(
        facts,
        machine.gpus,
        cpu_moe=choices.cpu_moe,
        which=choices.which,
        n_gpu_layers=choices.n_gpu_layers,
        context=choices.context,
        margins=machine.margins,
    )
