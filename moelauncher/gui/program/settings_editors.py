"""One editor a kind of setting, each with the same two methods. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, parse_size
from moelauncher.gui import theme as look
from moelauncher.gui.controls.check_box import TickBox
from moelauncher.gui.controls.combo_box import ChevronComboBox


class Editor(Protocol):
    """Shows a value and takes it back."""

    @property
    def widget(self) -> QWidget:
        """What the form holds."""

    def show(self, value: Any) -> None:
        """Show ``value``."""

    def value(self) -> Any:
        """What is there now. Raises LauncherError where it makes no sense."""


class FlagEditor:
    """Yes or no."""

    def __init__(self, text: str) -> None:
        self.box = TickBox(text)

    @property
    def widget(self) -> QWidget:
        """What the form holds."""
        return self.box

    def show(self, value: Any) -> None:
        """Show ``value``."""
        self.box.setChecked(bool(value))

    def value(self) -> bool:
        """What is there now."""
        return self.box.isChecked()


class ChoiceEditor:
    """One of several texts. One that is set but not among them is kept, and shown."""

    def __init__(self, choices: Sequence[tuple[str, str]]) -> None:
        """``choices``: value and what it is called."""
        self.combo = ChevronComboBox()
        for value, text in choices:
            self.combo.addItem(text, value)

    @property
    def widget(self) -> QWidget:
        """What the form holds."""
        return self.combo

    def show(self, value: Any) -> None:
        """Show ``value``."""
        at = self.combo.findData(value)
        if at < 0:
            self.combo.addItem(str(value), value)
            at = self.combo.count() - 1
        self.combo.setCurrentIndex(at)

    def value(self) -> Any:
        """What is there now."""
        return self.combo.currentData()


class NumberEditor:
    """A whole number; ``when_empty`` says what an empty field means, or None if it may not be."""

    def __init__(
        self, label: str, when_empty: str | None = None, empty_value: int | None = None
    ) -> None:
        """``empty_value``: the number that an empty field stands for."""
        self.field = QLineEdit()
        self._label = label
        self._may_be_empty = when_empty is not None
        self._empty_value = empty_value
        self.field.setPlaceholderText(when_empty or "")

    @property
    def widget(self) -> QWidget:
        """What the form holds."""
        return self.field

    def show(self, value: Any) -> None:
        """Show ``value``."""
        self.field.setText("" if value in (None, self._empty_value) else str(value))

    def value(self) -> int | None:
        """What is there now."""
        text = self.field.text().strip()
        if not text and self._may_be_empty:
            return self._empty_value
        try:
            return int(text)
        except ValueError:
            message = tr("{label}: “{text}” is no whole number.")
            raise LauncherError(message.format(label=self._label, text=text)) from None


class SizeEditor(NumberEditor):
    """An amount of memory, written as "4 GiB"."""

    def show(self, value: Any) -> None:
        """Show ``value``."""
        self.field.setText("" if value is None else format_bytes(value))

    def value(self) -> int | None:
        """What is there now."""
        text = self.field.text().strip()
        if not text and self._may_be_empty:
            return None
        return parse_size(text, smallest_bytes=0)


class NamesEditor:
    """Any of some names, each with a tick; all of them is the same as none in the file."""

    def __init__(self, names: Sequence[tuple[str, str]], nothing: str) -> None:
        """``names``: value and what it is called; ``nothing`` is said where there are none."""
        self._widget = QWidget()
        column = QVBoxLayout(self._widget)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(look.HALF)
        self._boxes = [(value, TickBox(text)) for value, text in names]
        for _, box in self._boxes:
            column.addWidget(box)
        if not self._boxes:
            empty = TickBox(nothing)
            empty.setEnabled(False)
            column.addWidget(empty)
        self._shown: tuple[str, ...] = ()

    @property
    def widget(self) -> QWidget:
        """What the form holds."""
        return self._widget

    def show(self, value: Any) -> None:
        """Show ``value``."""
        self._shown = tuple(value)
        wanted = {name.lower() for name in value}
        known = {name.lower() for name, _ in self._boxes}
        everything = not wanted & known
        for name, box in self._boxes:
            box.setChecked(everything or name.lower() in wanted)

    def value(self) -> tuple[str, ...]:
        """What is there now."""
        if not self._boxes:
            return self._shown
        chosen = tuple(name for name, box in self._boxes if box.isChecked())
        return () if len(chosen) == len(self._boxes) else chosen
