"""What speed to expect at every stop: the curve behind the measurements, the groove, the figures.

In: the plan in view, what is measured of its model. Out: the speed pane and the slider's tint.
Where the bandwidths of this machine are not known, they are measured once, when nothing else
goes on. GUI thread; measuring is a pool job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.memory.placement import RAM
from moelauncher.core.speed.device_bandwidth import BandwidthFile, Bandwidths
from moelauncher.core.speed.measurement import StopSpeed
from moelauncher.core.speed.speed_estimate import DEPTH_TOKENS, MODEL, USUAL, SpeedBasis, basis_text
from moelauncher.core.speed.speed_outlook import SpeedOutlook, speed_outlook
from moelauncher.core.speed.speed_prediction import (
    SpeedModel,
    TokenTraffic,
    hardware_model,
    token_traffic,
)
from moelauncher.core.speed.tune_plan import tune_plan
from moelauncher.core.units import MIB, format_bytes, format_rate, unbroken
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.services import Services
from moelauncher.gui.speed.best_speeds import BestSpeeds

_LANE = "bandwidth"
#: So long the window must have had nothing to do.
_QUIET_MS = 3000


class OutlookDesk(QObject):
    """One window's predictions.

    Signals:
        hardware_known(): the machine's bandwidths were measured.
    """

    hardware_known = Signal()

    def __init__(
        self,
        window: MainWindow,
        planner: Planner,
        services: Services,
        jobs: JobRunner,
        replies: BestSpeeds,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._planner = planner
        self._jobs = jobs
        self._replies = replies
        self._measure = services.measure_bandwidths
        self._file = BandwidthFile(services.paths.bandwidths_file)
        self._machine = ""
        self._bandwidths = Bandwidths()
        self._tried: set[str] = set()
        self._able = False
        self._shown_of: object = None
        self._outlook: SpeedOutlook | None = None
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(_QUIET_MS)
        self._quiet.timeout.connect(self._measure_now)

    # What comes in

    def set_machine(self, name: str) -> None:
        """What this machine's measurements are known by; "" while nobody knows."""
        if name != self._machine:
            self._machine = name
            self._bandwidths = self._file.read(name)
            self._tried.clear()
            self._consider()

    def set_able(self, able: bool) -> None:
        """Whether nothing else goes on that would be disturbed."""
        self._able = able
        self._consider()

    def close(self) -> None:
        """Measure nothing any more."""
        self._quiet.stop()
        self._jobs.cancel(_LANE)

    # What goes out

    @property
    def basis(self) -> SpeedBasis:
        """What the speed of any model is estimated from here."""
        names = [gpu.name for gpu in self._planner.machine.gpus]
        return self._replies.basis(hardware_model(self._bandwidths, names))

    def fitted(self, facts: ModelFacts) -> SpeedModel | None:
        """The prediction from this model's own measurements, where there are enough."""
        selected = self._planner.facts
        here = selected is not None and selected.path == facts.path
        return self._outlook.model if here and self._outlook and self._outlook.fitted else None

    @property
    def curve(self) -> tuple[float | None, ...]:
        """tok/s by the stops of the plan in view; empty without one."""
        return () if self._outlook is None else self._outlook.curve

    def show(
        self, facts: ModelFacts | None, plan: LaunchPlan | None, speeds: Sequence[StopSpeed]
    ) -> None:
        """Show what is measured (``speeds``) and expected of the model in view."""
        speed, slider = self._window.speed, self._window.placement.slider
        if facts is None or plan is None:
            self._outlook, self._shown_of = None, None
            speed.set_speeds((), 0)
            speed.set_traffic("")
            slider.set_speeds({})
            return
        dense = plan.slider.dense
        self._think(facts, plan, speeds)
        expected = self.curve[::-1] if dense else self.curve
        last = plan.slider.gpu_layers if dense else plan.slider.last
        here = plan.choices.n_gpu_layers if dense else plan.choices.cpu_moe
        fits = () if dense else slider.fits
        speed.set_speeds(speeds, last, fits, here, expected, guessed=self._guessed)
        self._show_traffic(facts, plan)
        measured = {} if dense else {one.stop: one.median for one in speeds}
        foretold = {
            stop: rate
            for stop, rate in enumerate(() if dense or plan.imagined_gpu else expected)
            if rate is not None and (stop >= len(fits) or fits[stop] is not False)
        }
        if len(measured) > 1:
            slider.set_speeds(measured)
        else:
            slider.set_speeds(foretold, expected=True)

    # Inside

    def _think(self, facts: ModelFacts, plan: LaunchPlan, speeds: Sequence[StopSpeed]) -> None:
        machine, choices = self._planner.machine, plan.choices
        basis = self.basis
        names = tuple(gpu.name for gpu in machine.gpus)
        key = (id(facts), choices.context, choices.which, names, tuple(speeds), basis)
        if key == self._shown_of:
            return
        self._shown_of = key
        self._outlook = speed_outlook(tune_plan(facts, machine, choices), speeds, basis)

    def _show_traffic(self, facts: ModelFacts, plan: LaunchPlan) -> None:
        """The three figures behind the speed of the placement in view, and the prediction."""
        read = self._read(facts, plan)
        vram = self.tr("{size} VRAM").format(size=format_bytes(round(read.vram_bytes)))
        ram = self.tr("{size} RAM").format(size=format_bytes(round(read.ram_bytes)))
        # What rounds to nothing is no news.
        parts = [vram] if read.vram_bytes >= MIB else []
        parts += [ram] if read.ram_bytes >= MIB else []
        read_of = " + ".join(unbroken(part) for part in parts)
        text = self.tr("{parts} a token").format(parts=read_of) if parts else ""
        tip = self.tr(
            "What one token reads: dense weights, the used experts and the KV cache, each from "
            "where it lies. Only activations cross the bus ({bus}), not weights: that is why "
            "experts in RAM are not slow."
        ).format(bus=format_bytes(round(read.bus_bytes)))
        rate, why = self._expected(read, plan)
        if rate:
            told = (
                self.tr("{rate} is a rough guess: {why}.")
                if self._guessed
                else self.tr("{rate} expected: {why}.")
            )
            tip += "\n" + told.format(rate=rate, why=why)
        speed = self._window.speed
        speed.set_traffic(text, tip, rate.rpartition(" ")[0], guessed=self._guessed)

    def _read(self, facts: ModelFacts, plan: LaunchPlan) -> TokenTraffic:
        """What a token reads where the model will lie: not on a GPU that is only imagined."""
        context = plan.choices.context
        placement, expected = plan.shown, plan.forecast
        if plan.imagined_gpu:
            placement, expected = plan.placement, forecast(facts, plan.placement, context)
        depth = min(DEPTH_TOKENS, context.n_ctx)
        return token_traffic(facts, placement, expected, context.n_ctx, depth)

    @property
    def _basis(self) -> SpeedBasis:
        """What the speeds in view rest on."""
        return self.basis if self._outlook is None else self._outlook.basis

    @property
    def _guessed(self) -> bool:
        """Whether they rest on nothing that was seen of this machine."""
        return self._basis.kind == USUAL

    def _expected(self, read: TokenTraffic, plan: LaunchPlan) -> tuple[str, str]:
        """The speed to expect of the placement in view, and what that rests on.

        None of what does not fit: spilled memory and drives are not in the prediction.
        """
        if plan.forecast.streams_from_disk or not plan.forecast.fits:
            return "", ""
        basis = self._basis
        rate = format_rate(basis.model.tok_s(read))
        if basis.kind != MODEL:
            rate = f"≈ {rate}"
        return rate, basis_text(basis)

    def _consider(self) -> None:
        if self._able and self._machine and self._unknown():
            self._quiet.start()
        else:
            self._quiet.stop()

    def _unknown(self) -> list[str]:
        """Devices to measure: those that models are placed on."""
        names = [RAM, *(gpu.name for gpu in self._planner.machine.gpus)]
        known = {*self._bandwidths.bytes_s, *self._tried}
        return [name for name in names if name not in known]

    def _measure_now(self) -> None:
        names, machine, measure, file = self._unknown(), self._machine, self._measure, self._file
        if not self._able or not names or not machine:
            return
        self._tried.update(names)

        def work(report: Callable[[object], None], cancelled: Callable[[], bool]) -> object:
            found = measure(names, cancelled)
            return file.write(machine, found) if found else None

        self._jobs.start(_LANE, work, self._measured, self._complain)

    def _measured(self, found: object) -> None:
        if isinstance(found, Bandwidths):
            self._bandwidths = found
            self.hardware_known.emit()

    def _complain(self, error: LauncherError) -> None:
        self._window.status.set_message(error.sentence, "warning")
