"""The Memory pane: verdict, gauge, legend, and a sentence about what to do or who says so."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from moelauncher.core.engine_protocol import LoadReport
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.memory.load_comparison import LoadComparison, largest_difference
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.units import MIB, format_bytes, format_gib
from moelauncher.gui.controls.elided_label import ElidedLabel
from moelauncher.gui.controls.pane import Pane, plain_label
from moelauncher.gui.controls.plain_tip import plain_tip
from moelauncher.gui.controls.steady_box import SteadyBox
from moelauncher.gui.memory.memory_bars import KINDS, Bar, bars_of, loaded_forecast
from moelauncher.gui.memory.memory_gauge import MemoryGauge
from moelauncher.gui.memory.memory_legend import LINE_HEIGHT, LegendEntry, MemoryLegend
from moelauncher.gui.theme import GRID, font, set_tone


class MemoryPane(Pane):
    """Where every byte goes, on every device.

    Signals:
        leave_free_changed: device name, bytes that the user wants to stay free there.
        report_requested: show the load report.
    """

    leave_free_changed = Signal(str, object)
    report_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        title = self.tr("Memory")
        self.title_label.setText(title)
        self.setAccessibleName(title)
        self._snapshot: MachineSnapshot | None = None
        self._forecast: MemoryForecast | None = None
        self._loaded: MemoryForecast | None = None
        self._weights_mapped = True
        self._imagined = False

        self.verdict = ElidedLabel()
        self.verdict.setObjectName("memoryVerdict")
        self.verdict.setAccessibleName(self.tr("Does it fit"))
        self.verdict.setFont(font("body", bold=True, figures=True))
        self.verdict.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.verdict.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.report = QPushButton(self.tr("Report"))
        self.report.setObjectName("loadReportButton")
        self.report.setAccessibleName(self.tr("Load report"))
        self.report.setProperty("kind", "link")
        self.report.setFont(font("small"))
        self.report.setAutoDefault(False)
        self.report.hide()
        self.report.clicked.connect(self.report_requested)
        self.title_row.addWidget(self.report)
        self.title_row.addWidget(self.verdict, 1)

        self.gauge = MemoryGauge()
        self.gauge.leave_free_changed.connect(self.leave_free_changed)
        self.legend = MemoryLegend()
        self.sentence = plain_label("", "muted")
        self.sentence.setWordWrap(True)
        small = font("small", figures=True)
        self.sentence.setFont(small)
        self.sentence.setObjectName("memorySentence")
        self.sentence.setAccessibleName(self.tr("About the memory"))
        # Room for what most models need: three rows of legend, two lines of text.
        self._words_height = 3 * LINE_HEIGHT + 2 * QFontMetrics(small).lineSpacing() + 2 * GRID
        self._content = SteadyBox(self._words_height)
        self._content.column.setSpacing(GRID)
        self._content.column.addWidget(self.gauge)
        self._content.column.addWidget(self.legend)
        self._content.column.addWidget(self.sentence)
        self.body.addWidget(self._content)
        self._refresh()

    def set_forecast(self, forecast: MemoryForecast | None) -> None:
        """What the settings in view would take; None while no model is selected."""
        if forecast != self._forecast:
            self._forecast = forecast
            self._refresh()

    def set_snapshot(self, snapshot: MachineSnapshot) -> None:
        """What the meters say now."""
        self._snapshot = snapshot
        self._refresh()

    def set_loaded(
        self, loaded: MemoryForecast | LoadReport | None, weights_mapped: bool = True
    ) -> None:
        """What is in memory now: the forecast it was loaded by, or llama.cpp's own report.

        A report refines the forecast in view (it must be the one that was loaded).
        """
        if isinstance(loaded, LoadReport):
            plan = self._loaded or self._forecast
            loaded = loaded_forecast(loaded, plan) if plan else None
        self._loaded = loaded
        self._weights_mapped = weights_mapped
        self._refresh()

    def set_report(self, comparison: LoadComparison | None) -> None:
        """How the load that is in memory compares with its forecast; None: nothing is loaded."""
        self.report.setVisible(comparison is not None)
        if comparison is None:
            return
        off = largest_difference(comparison.wrong)
        self.report.setToolTip(
            self.tr("The forecast was off: {difference}").format(difference=off)
            if off
            else self.tr("llama.cpp allocated what was planned.")
        )

    def _refresh(self) -> None:
        bars = bars_of(self._snapshot, self._forecast, self._loaded, self._weights_mapped)
        self.gauge.set_bars(bars)
        self._content.reserve(self.gauge.sizeHint().height() + self._words_height)
        self.legend.set_entries(self._legend(bars))
        self._say()

    def _legend(self, bars: tuple[Bar, ...]) -> tuple[LegendEntry, ...]:
        entries = []
        for kind in ("others", *KINDS):
            gpu, ram = _sums(bars, kind)
            if gpu or ram:
                # Others are measured and move all the time: their numbers stand in the tooltip.
                figures = "" if kind == "others" else _pair(gpu, ram)
                entries.append(self._entry(kind, figures))
        over = sum(bar.over_bytes for bar in bars)
        if over:
            entries.append(self._entry("over", format_bytes(over)))
        return tuple(entries)

    def _entry(self, kind: str, figures: str) -> LegendEntry:
        texts = self.gauge.texts
        text = f"{texts.kind_name(kind)} {figures}".strip()
        return LegendEntry(kind, text, texts.kind_lesson(kind))

    def _say(self) -> None:
        forecast = self._forecast or self._loaded
        self._imagined = any(bar.imagined for bar in self.gauge.bars)
        if forecast is None:
            self.verdict.set_text("")
            self.sentence.setText(self._idle_sentence())
            return
        streams = forecast.streams_from_disk and all(gpu.fits for gpu in forecast.gpus)
        set_tone(self.verdict, "warn" if streams else "good" if forecast.fits else "bad")
        whole = forecast.text
        room = self.verdict.width() or 240
        if self.verdict.fontMetrics().horizontalAdvance(whole) <= room:
            # Beside the title it is a heading, and headings end without a full stop.
            self.verdict.set_text(whole.removesuffix("."))
            self.sentence.setText(self._source_sentence(forecast))
        else:
            self.verdict.set_text(self._short_verdict(forecast), whole)
            # That no GPU is in use is the news there; how much RAM is left stands in the tooltip.
            told = self._imagined and forecast.ram.fits
            self.sentence.setText(self._source_sentence(forecast) if told else whole)
        self.sentence.setToolTip(plain_tip(self.sentence.text()))

    def _idle_sentence(self) -> str:
        if self._snapshot is None:
            return self.tr("Select a model to see where its bytes would go.")
        if not self._snapshot.gpus and self._snapshot.gpu_note:
            return self._snapshot.gpu_note
        return self.tr("In use now. Select a model to see where its bytes would go.")

    def _short_verdict(self, forecast: MemoryForecast) -> str:
        spare = forecast.spare_bytes
        gpus_fit = all(gpu.fits for gpu in forecast.gpus)
        if forecast.streams_from_disk and gpus_fit:
            return self.tr("Streams from disk")
        if not forecast.fits:
            worst = min(
                (d.spare_bytes for d in forecast.devices if d.spare_bytes is not None), default=0
            )
            if worst < 0:
                return self.tr("{size} over").format(size=format_bytes(-worst))
            return self.tr("Does not fit")
        if self._imagined:
            return self.tr("Fits in RAM")
        if spare is None:
            return self.tr("Fits")
        return self.tr("Fits, {size} to spare").format(size=format_bytes(spare))

    def _source_sentence(self, forecast: MemoryForecast) -> str:
        if self._imagined:
            return self._no_gpu_sentence()
        if forecast.note:
            return forecast.note
        if self._loaded is not None and _is_loaded(self.gauge.bars):
            return self.tr("Loaded: sizes as llama.cpp allocated them.")
        if forecast.compute_source == "dry-run":
            return self.tr("KV and compute sizes come from llama.cpp's own dry run.")
        return self.tr("KV and compute sizes are estimates until llama.cpp has been asked.")

    def _no_gpu_sentence(self) -> str:
        note = self._snapshot.gpu_note if self._snapshot is not None else ""
        whole = self.tr("The upper bar only shows what a GPU would hold.")
        return f"{note} {whole}".strip()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._say()


def _is_loaded(bars: tuple[Bar, ...]) -> bool:
    """Whether the plan in view is what is in memory, to the last few MiB."""
    return all(
        abs(segment.now_bytes - segment.then_bytes) < 4 * MIB
        for bar in bars
        if not bar.imagined
        for segment in bar.segments
    )


def _sums(bars: tuple[Bar, ...], kind: str) -> tuple[int, int]:
    gpu = ram = 0
    for bar in bars:
        if bar.imagined:
            continue
        for segment in bar.segments:
            if segment.kind == kind and bar.is_gpu:
                gpu += segment.then_bytes
            elif segment.kind == kind:
                ram += segment.then_bytes
    return gpu, ram


def _pair(gpu_bytes: int, ram_bytes: int) -> str:
    """ "5.5 + 10.5": on the GPUs, and in main memory where it counts there."""
    worth = (1 << 30) * 0.005
    if gpu_bytes < worth:
        return format_gib(ram_bytes)
    return (
        format_gib(gpu_bytes)
        if ram_bytes < worth
        else f"{format_gib(gpu_bytes)} + {format_gib(ram_bytes)}"
    )
