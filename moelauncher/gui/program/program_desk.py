"""What concerns the program as a whole: its menu, settings, doctor, first page and updates.

In: the menu's wishes, and what is known of the machine. Out: dialogs, changed settings, and
sentences in the status line. GUI thread; looking and asking are pool jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication

from moelauncher import __version__
from moelauncher.core.errors import LauncherError
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.program import settings as keys
from moelauncher.core.program.build_facts import build_facts
from moelauncher.core.program.doctor_facts import DoctorFacts, GpuSightings
from moelauncher.core.program.doctor_report import fact_rows, hide_home, report_text
from moelauncher.core.program.gpu_check import first_glance
from moelauncher.core.program.machine_check import check_machine
from moelauncher.core.program.releases import Release, is_newer
from moelauncher.gui.controls.menu_button import open_under
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.program.about_dialog import AboutDialog
from moelauncher.gui.program.doctor_dialog import DoctorDialog
from moelauncher.gui.program.program_menu import ProgramMenu
from moelauncher.gui.program.settings_dialog import SettingsDialog
from moelauncher.gui.program.welcome_page import WelcomePage
from moelauncher.gui.services import Services
from moelauncher.gui.session import Session
from moelauncher.gui.theme import apply_theme

#: In the window's state: the first page was put away.
_WELCOMED = "welcomed"


class ProgramDesk(QObject):
    """Opens what the program's menu offers. Call :meth:`close` in the end."""

    def __init__(
        self,
        window: MainWindow,
        session: Session,
        services: Services,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._session = session
        self._services = services
        self._jobs = JobRunner(self)
        self._devices: Sequence[BackendDevice] = ()
        self._sightings = GpuSightings()
        self.menu = ProgramMenu(window)
        open_under(window.model_list.program_button, self.menu)
        self.doctor = DoctorDialog(window)
        self.about = AboutDialog(__version__, self._about_text(), window)
        self.welcome = WelcomePage(window.center)
        self._wire()

    def _wire(self) -> None:
        menu, window = self.menu, self._window
        menu.settings.connect(self.edit_settings)
        menu.doctor.connect(self.open_doctor)
        menu.welcome.connect(self.welcome.open)
        menu.log.connect(window.toggle_log)
        menu.log_folder.connect(self.open_log_folder)
        menu.updates.connect(self.check_for_updates)
        menu.about.connect(self._open_about)
        window.log.folder_requested.connect(self.open_log_folder)
        self.doctor.run_requested.connect(self.run_doctor)
        self.about.check_requested.connect(self._check)
        self.about.page_requested.connect(lambda page: QDesktopServices.openUrl(QUrl(page)))
        pane = window.model_list
        self.welcome.folder_requested.connect(pane.add_folder_requested)
        self.welcome.model_requested.connect(pane.menus.get_model)
        self.welcome.sample_requested.connect(pane.demo_requested)
        self.welcome.doctor_requested.connect(self.open_doctor)
        self.welcome.closed.connect(self._welcomed)
        pane.count_changed.connect(
            lambda n_models, scanning: self.welcome.set_model_count(n_models, scanning=scanning)
        )

    # What comes in

    def set_devices(self, devices: Sequence[BackendDevice]) -> None:
        """What llama.cpp can compute on."""
        self._devices = devices

    def gpus_seen(self, snapshot: MachineSnapshot, sightings: GpuSightings) -> None:
        """Who sees which GPU."""
        self._sightings = sightings
        self.welcome.set_verdicts(first_glance(snapshot, sightings))

    def start(self, *, has_wish: bool) -> None:
        """Show the first page at the first start; not to somebody who knows what they want."""
        if not has_wish and self._services.state.get(_WELCOMED) is not True:
            self.welcome.open()

    def close(self) -> None:
        """End what still looks or asks."""
        self._jobs.close()

    # Settings

    def edit_settings(self) -> None:
        """Open the settings."""
        dialog = SettingsDialog(
            self._services.settings, self._devices, self._sightings.build, self._window
        )
        dialog.accepted.connect(lambda: self._settings_changed(dialog))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _settings_changed(self, dialog: SettingsDialog) -> None:
        settings = self._services.settings
        app = QApplication.instance()
        if keys.THEME.name in dialog.changed and isinstance(app, QApplication):
            apply_theme(app, settings.get(keys.THEME))
        if keys.GPU_DEVICES.name in dialog.changed:
            self._session.machine.set_devices(self._devices)
        if keys.HF_CACHE.name in dialog.changed:
            self._session.library.refresh()
        if dialog.needs_restart:
            self._window.status.set_message(
                self.tr(
                    "Saved. The GPU interface and the processor variant hold from the next "
                    "start on."
                ),
                "info",
            )

    # The doctor

    def open_doctor(self) -> None:
        """Show the doctor; he looks by himself the first time."""
        self.doctor.show()
        self.doctor.raise_()
        self.doctor.activateWindow()

    def run_doctor(self) -> None:
        """Look at the machine."""
        self.doctor.set_busy(self.tr("Looking at this machine"))
        self._jobs.start(
            "doctor",
            lambda report, cancelled: self._services.examine(report, cancelled),
            self._examined,
            lambda error: self.doctor.set_problem(error.sentence),
            lambda text: self.doctor.set_busy(str(text)),
        )

    def _examined(self, facts: object) -> None:
        assert isinstance(facts, DoctorFacts)
        verdicts = check_machine(facts)
        rows = fact_rows(facts)
        width = max(len(label) for label, _ in rows) + 2
        found = "\n".join(f"{label:<{width}}{value}" for label, value in rows)
        shown = [
            type(v)(v.level, v.subject, hide_home(v.text), hide_home(v.advice)) for v in verdicts
        ]
        self.doctor.set_result(shown, found, report_text(facts, verdicts))

    # Updates and the rest

    def check_for_updates(self) -> None:
        """Ask the release site, as the menu's entry says."""
        self._open_about()
        self._check()

    def open_log_folder(self) -> None:
        """In the system's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._services.paths.logs)))

    def _open_about(self) -> None:
        self.about.show()
        self.about.raise_()
        self.about.activateWindow()

    def _check(self) -> None:
        self.about.set_busy()
        self._jobs.start(
            "updates",
            lambda report, cancelled: self._services.newest_release(),
            self._release_known,
            self._not_asked,
        )

    def _release_known(self, release: object) -> None:
        assert isinstance(release, Release)
        self.about.set_release(release, is_newer(release, __version__))

    def _not_asked(self, error: LauncherError) -> None:
        self.about.set_problem(error)

    def _welcomed(self) -> None:
        self._services.state.set(_WELCOMED, True)
        self._window.chat.focus_input()

    def _about_text(self) -> str:
        facts = build_facts()
        made = [str(facts[name]) for name in ("commit", "built", "system") if facts.get(name)]
        lines = [
            self.tr("Runs Mixture-of-Experts models on one GPU and main memory, with llama.cpp."),
            ", ".join(made),
            self.tr("Settings, chats and models: {folder}").format(
                folder=hide_home(str(self._services.paths.data))
            ),
            self.tr("MIT licence. llama.cpp, Qt (LGPL) and the other parts have their own."),
        ]
        return "\n".join(line for line in lines if line)
