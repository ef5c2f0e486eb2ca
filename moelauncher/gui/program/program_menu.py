"""The program's own menu: settings, doctor, log, updates, and what this program is."""

from __future__ import annotations

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget


class ProgramMenu(QMenu):
    """Opened by the button in the window's upper left corner.

    Signals:
        settings(), doctor(), welcome(), log(), log_folder(), updates(), about(): open that.
    """

    settings = Signal()
    doctor = Signal()
    welcome = Signal()
    log = Signal()
    log_folder = Signal()
    updates = Signal()
    about = Signal()

    def __init__(self, parent: QWidget) -> None:
        """``parent`` is the window: the menu's keys hold in it."""
        super().__init__(parent)
        self._window = parent
        self.setObjectName("programMenu")
        self._add(self.tr("Settings…"), self.settings, self.tr("Ctrl+,"))
        self._add(self.tr("Doctor…"), self.doctor, self.tr("Ctrl+Shift+D"))
        self._add(self.tr("First steps…"), self.welcome)
        self.addSeparator()
        # Its key is the window's own.
        self._add(self.tr("Log"), self.log)
        self._add(self.tr("Open log folder"), self.log_folder)
        self.addSeparator()
        self._add(self.tr("Check for updates…"), self.updates)
        self._add(self.tr("About MoE Launcher"), self.about)

    def _add(self, text: str, wish: SignalInstance, key: str = "") -> None:
        action = self.addAction(text)
        action.triggered.connect(lambda: wish.emit())
        if key:
            # The action's own key would hold only while the menu lives in a menu bar.
            sequence = QKeySequence(key)
            action.setText(f"{text}\t{sequence.toString(QKeySequence.SequenceFormat.NativeText)}")
            shortcut = QShortcut(sequence, self._window)
            shortcut.activated.connect(action.trigger)
