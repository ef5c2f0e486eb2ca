"""What the window says and offers of a load: doubts before it, then report, shortage, spill.

It owns the load's accounts and the report's dialog; the session tells it what happened, and
takes from it the one action that the status line offers. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject

from moelauncher.core.engine_protocol import LoadFailed, LoadReport
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.launch_plan import LaunchChoices, LaunchPlan
from moelauncher.core.memory.load_comparison import LoadComparison, largest_difference, report_text
from moelauncher.core.memory.memory_shortage import (
    MemoryShortage,
    next_that_fits,
    shortage_text,
)
from moelauncher.core.memory.spill import Spill
from moelauncher.core.units import format_bytes, format_tokens
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_accounts import LoadAccounts
from moelauncher.gui.memory.load_report import LoadReportDialog
from moelauncher.gui.memory.planner import Planner


class LoadOutcome(QObject):
    """Before a load that RAM cannot hold, and after a load, good or bad."""

    def __init__(
        self,
        window: MainWindow,
        planner: Planner,
        accounts: LoadAccounts,
        launch: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        """``launch`` loads the plan in view."""
        super().__init__(parent)
        self._window = window
        self._planner = planner
        self._launch = launch
        self.accounts = accounts
        self.build_text = ""
        self._loaded: tuple[ModelFacts, LaunchPlan, LoadReport] | None = None
        self._untold = False  # what is loaded was compared before its GPUs spoke of the weights
        self._doubted: tuple[Path, LaunchChoices] | None = None
        self._dialog: LoadReportDialog | None = None
        window.memory.report_requested.connect(self.show_report)
        accounts.compared.connect(self._compared)
        accounts.spilled.connect(self._spilled)

    # What should be said first

    def holds_back(self, facts: ModelFacts, plan: LaunchPlan) -> bool:
        """Whether a load of ``plan`` waits for a second word, since RAM cannot hold it.

        Said once for a plan: it is the user's machine, and the next press of Launch loads.
        """
        doubted = (facts.path, plan.choices)
        if plan.forecast.ram.fits or plan.forecast.streams_from_disk or self._doubted == doubted:
            self._doubted = None
            return False
        self._doubted = doubted
        ram = plan.forecast.ram
        text = self.tr(
            "{name} needs {needed} of RAM, and {free} is free: the system may end the program. "
            "Launch again to load it all the same."
        ).format(
            name=facts.name,
            needed=format_bytes(ram.used_bytes + ram.lent_bytes),
            free=format_bytes(ram.free_bytes),
        )
        if plan.forecast.mapping_would_help:
            mapped = replace(plan.choices, use_mmap=True)
            self._offer(text, "warning", self.tr("Map the file and load"), lambda: self._go(mapped))
        else:
            self._window.status.set_message(text, "warning")
        return True

    # What happened

    def loaded(self, facts: ModelFacts, plan: LaunchPlan, report: LoadReport, said: str) -> None:
        """A load ended well; ``said`` is the good news, shown where nothing is wrong."""
        self._loaded = (facts, plan, report)
        self._untold = not self._planner.is_told(facts, plan)
        comparison = self.accounts.ended(facts, plan, report, weights_told=not self._untold)
        status = self._window.status
        if report.mismatches:
            self._offer(report.mismatches[0], "warning", self.tr("Load report"), self.show_report)
        elif comparison.wrong:
            self._say_off(facts, comparison)
        else:
            status.set_message(said, "good")

    def failed(
        self, event: LoadFailed, facts: ModelFacts, plan: LaunchPlan
    ) -> Callable[[str], None]:
        """A load failed. Returns what says so, to be called once the window is at rest
        again with what became of the model that was loaded before ("" where none was)."""
        self.accounts.failed(facts, plan, event.shortage)
        shortage = event.shortage
        if shortage is None:
            return lambda after: self._window.status.set_message(
                f"{event.error.sentence} {after}".strip(), "error"
            )
        text = self.tr("{name} could not be loaded: {shortage}").format(
            name=facts.name, shortage=shortage_text(shortage, plan)
        )
        found = self._next(facts, plan, shortage)

        def say(after: str) -> None:
            whole = f"{text} {after}".strip()
            if found is None or self._planner.facts is not facts:
                hint = self.tr("Close other programs, or choose a smaller context or model.")
                self._window.status.set_message(f"{whole} {hint}" if not after else whole, "error")
            else:
                self._offer(whole, "error", self._offer_text(plan, found), lambda: self._go(found))

        return say

    def gone(self) -> None:
        """Nothing is loaded any more."""
        self._loaded = None
        self.accounts.gone()
        self._window.memory.set_report(None)
        if self._dialog is not None:
            self._dialog.close()

    def show_report(self) -> None:
        """Open the load report of what is loaded."""
        if self._loaded is None or self.accounts.comparison is None:
            return
        if self._dialog is None:
            self._dialog = LoadReportDialog(self._window)
        self._fill(self._dialog, self.accounts.comparison)
        self._dialog.show()
        self._dialog.raise_()

    def weights_told(self) -> None:
        """What was loaded before the GPUs had spoken of its weights is compared now."""
        if self._loaded is None or not self._untold:
            return
        facts, plan, report = self._loaded
        if not self._planner.is_told(facts, plan):
            return
        self._untold = False
        plan = self._planner.as_told(facts, plan)
        self._loaded = (facts, plan, report)
        comparison = self.accounts.told(plan)
        self._window.memory.set_loaded(plan.forecast, weights_mapped=plan.choices.use_mmap)
        self._window.memory.set_loaded(report, weights_mapped=plan.choices.use_mmap)
        if comparison is not None and comparison.wrong and not report.mismatches:
            self._say_off(facts, comparison)

    # Inside

    def _say_off(self, facts: ModelFacts, comparison: LoadComparison) -> None:
        text = self.tr(
            "{name} is loaded, but the forecast was off ({difference}): please report it."
        ).format(name=facts.name, difference=largest_difference(comparison.wrong))
        self._offer(text, "warning", self.tr("Load report"), self.show_report)

    def _compared(self, comparison: LoadComparison) -> None:
        self._window.memory.set_report(comparison)
        if self._dialog is not None and self._dialog.isVisible():
            self._fill(self._dialog, comparison)

    def _fill(self, dialog: LoadReportDialog, comparison: LoadComparison) -> None:
        assert self._loaded is not None
        facts, plan, report = self._loaded
        text = report_text(
            comparison,
            report,
            model=f"{facts.name}, {facts.arch}, {facts.quant}, {facts.size_bytes} bytes",
            build=self.build_text,
            choices=f"{plan.choices.cpu_moe} of {plan.slider.last} expert layers on the CPU"
            f" ({plan.choices.which}), {report.placement.n_gpu_layers} layers on the GPU,"
            f" split {report.placement.tensor_split}, mmap {plan.choices.use_mmap}",
        )
        dialog.set_comparison(comparison, text)

    def _spilled(self, spill: Spill) -> None:
        text = self.tr(
            "{size} of {device} moved into shared system memory: the model still answers, but "
            "many times slower. Keep more layers on the CPU, or shrink the context."
        ).format(size=format_bytes(spill.n_bytes), device=spill.device)
        found = None
        if self._loaded is not None and self._planner.facts is self._loaded[0]:
            facts, plan, _ = self._loaded
            found = self._next(facts, plan, MemoryShortage(spill.device, spill.n_bytes))
            if found is not None:
                offer = self._offer_text(plan, found)
                self._offer(text, "warning", offer, lambda: self._go(found))
        if found is None:
            self._window.status.set_message(text, "warning")

    def _next(
        self, facts: ModelFacts, plan: LaunchPlan, shortage: MemoryShortage
    ) -> LaunchChoices | None:
        return next_that_fits(facts, plan, self._planner.machine, shortage)

    def _offer_text(self, plan: LaunchPlan, found: LaunchChoices) -> str:
        wish = plan.choices
        parts = []
        if plan.slider.dense:
            if found.n_gpu_layers != wish.n_gpu_layers:
                parts.append(self.tr("{n} layers on the GPU").format(n=found.n_gpu_layers))
        elif found.cpu_moe != wish.cpu_moe:
            parts.append(self.tr("{n} layers on the CPU").format(n=found.cpu_moe))
        if found.context.n_ctx != wish.context.n_ctx:
            size = format_tokens(found.context.n_ctx)
            parts.append(self.tr("a context of {size}").format(size=size))
        return self.tr("Load with {what}").format(what=", ".join(parts))

    def _offer(self, text: str, level: str, offer: str, action: Callable[[], None]) -> None:
        self._window.status.set_message(text, level, offer, action)

    def _go(self, choices: LaunchChoices) -> None:
        self._planner.take(choices)
        self._launch()
