"""Remembers for each model whether, or how much, it shall think. GUI thread only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from moelauncher.core.program.window_state import StateFile
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.thinking_chip import ThinkingChip

_KEY = "thinking"


class ThinkingChoice(QObject):
    """Between the chip, the file of the window's state, and the template's variables."""

    def __init__(self, chip: ThinkingChip, state: StateFile, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chip = chip
        self._state = state
        self._path = ""
        self._own: Sequence[TemplateSwitch] = ()
        self._switch: TemplateSwitch | None = None
        chip.chosen.connect(self._remember)

    def set_model(self, path: Path | None, switches: Sequence[TemplateSwitch]) -> None:
        """The model that answers now; None: nobody, so there is nothing to switch."""
        self._path = str(path) if path is not None else ""
        self._own = switches
        self._show(switches)

    def set_stand_in(self, switches: Sequence[TemplateSwitch] | None) -> None:
        """What the template that stands in for the model's can switch; None: nothing stands in."""
        self._show(self._own if switches is None else switches)

    def _show(self, switches: Sequence[TemplateSwitch]) -> None:
        self._switch = switches[0] if switches else None
        value = self._switch.chosen(self._stored().get(self._path)) if self._switch else None
        self._chip.set_switch(self._switch, value)

    def values(self) -> dict[str, object]:
        """The template's variables as they are chosen."""
        if self._switch is None or self._chip.value is None:
            return {}
        return {self._switch.name: self._chip.value}

    def _remember(self, value: object) -> None:
        self._state.set(_KEY, {**self._stored(), self._path: value})

    def _stored(self) -> Mapping[str, object]:
        stored = self._state.get(_KEY)
        return stored if isinstance(stored, dict) else {}
