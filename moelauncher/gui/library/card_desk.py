"""Opens the model card: from the heading's button for the selected model, from a row's menu.

GUI thread; reading the header and judging the model are pool jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.speed.speed_estimate import MODEL, SpeedBasis
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.memory_bars import short_device
from moelauncher.gui.memory.planned_machine import PlannedMachine
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.speed.best_speeds import BestSpeeds
from moelauncher.gui.speed.known_speeds import KnownSpeeds
from moelauncher.gui.speed.outlook_desk import OutlookDesk

if TYPE_CHECKING:
    from moelauncher.gui.library.model_card import ModelCardDialog


class CardDesk(QObject):
    """Keeps at most one card open.

    Signals:
        message(str, str): text and level for the status line.
    """

    message = Signal(str, str)

    def __init__(
        self,
        window: MainWindow,
        machine: PlannedMachine,
        planner: Planner,
        jobs: JobRunner,
        known: KnownSpeeds,
        speeds: BestSpeeds,
        outlook: OutlookDesk,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._known = known
        self._speeds = speeds
        self._outlook = outlook
        self._window = window
        self._machine = machine
        self._planner = planner
        self._jobs = jobs
        self._facts: ModelFacts | None = None
        self._asked: object = None
        self.dialog: ModelCardDialog | None = None
        self.button = QPushButton(self.tr("Card"))
        self.button.setObjectName("cardButton")
        self.button.setToolTip(self.tr("Everything that is known of this model"))
        self.button.clicked.connect(self.open_selected)
        window.heading.extras.addWidget(self.button)
        QWidget.setTabOrder(window.chats.list, self.button)
        window.model_list.menus.card.connect(self.open_entry)
        planner.plan_changed.connect(self._plan_changed)
        self._plan_changed()

    def open_selected(self) -> None:
        """The card of the selected model."""
        facts = self._planner.facts
        if facts is not None:
            self._open(facts)

    def open_entry(self, entry: object) -> None:
        """The card of any model of the list."""
        if not isinstance(entry, CatalogEntry):
            return
        path = entry.path
        self._jobs.start(
            "card-facts", lambda report, cancelled: load_facts(path), self._open, self._complain
        )

    def _open(self, facts: object) -> None:
        assert isinstance(facts, ModelFacts)
        self._facts = facts
        self._ask()

    def _ask(self) -> None:
        facts, machine = self._facts, self._machine.now
        context = self._planner.choices().context
        if facts is None:
            return
        self._asked = (facts.path, machine, context)
        tuned, chats = self._known.best_text(facts), self._speeds.chats_text(facts.path)
        measured = "; ".join(text for text in (tuned, chats) if text)
        fitted = self._outlook.fitted(facts)
        basis = self._outlook.basis if fitted is None else SpeedBasis(fitted, MODEL)
        labels = {d.name: short_device(d.description) for d in self._machine.devices}
        from moelauncher.core.library.model_card import card_of

        self._jobs.start(
            "card",
            lambda report, cancelled: card_of(
                facts, machine, context, measured=measured, basis=basis, device_labels=labels
            ),
            self._show,
            self._complain,
        )

    def _show(self, card: object) -> None:
        from moelauncher.core.library.model_card import ModelCard

        assert isinstance(card, ModelCard)
        if self.dialog is None:
            # At first use, for the window is quicker without it.
            from moelauncher.gui.library.model_card import ModelCardDialog

            self.dialog = ModelCardDialog(self._window)
            self.dialog.finished.connect(self._closed)
        self.dialog.set_card(card)
        self.dialog.show()
        self.dialog.raise_()

    def _closed(self, _result: int) -> None:
        self.dialog = None
        self._facts = None

    def _plan_changed(self) -> None:
        self.button.setEnabled(self._planner.facts is not None)
        # An open card follows the context and the machine.
        if self.dialog is not None and self._facts is not None:
            now = (self._facts.path, self._machine.now, self._planner.choices().context)
            if now != self._asked:
                self._ask()

    def _complain(self, error: LauncherError) -> None:
        self.message.emit(error.sentence, "warning")
