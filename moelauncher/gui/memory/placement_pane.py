"""The Placement pane: how many expert layers stay in RAM, how large the context is, Launch.

In: values by methods. Out: what the user wants, as signals. It decides nothing: which stops
there are and what they mean comes from the core.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.placement import Placement
from moelauncher.core.program import settings
from moelauncher.core.session_state import Controls, LaunchAction
from moelauncher.core.translate import tr
from moelauncher.gui.controls.check_box import TickBox
from moelauncher.gui.controls.combo_box import ChevronComboBox
from moelauncher.gui.controls.pane import add_shortcut, plain_label
from moelauncher.gui.controls.progress_line import ProgressLine
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.memory.context_combo import ContextCombo
from moelauncher.gui.memory.layer_strip import LayerStrip
from moelauncher.gui.memory.more_options import FIELD_MINIMUM, MoreOptions
from moelauncher.gui.memory.number_line import NumberLine
from moelauncher.gui.memory.placement_values import PlacementValues
from moelauncher.gui.theme import GRID, HALF, PANE_MARGIN, font, repolish


class PlacementPane(QWidget):
    """Slider, layer strip, context, and the one large button.

    Signals:
        stop_changed: expert layers on the CPU, while the user drags or types.
        gpu_layers_changed: layers on the GPU, for models without movable experts.
        options_changed: context, KV type or one of More changed; see :meth:`values`.
        auto_requested: place for me.
        launch_requested: Launch or Apply.
        launch_done: the large button had the keyboard and has nothing more to do.
        cancel_requested, unload_requested: as they say.
        live_toggled(bool): changes apply by themselves (now).
    """

    stop_changed = Signal(int)
    gpu_layers_changed = Signal(int)
    options_changed = Signal()
    auto_requested = Signal()
    launch_requested = Signal()
    launch_done = Signal()
    cancel_requested = Signal()
    unload_requested = Signal()
    live_toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Placement"))
        self._action = LaunchAction.LAUNCH
        self._auto = False
        self._hint_n_ctx: int | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, GRID, PANE_MARGIN, GRID)
        column.setSpacing(GRID)
        self._make_slider(column)
        self._make_choices(column)
        self._make_options(column)
        self._make_launch(column)
        self.set_slider(0, 0, "", False, self.tr("Select a model to place its layers."))
        self.set_progress("", None)

    # Building

    def _make_slider(self, pane: QVBoxLayout) -> None:
        # Slider, strip and sentence say one thing and stand close together.
        column = QVBoxLayout()
        column.setSpacing(HALF)
        pane.addLayout(column)
        self._experts = NumberLine(
            self.tr("Expert layers on the CPU"),
            self.tr(
                "Such a model has many small networks (experts) in each layer, and a token uses "
                "only a few of them: so the processor may compute some layers' experts from RAM. "
                "Further to the right: less VRAM is needed, and answers come slower."
            ),
            "expertSlider",
            "expertSpin",
        )
        self._gpu_layers = NumberLine(
            self.tr("Layers on the GPU"),
            self.tr("The other layers are computed by the processor, from RAM."),
            "gpuLayersSlider",
            "gpuLayersSpin",
        )
        self._lines = QStackedWidget()
        self._lines.addWidget(self._experts)
        self._lines.addWidget(self._gpu_layers)
        column.addWidget(self._lines)
        self.slider, self.spin = self._experts.slider, self._experts.spin
        self._experts.moved.connect(self._stop_moved)
        self._gpu_layers.moved.connect(self.gpu_layers_changed)
        self.strip = LayerStrip()
        self.strip.stop_requested.connect(self.slider.setValue)
        column.addWidget(self.strip)
        self.sentence = SteadyLabel(2, font("small", figures=True), "muted")
        self.sentence.setObjectName("placementSentence")
        self.sentence.setAccessibleName(self.tr("What the placement means"))
        column.addWidget(self.sentence)

    def _make_choices(self, column: QVBoxLayout) -> None:
        row = QHBoxLayout()
        row.setSpacing(GRID)
        self.all_gpu = self._chip(self.tr("All on GPU"), "allOnGpuButton")
        self.auto = self._chip(self.tr("Auto"), "autoButton")
        self.all_cpu = self._chip(self.tr("All on CPU"), "allOnCpuButton")
        self.all_gpu.setToolTip(self.tr("Every layer on the GPU, whether it fits or not"))
        self.auto.setToolTip(self.tr("As many layers on the GPU as fit"))
        self.all_cpu.setToolTip(self.tr("As little on the GPU as possible"))
        self.all_gpu.clicked.connect(lambda: self._go_to_end(on_gpu=True))
        self.all_cpu.clicked.connect(lambda: self._go_to_end(on_gpu=False))
        self.auto.clicked.connect(self._auto_clicked)
        for button in (self.all_gpu, self.auto, self.all_cpu):
            row.addWidget(button)
        row.addStretch(1)
        self._live = TickBox(self.tr("Apply live"))
        self._live.setObjectName("liveSwitch")
        self._live.setAccessibleName(self.tr("Apply changes by themselves"))
        self._live.setToolTip(
            self.tr(
                "While a model is loaded, a change applies by itself shortly after you let go; "
                "the chat goes on."
            )
        )
        self._live.toggled.connect(self.live_toggled)
        row.addWidget(self._live)
        column.addLayout(row)
        for widget, key in (
            (self._live, "V"),
            (self.spin, "E"),
            (self.all_gpu, "G"),
            (self.auto, "A"),
            (self.all_cpu, "C"),
        ):
            add_shortcut(widget, key)

    def _chip(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.setProperty("kind", "chip")
        button.setCheckable(True)
        button.setAutoDefault(False)
        return button

    def _make_options(self, column: QVBoxLayout) -> None:
        row = QHBoxLayout()
        row.setSpacing(GRID)
        self.context = ContextCombo()
        context_label = plain_label(self.tr("Context"), "muted")
        self.kv = ChevronComboBox()
        self.kv.setObjectName("kvCombo")
        self.kv.setAccessibleName(self.tr("KV cache type"))
        self.kv.setToolTip(tr(settings.KV_TYPE.help))
        self.kv.addItems(list(settings.KV_TYPES))
        self.kv.setMinimumWidth(FIELD_MINIMUM)
        self.context.setMinimumWidth(FIELD_MINIMUM)
        kv_label = plain_label(self.tr("KV"), "muted")
        self.more_button = QPushButton(self.tr("More"))
        self.more_button.setObjectName("moreButton")
        self.more_button.setCheckable(True)
        self.more_button.setAutoDefault(False)
        row.addWidget(context_label)
        row.addWidget(self.context, 1)
        row.addWidget(kv_label)
        row.addWidget(self.kv)
        row.addWidget(self.more_button)
        column.addLayout(row)
        self.more = MoreOptions()
        self.more.hide()
        column.addWidget(self.more)
        self.more_button.setToolTip(self.tr("Threads, prompt batch and how the file is read"))
        for widget, key in ((self.context, "X"), (self.kv, "K"), (self.more_button, "M")):
            add_shortcut(widget, key)
        for label, field in ((context_label, self.context), (kv_label, self.kv)):
            label.setToolTip(field.toolTip())
        self.more_button.toggled.connect(self.more.setVisible)
        self.context.size_changed.connect(lambda _: self.options_changed.emit())
        self.kv.activated.connect(lambda _: self.options_changed.emit())
        self.more.changed.connect(self.options_changed)

    def _make_launch(self, column: QVBoxLayout) -> None:
        row = QHBoxLayout()
        row.setSpacing(GRID)
        self.launch = QPushButton()
        self.launch.setObjectName("launchButton")
        self.launch.setProperty("kind", "primary")
        self.launch.setEnabled(False)
        self.unload = QPushButton(self.tr("Unload"))
        self.unload.setObjectName("unloadButton")
        self.unload.setToolTip(self.tr("Take the model out of memory"))
        self.unload.setEnabled(False)
        add_shortcut(self.unload, "U")
        for button in (self.launch, self.unload):
            button.setAutoDefault(False)
        row.addWidget(self.launch, 1)
        row.addWidget(self.unload)
        foot = QVBoxLayout()
        foot.setSpacing(HALF)
        foot.addLayout(row)
        column.addLayout(foot)
        # Progress and the context hint share one line: never both have something to say.
        self.progress = ProgressLine()
        self.hint = QPushButton()
        self.hint.setObjectName("contextHint")
        self.hint.setProperty("kind", "link")
        self.hint.setFont(font("small", figures=True))
        self.hint.setAutoDefault(False)
        self._footer = QStackedWidget()
        self._footer.addWidget(self.progress)
        self._footer.addWidget(self.hint)
        self._footer.setFixedHeight(self.progress.sizeHint().height())
        foot.addWidget(self._footer)
        self.launch.clicked.connect(self._launch_clicked)
        self.unload.clicked.connect(self.unload_requested)
        self.hint.clicked.connect(self._take_hint)
        shortcut = QShortcut(QKeySequence(self.tr("Ctrl+L")), self)
        shortcut.activated.connect(self.launch.click)
        self._name_launch()

    # Values in

    def set_slider(
        self,
        stops: int,
        value: int,
        sentence: str,
        enabled: bool,
        reason: str = "",
        fits: Sequence[bool | None] = (),
    ) -> None:
        """Stops 0..``stops``, where the slider stands and what that means.

        ``reason`` says why the slider is off. ``fits`` tells of each stop whether it fits.
        """
        self._experts.set_line(stops, value, enabled)
        self._experts.slider.set_fits(fits)
        self._experts.setToolTip(reason)
        self.sentence.set_text(sentence if enabled or not reason else reason)
        self._show_choices()

    def set_gpu_layers(self, layers: int | None, value: int = 0, sentence: str = "") -> None:
        """For a model without movable experts: 0..``layers`` on the GPU. None: the slider again."""
        if layers is None:
            self._lines.setCurrentWidget(self._experts)
        else:
            self._gpu_layers.set_line(layers, value, layers > 0)
            self._gpu_layers.setToolTip(self._experts.toolTip())
            self._lines.setCurrentWidget(self._gpu_layers)
            if sentence:
                self.sentence.set_text(sentence)
        self._show_choices()

    def set_layers(self, facts: ModelFacts | None, placement: Placement | None) -> None:
        """The layer strip's model and placement."""
        self.strip.set_layers(facts, placement)
        self.context.set_maximum(facts.ctx_train if facts else None)

    def set_auto(self, active: bool) -> None:
        """Whether the placement in view is the program's own choice."""
        self._auto = active
        self._show_choices()

    def set_context_hint(self, text: str, n_ctx: int | None = None) -> None:
        """A line under Launch ("largest that fits: 48k"); a click takes ``n_ctx``."""
        self._hint_n_ctx = n_ctx
        self.hint.setText(text.replace("&", "&&"))
        self.hint.setEnabled(n_ctx is not None)
        self._show_footer()

    def set_controls(self, controls: Controls, launch_text: str = "", why_not: str = "") -> None:
        """Which buttons work. ``launch_text`` replaces the large button's own name
        ("Apply (3 s, chat goes on)"); ``why_not`` is the sentence for ``controls.why_not``."""
        self._action = controls.launch_action
        self._name_launch(launch_text)
        done = not controls.launch_enabled and self.window().focusWidget() is self.launch
        self.launch.setEnabled(controls.launch_enabled)
        if done:
            # Qt would hand the keyboard to the next button, and a typed space would press that.
            self.launch_done.emit()
        shortcut = QKeySequence(self.tr("Ctrl+L")).toString(QKeySequence.SequenceFormat.NativeText)
        self.launch.setToolTip(why_not or f"{self.launch.accessibleName()} ({shortcut})")
        self.unload.setEnabled(controls.unload_enabled)

    def set_progress(self, text: str, fraction: float | None) -> None:
        """How far the load is: "reading 12.1 of 20.6 GiB · 1.4 GiB/s · 6 s left". Empty: done."""
        self.progress.set_progress(text, fraction)
        self._show_footer()

    def set_values(self, values: PlacementValues) -> None:
        """Show these choices without telling anybody."""
        for line, value in (
            (self._experts, values.stop),
            (self._gpu_layers, values.n_gpu_layers or 0),
        ):
            line.set_line(line.slider.maximum(), value, line.slider.isEnabled())
        self.context.set_size(values.n_ctx)
        self.kv.setCurrentText(values.kv_type)
        self.more.set_values(values.n_threads, values.n_ubatch, values.use_mmap, values.which)
        self._show_choices()

    def set_live(self, on: bool) -> None:
        """Whether changes apply by themselves."""
        self._live.setChecked(on)

    # Values out

    @property
    def live(self) -> bool:
        """Whether changes apply by themselves."""
        return self._live.isChecked()

    def values(self) -> PlacementValues:
        """What the pane is set to."""
        dense = self._lines.currentWidget() is self._gpu_layers
        return PlacementValues(
            stop=self.slider.value(),
            n_gpu_layers=self._gpu_layers.slider.value() if dense else None,
            n_ctx=self.context.size_tokens,
            kv_type=self.kv.currentText(),
            n_threads=self.more.threads.value() or None,
            n_ubatch=self.more.ubatch.currentData(),
            use_mmap=self.more.mmap.isChecked(),
            which=self.more.which.currentData(),
        )

    # Inside

    def _line(self) -> NumberLine:
        return self._gpu_layers if self._lines.currentIndex() else self._experts

    def _stop_moved(self, stop: int) -> None:
        self._auto = False
        self._show_choices()
        self.stop_changed.emit(stop)

    def _go_to_end(self, on_gpu: bool) -> None:
        line = self._line()
        self._auto = False
        low = on_gpu == (line is self._experts)
        line.slider.setValue(0 if low else line.slider.maximum())
        self._show_choices()

    def _auto_clicked(self) -> None:
        self._auto = True
        self._show_choices()
        self.auto_requested.emit()

    def _show_choices(self) -> None:
        line = self._line()
        able = line.slider.isEnabled() and line.slider.maximum() > 0
        value, last = line.slider.value(), line.slider.maximum()
        gpu_end, cpu_end = (0, last) if line is self._experts else (last, 0)
        for button, here in (
            (self.all_gpu, value == gpu_end and not self._auto),
            (self.auto, self._auto),
            (self.all_cpu, value == cpu_end and not self._auto),
        ):
            button.setChecked(able and here)
            button.setEnabled(able)

    def _name_launch(self, text: str = "") -> None:
        own = {
            LaunchAction.LAUNCH: self.tr("Launch"),
            LaunchAction.APPLY: self.tr("Apply"),
            LaunchAction.CANCEL: self.tr("Cancel"),
        }[self._action]
        self.launch.setText(text.replace("&", "&&") or own)
        self.launch.setAccessibleName(text or own)
        kind = "cancel" if self._action is LaunchAction.CANCEL else "primary"
        if self.launch.property("kind") != kind:
            repolish(self.launch, "kind", kind)

    def _launch_clicked(self) -> None:
        if self._action is LaunchAction.CANCEL:
            self.cancel_requested.emit()
        else:
            self.launch_requested.emit()

    def _show_footer(self) -> None:
        hint = bool(self.hint.text()) and not self.progress.text
        self._footer.setCurrentWidget(self.hint if hint else self.progress)

    def _take_hint(self) -> None:
        if self._hint_n_ctx is not None and self._hint_n_ctx != self.context.size_tokens:
            self.context.set_size(self._hint_n_ctx)
            self.options_changed.emit()
