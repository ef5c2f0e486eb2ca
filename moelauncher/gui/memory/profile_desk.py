"""The button beside "Memory" that switches between profiles, and what it does.

GUI thread only. A profile holds what is left free of each GPU; dragging the mark in the gauge
changes the chosen one.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QInputDialog, QMenu, QPushButton, QWidget

from moelauncher.core.memory.profiles import (
    ALL_MINE,
    BUILT_IN,
    GAMING,
    USUAL,
    Profiles,
    profiles_from,
)
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.planned_machine import PlannedMachine
from moelauncher.gui.services import Services
from moelauncher.gui.theme import BORDER, CHIP_HEIGHT

_STATE = "profiles"


class ProfileDesk(QObject):
    """Keeps the profiles, and the machine that is planned for to the chosen one."""

    def __init__(
        self,
        window: MainWindow,
        services: Services,
        machine: PlannedMachine,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._state = services.state
        self._machine = machine
        self.profiles = profiles_from(self._state.get(_STATE), self._state.get("leave_free_bytes"))
        self.button = QPushButton()
        self.button.setObjectName("profileButton")
        self.button.setProperty("kind", "quiet")
        self.button.setAccessibleName(self.tr("Profile"))
        self.menu = QMenu(window)
        self.menu.aboutToShow.connect(self._fill)
        self.button.setMenu(self.menu)
        # No taller than a pane's title, which would move the bars where the button appears.
        self.button.setStyleSheet(
            f"QPushButton {{ min-height: {CHIP_HEIGHT - 2 * BORDER}px; }}"
            "QPushButton::menu-indicator { image: none; width: 0; }"
        )
        window.memory.title_row.insertWidget(1, self.button)
        QWidget.setTabOrder(window.memory.gauge, self.button)
        window.memory.leave_free_changed.connect(self._margin_changed)
        machine.changed.connect(self._apply)
        self._show()

    def choose(self, name: str) -> None:
        """Plan by another profile from now on."""
        self._take(self.profiles.choose(name))

    def save_as(self, name: str) -> None:
        """Keep what is left free now under a name."""
        margins = self._machine.now.margins.leave_free_bytes
        self._take(self.profiles.save_as(name, margins))

    def delete(self, name: str) -> None:
        """Forget a profile (or what was changed in a built-in one)."""
        self._take(self.profiles.delete(name))

    def label(self, name: str) -> str:
        """How a profile is shown."""
        known = {
            USUAL: self.tr("Usual"),
            GAMING: self.tr("Gaming"),
            ALL_MINE: self.tr("All mine"),
        }
        return known.get(name, name)

    def _take(self, profiles: Profiles) -> None:
        self.profiles = profiles
        self._state.set(_STATE, profiles.to_stored())
        self._show()
        self._apply()

    def _apply(self, _: object = None) -> None:
        self._update_button()
        self._machine.set_margins(self.profiles.leave_free(self._machine.now.gpus))

    def _margin_changed(self, device: str, n_bytes: int) -> None:
        self.profiles = self.profiles.change(device, int(n_bytes))
        self._state.set(_STATE, self.profiles.to_stored())
        # The machine heard of it first, and asked back for the margins as they were.
        self._apply()

    def _update_button(self) -> None:
        has_gpus = bool(self._machine.now.gpus)
        # Without a GPU a profile says nothing, and the verdict needs the room.
        self.button.setVisible(has_gpus)
        self.button.setToolTip(self.tr("What is left free for other programs, by profile"))

    def _show(self) -> None:
        self._update_button()
        self.button.setText(f"{self.label(self.profiles.chosen)} ▾")

    def _fill(self) -> None:
        self.menu.clear()
        group = QActionGroup(self.menu)
        for name in self.profiles.names:
            # An ampersand in a name would else become a shortcut mark.
            action = self.menu.addAction(self.label(name).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(name == self.profiles.chosen)
            action.triggered.connect(lambda _=False, name=name: self.choose(name))
            group.addAction(action)
        self.menu.addSeparator()
        self.menu.addAction(self.tr("Save as…"), self._ask_name)
        chosen = self.profiles.chosen
        if chosen not in BUILT_IN:
            text = self.tr("Delete “{name}”").format(name=chosen.replace("&", "&&"))
            self.menu.addAction(text, lambda: self.delete(chosen))
        elif self.profiles.margins.get(chosen):
            self.menu.addAction(self.tr("As it was at first"), lambda: self.delete(chosen))

    def _ask_name(self) -> None:
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle(self.tr("Save profile"))
        dialog.setLabelText(self.tr("Name of the profile"))
        dialog.textValueSelected.connect(self.save_as)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
