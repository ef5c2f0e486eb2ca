"""The doctor's pane, the settings, the first page, and what the program says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import LauncherError
from moelauncher.core.program import settings as keys
from moelauncher.core.program.doctor_facts import BuildState
from moelauncher.core.program.releases import Release
from moelauncher.core.program.settings import Settings
from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict
from moelauncher.gui.library.verdict_list import VerdictList
from moelauncher.gui.program.about_dialog import AboutDialog
from moelauncher.gui.program.doctor_dialog import DoctorDialog
from moelauncher.gui.program.settings_dialog import SettingsDialog
from moelauncher.gui.program.welcome_page import WelcomePage
from tests.helpers.doctor_values import BUILD, CPU, GPU

VERDICTS = (
    Verdict(GOOD, "llama.cpp", "It starts."),
    Verdict(WARNING, "RAM", "<b>Little</b> is free.", "Close other programs."),
    Verdict(BAD, "GPU", "No driver runs it.", "Install one."),
)


def texts(widget: QWidget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel)]


# The doctor


def test_the_doctor_looks_when_he_is_first_shown(qtbot: QtBot) -> None:
    dialog = DoctorDialog()
    qtbot.addWidget(dialog)
    with qtbot.waitSignal(dialog.run_requested):
        dialog.show()
    dialog.set_busy("Measuring main memory")
    assert dialog.progress.text == "Measuring main memory"
    assert not dialog.again.isEnabled() and not dialog.copy.isEnabled()
    with qtbot.assertNotEmitted(dialog.run_requested):
        dialog.hide()
        dialog.show()


def test_the_doctor_tells_the_worst_first_and_gives_a_report(qtbot: QtBot) -> None:
    dialog = DoctorDialog()
    qtbot.addWidget(dialog)
    dialog.set_busy("Looking")
    dialog.set_result(VERDICTS, "RAM  64 GiB", "the report")
    assert dialog.verdict.text() == "2 things could be better."
    shown = texts(dialog.list)
    assert shown.index("GPU") < shown.index("RAM") < shown.index("llama.cpp")
    # Marks are shapes, not colours alone, and are read aloud.
    marks = [label for label in dialog.list.findChildren(QLabel) if label.accessibleName()]
    assert [mark.text() for mark in marks] == ["✕", "!", "✓"]
    assert [mark.accessibleName() for mark in marks] == ["bad", "could be better", "good"]
    assert all(
        label.textFormat() == Qt.TextFormat.PlainText for label in dialog.list.findChildren(QLabel)
    )
    assert dialog.found.toPlainText() == "RAM  64 GiB"
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == "the report"
    assert dialog.again.isEnabled() and dialog.progress.text == ""


def test_nothing_to_mend_is_said_too(qtbot: QtBot) -> None:
    dialog = DoctorDialog()
    qtbot.addWidget(dialog)
    dialog.set_result(VERDICTS[:1], "", "")
    assert dialog.verdict.text() == "This machine is set up well."
    dialog.set_problem("The doctor cannot look.")
    assert dialog.verdict.text() == "The doctor cannot look."


def test_verdicts_are_replaced_and_not_piled_up(qtbot: QtBot) -> None:
    verdicts = VerdictList()
    qtbot.addWidget(verdicts)
    for _ in range(3):
        verdicts.set_verdicts(VERDICTS)
    assert texts(verdicts).count("GPU") == 1
    verdicts.set_verdicts(())
    assert texts(verdicts) == []


# Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text('[engine]\nbackends = "rocm"\n[own]\nkept = 1\n', encoding="utf-8")
    return Settings.load(file)


def dialog_of(qtbot: QtBot, settings: Settings, build: BuildState = BUILD) -> SettingsDialog:
    dialog = SettingsDialog(settings, (GPU, CPU), build)
    qtbot.addWidget(dialog)
    return dialog


def test_untouched_settings_are_not_changed(qtbot: QtBot, settings: Settings) -> None:
    """Also a GPU interface that this build does not have."""
    dialog = dialog_of(qtbot, settings)
    combo = dialog.editors["engine.backends"].widget
    assert isinstance(combo, QComboBox)
    offered = [combo.itemText(at) for at in range(combo.count())]
    assert "CUDA" in offered and "Vulkan" in offered  # also while only one of them is loaded
    assert dialog.editors["engine.backends"].value() == "rocm"
    dialog.accept()
    assert dialog.changed == frozenset() and not dialog.needs_restart


def test_changes_are_saved_and_named(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    dialog = dialog_of(qtbot, settings)
    for name, value in (
        ("engine.backends", "vulkan"),
        ("engine.cpu_variant", "haswell"),
        ("engine.threads", 3),
        ("gpu.leave_free_bytes", 1 << 30),
        ("window.theme", "dark"),
    ):
        dialog.editors[name].show(value)
    dialog.accept()
    assert dialog.needs_restart and "window.theme" in dialog.changed
    again = Settings.load(tmp_path / "settings.toml")
    assert again.get(keys.BACKENDS) == "vulkan"
    assert again.get(keys.CPU_VARIANT) == "haswell"
    assert again.get(keys.N_THREADS) == 3
    assert again.get(keys.LEAVE_FREE_BYTES) == 1 << 30
    assert "kept = 1" in (tmp_path / "settings.toml").read_text(encoding="utf-8")


def test_never_is_an_empty_field_and_not_a_zero(qtbot: QtBot, settings: Settings) -> None:
    dialog = dialog_of(qtbot, settings)
    idle = dialog.editors["engine.idle_unload_minutes"]
    field = idle.widget
    assert isinstance(field, QLineEdit)
    assert (field.text(), field.placeholderText(), idle.value()) == ("", "never", 0)
    field.setText("15")
    dialog.accept()
    assert settings.get(keys.IDLE_UNLOAD_MINUTES) == 15


def test_nonsense_is_said_and_nothing_is_saved(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    dialog = dialog_of(qtbot, settings)
    for name, text in (("engine.threads", "many"), ("gpu.leave_free_bytes", "-1 GiB")):
        field = dialog.editors[name].widget
        field.setText(text)  # type: ignore[attr-defined]
        dialog.accept()
        assert not dialog.problem.isHidden() and dialog.problem.text()
        assert dialog.result() == 0
        dialog.editors[name].show(None)
    assert Settings.load(tmp_path / "settings.toml").get(keys.N_THREADS) is None


def test_gpus_can_be_left_out_and_all_is_the_same_as_none_named(
    qtbot: QtBot, settings: Settings
) -> None:
    second = GPU.__class__("Vulkan1", "Radeon", "gpu", "Vulkan", 1, 2)
    dialog = SettingsDialog(settings, (GPU, second, CPU), BUILD)
    qtbot.addWidget(dialog)
    editor = dialog.editors["gpu.devices"]
    assert editor.value() == ()
    editor.show(("vulkan1",))
    assert editor.value() == ("Vulkan1",)
    editor.show(("CUDA7",))  # taken out of the machine
    assert editor.value() == ()


def test_a_build_without_choices_keeps_what_is_set(qtbot: QtBot, settings: Settings) -> None:
    settings.set(keys.GPU_DEVICES, ("Vulkan0",))
    dialog = SettingsDialog(settings, (), BuildState())
    qtbot.addWidget(dialog)
    dialog.accept()
    assert dialog.changed == frozenset()
    assert settings.get(keys.GPU_DEVICES) == ("Vulkan0",)


# The first page


@pytest.fixture
def page(qtbot: QtBot) -> WelcomePage:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1280, 800)
    page = WelcomePage(window)
    window.show()
    page.open()
    return page


def test_first_page_covers_the_window_and_goes_with_escape(qtbot: QtBot, page: WelcomePage) -> None:
    page.window().resize(1400, 900)
    assert page.geometry() == page.window().rect()
    with qtbot.waitSignal(page.closed):
        qtbot.keyClick(page, Qt.Key.Key_Escape)
    assert page.isHidden()
    with qtbot.assertNotEmitted(page.closed):
        page.put_away()


@pytest.mark.parametrize(
    ("count", "scanning", "text"),
    [(0, True, "Looking"), (0, False, "No GGUF"), (1, True, "1 model"), (12, False, "12 models")],
)
def test_first_page_counts_models(page: WelcomePage, count: int, scanning: bool, text: str) -> None:
    page.set_model_count(count, scanning=scanning)
    assert page.found.text().startswith(text)


def test_building_the_sample_gives_the_window_back(qtbot: QtBot, page: WelcomePage) -> None:
    button = page.findChild(QWidget, "welcomeSampleButton")
    with qtbot.waitSignals([page.sample_requested, page.closed]):
        button.click()  # type: ignore[union-attr]


def test_first_page_shows_what_the_doctor_says_of_the_gpu(page: WelcomePage) -> None:
    page.set_verdicts(VERDICTS[2:])
    assert "Install one." in texts(page.gpu)


# About


def test_updates_are_asked_for_by_the_button_alone(qtbot: QtBot) -> None:
    dialog = AboutDialog("0.1.0", "facts")
    qtbot.addWidget(dialog)
    with qtbot.assertNotEmitted(dialog.check_requested):
        dialog.show()
    with qtbot.waitSignal(dialog.check_requested):
        dialog.check.click()
    dialog.set_busy()
    assert not dialog.check.isEnabled()
    dialog.set_release(Release("0.2.0", "https://example.org"), True)
    assert not dialog.page.isHidden() and dialog.check.isEnabled()
    with qtbot.waitSignal(dialog.page_requested) as page:
        dialog.page.click()
    assert page.args == ["https://example.org"]
    dialog.set_busy()
    dialog.set_problem(LauncherError("Nobody is there.", "Try later."))
    assert dialog.answer.text() == "Nobody is there. Try later." and dialog.page.isHidden()
    dialog.set_release(Release("0.1.0"), False)
    assert "newest" in dialog.answer.text()
