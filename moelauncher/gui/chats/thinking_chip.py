"""The switch beside Send: whether, or how much, the model thinks before it answers.

It is there only where the model's template has such a switch. GUI thread only.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from moelauncher.core.template_switch import TemplateSwitch


class ThinkingChip(QPushButton):
    """One press turns thinking on or off; efforts are chosen from a menu.

    Signals:
        chosen(object): the user chose this value of the switch.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("thinkingButton")
        self.setProperty("kind", "chip")
        self._switch: TemplateSwitch | None = None
        self._value: bool | str | None = None
        self.clicked.connect(self._pressed)
        self.hide()

    @property
    def value(self) -> bool | str | None:
        """What is chosen; None: as the template does by itself."""
        return self._value

    def set_switch(self, switch: TemplateSwitch | None, value: bool | str | None) -> None:
        """Offer ``switch`` at ``value``; None hides the chip."""
        self._switch, self._value = switch, value
        self.setCheckable(switch is not None and self._on_off(switch))
        self._refresh()
        self.setVisible(switch is not None)

    def label_of(self, value: object) -> str:
        """What an effort is called."""
        return {
            "none": self.tr("none"),
            "minimal": self.tr("minimal"),
            "low": self.tr("low"),
            "medium": self.tr("medium"),
            "high": self.tr("high"),
            "max": self.tr("max"),
        }.get(str(value), str(value))

    def fill_menu(self, menu: QMenu) -> None:
        """The efforts, the present one marked."""
        if self._switch is None:
            return
        for value in self._switch.values:
            action = menu.addAction(self.label_of(value), partial(self._choose, value))
            action.setCheckable(True)
            action.setChecked(value == self._value)

    def _on_off(self, switch: TemplateSwitch) -> bool:
        return isinstance(switch.values[0], bool)

    def _pressed(self) -> None:
        if self._switch is None:
            return
        if self._on_off(self._switch):
            self._choose(self._value is not True)
            return
        menu = QMenu(self)
        self.fill_menu(menu)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _choose(self, value: bool | str) -> None:
        self._value = value
        self._refresh()
        self.chosen.emit(value)

    def _refresh(self) -> None:
        if self._switch is None:
            return
        if self._on_off(self._switch):
            on = self._value is True
            self.setChecked(on)
            self.setText(self.tr("Thinking on") if on else self.tr("Thinking off"))
            tip = self.tr("Whether the model thinks before it answers; kept for this model.")
        else:
            word = self.label_of(self._value) if self._value is not None else self.tr("usual")
            self.setText(self.tr("Thinking: {effort}").format(effort=word))
            tip = self.tr("How much the model thinks before it answers; kept for this model.")
        self.setToolTip(tip)
        self.setAccessibleName(self.text())
