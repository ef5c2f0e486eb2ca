"""The built window's own menu: first page, settings, doctor, updates, and the word on the GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QDialog, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from moelauncher.app import program
from moelauncher.core.program import settings as keys
from moelauncher.core.program.doctor_facts import VULKAN_CRASHES, GpuSightings, VulkanSurvey
from moelauncher.core.program.settings import Settings
from moelauncher.gui.single_instance import socket_name
from moelauncher.gui.theme import theme
from tests.helpers.doctor_values import CPU, SIGHTINGS
from tests.helpers.window_driver import WindowDriver

Start = Callable[..., WindowDriver]


@pytest.fixture
def start(qtbot: QtBot, tmp_path: Path) -> Iterator[Start]:
    drivers: list[WindowDriver] = []

    def start(*arguments: str) -> WindowDriver:
        driver = WindowDriver(qtbot, [*arguments, "--basedir", str(tmp_path / "base")])
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.close()


def choose(driver: WindowDriver, text: str) -> None:
    """As a click on the menu's entry does."""
    menu = driver.widget(QToolButton, "programButton").menu()
    (action,) = [one for one in menu.actions() if one.text().startswith(text)]
    action.trigger()


def test_first_page_comes_once_and_when_it_is_asked_for(start: Start) -> None:
    first = start()
    page = first.program.desk.welcome
    first.wait(lambda: not page.isHidden())
    first.wait(lambda: page.found.text().startswith("No GGUF"))
    first.widget(QPushButton, "welcomeStartButton").click()
    first.close()

    second = start()
    second.wait(lambda: not second.program.session.library.is_scanning)
    assert second.program.desk.welcome.isHidden()
    choose(second, "First steps")
    assert not second.program.desk.welcome.isHidden()


def test_somebody_with_a_wish_sees_no_first_page(start: Start) -> None:
    driver = start("--demo")
    driver.wait(lambda: not driver.program.session.library.is_scanning)
    assert driver.program.desk.welcome.isHidden()


@pytest.mark.parametrize(
    ("wish", "goes"), [({"models": ["a.gguf"]}, True), ({"demo": True}, True), ({}, False)]
)
def test_first_page_gives_way_to_what_a_later_start_wants(
    start: Start, tmp_path: Path, wish: dict[str, object], goes: bool
) -> None:
    driver = start()
    page = driver.program.desk.welcome
    driver.wait(lambda: not page.isHidden())
    name = socket_name(tmp_path / "base" / "config")
    assert ask(driver, name, {"models": [], "demo": False, **wish}) == b"taken\n"
    assert page.isHidden() == goes


def test_later_start_of_another_version_is_told_where_it_can_be_read(
    start: Start, tmp_path: Path
) -> None:
    driver = start()
    page = driver.program.desk.welcome
    driver.wait(lambda: not page.isHidden())
    name = socket_name(tmp_path / "base" / "config")
    ask(driver, name, {"models": [], "demo": False, "version": "9.9.9"})
    assert page.isHidden()
    assert "9.9.9" in driver.window.status.message.text()


def ask(driver: WindowDriver, name: str, message: dict[str, object]) -> bytes:
    """Say to the window what a later start of the program says; its answer."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    assert socket.waitForConnected(5000)
    socket.write(json.dumps(message).encode() + b"\n")
    driver.wait(lambda: socket.bytesAvailable() > 0)
    answer = socket.readAll().data()
    socket.disconnectFromServer()
    return answer


def test_doctor_looks_and_gives_a_report(start: Start) -> None:
    driver = start("--demo")
    choose(driver, "Doctor")
    doctor = driver.program.desk.doctor
    driver.wait(doctor.copy.isEnabled)
    assert "llama-cpp-python" in doctor.found.toPlainText()
    assert "could be better" in doctor.verdict.text() or "set up well" in doctor.verdict.text()
    doctor.close()


def test_settings_are_kept_and_hold(start: Start, tmp_path: Path) -> None:
    driver = start("--demo")
    choose(driver, "Settings")
    dialog = driver.program.window.findChild(QDialog, "settingsDialog")
    assert dialog is not None
    dialog.editors["window.theme"].show("light")  # type: ignore[attr-defined]
    dialog.editors["engine.backends"].show("none")  # type: ignore[attr-defined]
    dialog.accept()
    assert theme().mode == "light"
    assert "next start" in driver.status_text()
    kept = Settings.load(tmp_path / "base" / "config" / "settings.toml")
    assert (kept.get(keys.THEME), kept.get(keys.BACKENDS)) == ("light", "none")


def test_without_a_release_site_that_is_said(start: Start) -> None:
    driver = start("--demo")
    choose(driver, "Check for updates")
    about = driver.program.desk.about
    driver.wait(about.check.isEnabled)
    assert "does not know where its releases" in about.answer.text()
    about.close()


def test_unused_gpu_is_said_at_once_and_the_doctor_is_a_click_away(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = VulkanSurvey(VULKAN_CRASHES)

    def sightings(child: object) -> GpuSightings:
        return replace(SIGHTINGS, devices=(CPU,), vulkan=broken)

    monkeypatch.setattr(program, "see_gpus_at_start", sightings)
    driver = start("--demo")
    driver.program.watch_run()  # as every start of the program does
    driver.wait(lambda: "GeForce RTX 4070" in driver.status_text())
    assert "driver crashes" in driver.status_text()
    driver.program.window.status.offer.click()
    doctor = driver.program.desk.doctor
    assert not doctor.isHidden()
    driver.wait(doctor.copy.isEnabled)
    doctor.close()


def test_abrupt_end_of_the_last_run_weighs_more_than_an_unused_gpu(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    logs = tmp_path / "base" / "logs"
    logs.mkdir(parents=True)
    (logs / f"running-{ended.pid}.json").write_text(json.dumps({"pid": ended.pid}), "utf-8")
    monkeypatch.setattr(
        program, "see_gpus_at_start", lambda child: replace(SIGHTINGS, devices=(CPU,))
    )
    driver = start("--demo")
    told: list[str] = []
    driver.program._advice.advice.connect(told.append)
    driver.program.watch_run()
    driver.wait(lambda: bool(told))
    assert "GeForce RTX 4070" in told[0]
    assert "ended abruptly" in driver.status_text()
