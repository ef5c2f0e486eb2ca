"""The chip beside Send that names how tokens are drawn, and the menu to change it. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy, QWidget

from moelauncher.core.chats.sampling_presets import Preset
from moelauncher.core.text_cleaning import display_name

#: At least so wide; a longer name is cut where room is scarce, at most so wide where it is not.
_LEAST_PX, _MOST_PX = 84, 200


class PresetChip(QPushButton):
    """Says the preset of the chat.

    Signals:
        chosen(object): the user chose this preset; None: as usual.
        settings_requested(): the user wants to set numbers.
    """

    chosen = Signal(object)
    settings_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("presetButton")
        self.setProperty("kind", "chip")
        self.setToolTip(
            self.tr("How the model draws its words, in this chat; kept for this model.")
        )
        self._presets: tuple[Preset, ...] = ()
        self._key: str | None = ""
        self._whole = ""
        self.clicked.connect(self._pressed)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.set_presets((), self.tr("usual"), "")

    def set_presets(self, presets: Sequence[Preset], label: str, key: str | None) -> None:
        """What there is to choose, and what the chat has: "" as usual, None own numbers."""
        self._presets, self._key = tuple(presets), key
        self._whole = self.tr("Preset: {name}").format(name=display_name(label))
        self.setAccessibleName(self._whole)
        self.updateGeometry()
        self._fit()

    def fill_menu(self, menu: QMenu) -> None:
        """All presets, the present one marked."""
        menu.setToolTipsVisible(True)
        usual = menu.addAction(self.tr("usual"), partial(self.chosen.emit, None))
        usual.setToolTip(self.tr("The numbers of the program's settings"))
        usual.setCheckable(True)
        usual.setChecked(self._key == "")
        for preset in self._presets:
            name = display_name(preset.label).replace("&", "&&")
            action = menu.addAction(name, partial(self.chosen.emit, preset))
            action.setCheckable(True)
            action.setChecked(preset.key == self._key)
            action.setToolTip(self._numbers(preset))
        menu.addSeparator()
        menu.addAction(self.tr("Own numbers…"), self.settings_requested.emit)

    def _numbers(self, preset: Preset) -> str:
        names = {
            "temperature": self.tr("Temperature"),
            "top_k": self.tr("Top-k"),
            "top_p": self.tr("Top-p"),
            "min_p": self.tr("Min-p"),
            "repeat_penalty": self.tr("Repeat penalty"),
        }
        told = [f"{names[name]} {value}" for name, value in preset.values.items() if name in names]
        return " · ".join(told)

    def _pressed(self) -> None:
        menu = QMenu(self)
        self.fill_menu(menu)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _around_px(self) -> int:
        """What the style puts beside the text."""
        return super().sizeHint().width() - self.fontMetrics().horizontalAdvance(self._plain())

    def _plain(self) -> str:
        return self.text().replace("&&", "&")

    def _fit(self) -> None:
        room = max(self.width(), _LEAST_PX) - self._around_px()
        text = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        # An ampersand in a user's name is no keyboard mark.
        self.setText(text.replace("&", "&&"))

    # Qt's own

    def sizeHint(self) -> QSize:
        wide = self.fontMetrics().horizontalAdvance(self._whole) + self._around_px() + 2
        return QSize(min(wide, _MOST_PX), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(_LEAST_PX, self.sizeHint().width()), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
