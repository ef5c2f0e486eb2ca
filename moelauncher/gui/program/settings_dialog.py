"""The program's settings: declared in ``core/program/settings``, grouped here. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QFrame,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.errors import LauncherError
from moelauncher.core.machine import BackendDevice
from moelauncher.core.program import settings as keys
from moelauncher.core.program.doctor_facts import BuildState
from moelauncher.core.program.setting import Setting
from moelauncher.core.program.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.controls.ok_cancel import ok_cancel
from moelauncher.gui.controls.pane import plain_label, rule
from moelauncher.gui.program.settings_editors import (
    ChoiceEditor,
    Editor,
    FlagEditor,
    NamesEditor,
    NumberEditor,
    SizeEditor,
)

#: These are read once, when llama.cpp is loaded.
_AT_NEXT_START = (keys.BACKENDS.name, keys.CPU_VARIANT.name)


LABEL_WIDTH = 168
#: GPU interfaces as their makers write them.
_NAMES = {"vulkan": "Vulkan", "cuda": "CUDA", "hip": "ROCm (HIP)", "sycl": "SYCL"}


class SettingsDialog(QDialog):
    """After it was accepted the settings are changed and saved; ``changed`` names those."""

    def __init__(
        self,
        settings: Settings,
        devices: Sequence[BackendDevice],
        build: BuildState,
        parent: QWidget | None = None,
    ) -> None:
        """``devices`` and ``build``: what can be chosen here; empty where it is not known yet."""
        super().__init__(parent)
        self.setObjectName("settingsDialog")
        self.setWindowTitle(self.tr("Settings"))
        self.resize(600, 712)
        self.changed: frozenset[str] = frozenset()
        self._settings = settings
        self.editors: dict[str, Editor] = {}
        self._declared: dict[str, Setting[Any]] = {}
        content = QWidget()
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, look.GRID, 0)
        self._column.setSpacing(look.GRID)
        self._add_machine(devices, build)
        self._add_memory()
        self._add_rest()
        self._column.addStretch(1)
        scroll = QScrollArea(self)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        self.problem = plain_label("", "bad", self)
        self.problem.setObjectName("settingsProblem")
        self.problem.setWordWrap(True)
        self.problem.hide()
        buttons = ok_cancel(self)
        column = QVBoxLayout(self)
        margin = look.PANE_MARGIN
        # The scroll bar stands in the margin, so that fields and buttons end alike.
        column.setContentsMargins(margin, margin, margin - look.GRID, margin)
        buttons.setContentsMargins(0, 0, look.GRID, 0)
        column.setSpacing(look.GRID)
        column.addWidget(scroll, 1)
        column.addWidget(self.problem)
        column.addWidget(buttons)

    @property
    def needs_restart(self) -> bool:
        """Whether something was changed that holds from the next start on."""
        return any(name in self.changed for name in _AT_NEXT_START)

    def accept(self) -> None:
        """Change and save what is another now, or say what is wrong with it."""
        changed = set()
        try:
            for name, editor in self.editors.items():
                setting, value = self._declared[name], editor.value()
                if value != self._settings.get(setting):
                    self._settings.set(setting, value)
                    changed.add(name)
            if changed:
                self._settings.save()
        except LauncherError as error:
            self.problem.setText(error.sentence)
            self.problem.show()
            return
        self.changed = frozenset(changed)
        super().accept()

    # Parts

    def _add_machine(self, devices: Sequence[BackendDevice], build: BuildState) -> None:
        form = self._group(self.tr("Graphics card and processor"))
        modules = [(name, _NAMES.get(name, name)) for name in build.gpu_modules_found]
        backends = [("auto", self.tr("All that work here")), *modules]
        backends.append(("none", self.tr("None: the processor alone")))
        self._add(form, keys.BACKENDS, ChoiceEditor(backends))
        gpus = [
            (one.name, f"{one.description} ({one.name})")
            for one in devices
            if one.kind in ("gpu", "igpu")
        ]
        nothing = self.tr("llama.cpp finds no GPU here")
        self._add(form, keys.GPU_DEVICES, NamesEditor(gpus, nothing))
        variants = [(name, name) for name in build.cpu_variants]
        best = build.cpu_variants[0] if build.cpu_variants else ""
        usual = self.tr("The best one ({name})").format(name=best) if best else self.tr("The best")
        self._add(form, keys.CPU_VARIANT, ChoiceEditor([("auto", usual), *variants]))
        usual = self.tr("one less than the processor has cores")
        self._add(form, keys.N_THREADS, NumberEditor(tr(keys.N_THREADS.label), usual))

    def _add_memory(self) -> None:
        form = self._group(self.tr("Memory"))
        usual = self.tr("512 MiB with a display, else 256 MiB")
        self._add(form, keys.LEAVE_FREE_BYTES, SizeEditor(tr(keys.LEAVE_FREE_BYTES.label), usual))
        idle = NumberEditor(tr(keys.IDLE_UNLOAD_MINUTES.label), self.tr("never"), 0)
        self._add(form, keys.IDLE_UNLOAD_MINUTES, idle, self.tr("Minutes without a message."))
        self._add(form, keys.USE_MMAP, FlagEditor(tr(keys.USE_MMAP.label)))

    def _add_rest(self) -> None:
        form = self._group(self.tr("Models and chats"))
        self._add(form, keys.HF_CACHE, FlagEditor(tr(keys.HF_CACHE.label)))
        self._add(form, keys.KEPT_STATES_BYTES, SizeEditor(tr(keys.KEPT_STATES_BYTES.label)))
        form = self._group(self.tr("Window"))
        themes = [
            ("system", self.tr("As the system")),
            ("dark", self.tr("Dark")),
            ("light", self.tr("Light")),
        ]
        self._add(form, keys.THEME, ChoiceEditor(themes))

    def _group(self, title: str) -> QFormLayout:
        if self._column.count():
            self._column.addSpacing(look.HALF)
            self._column.addWidget(rule(self))
            self._column.addSpacing(look.HALF)
        heading = plain_label(title, "muted", self)
        heading.setFont(look.section_font())
        form = QFormLayout()
        form.setHorizontalSpacing(look.PANE_MARGIN)
        form.setVerticalSpacing(look.GRID)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self._column.addWidget(heading)
        self._column.addLayout(form)
        return form

    def _add(
        self, form: QFormLayout, setting: Setting[Any], editor: Editor, note: str = ""
    ) -> None:
        editor.show(self._settings.get(setting))
        widget = editor.widget
        widget.setObjectName(f"setting-{setting.name}")
        widget.setToolTip(tr(setting.help))
        widget.setAccessibleName(tr(setting.label))
        widget.setAccessibleDescription(tr(setting.help))
        # A tick box says itself what it is for.
        label = "" if isinstance(editor, FlagEditor) else tr(setting.label)
        name = plain_label(label, "muted", self)
        # One width for all groups, so that their fields stand under each other.
        name.setFixedWidth(LABEL_WIDTH)
        name.setToolTip(tr(setting.help))
        name.setMinimumHeight(min(look.CONTROL_HEIGHT, widget.sizeHint().height()))
        form.addRow(name, widget)
        text = note
        if setting.name in _AT_NEXT_START:
            text = self.tr("Takes effect at the next start.")
        if text:
            line = plain_label(text, "muted", self)
            line.setFont(look.font("small"))
            form.addRow("", line)
        self.editors[setting.name] = editor
        self._declared[setting.name] = setting
