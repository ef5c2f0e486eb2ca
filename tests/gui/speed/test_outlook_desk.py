"""What speed to expect: measured bandwidths, the curve, the groove, the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.memory.placement import RAM
from moelauncher.core.speed.device_bandwidth import BandwidthFile
from moelauncher.gui.speed import outlook_desk
from moelauncher.gui.speed.outlook_desk import OutlookDesk
from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture
def window(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ScriptedWindow]:
    # The tests say when a quiet moment is over: on a busy machine it ended before they began.
    monkeypatch.setattr(outlook_desk, "_QUIET_MS", 3_600_000)
    made = ScriptedWindow(qtbot, tmp_path, write_truth_model(tmp_path, "gpt-oss-20b-mxfp4"))
    made.window.speed.build_plot()
    # A job tells what this machine is known by.
    made.wait(lambda: desk_of(made)._machine != "")
    yield made
    made.close()


class Probe:
    """Knows how fast everything is, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, names: Sequence[str], cancelled: Callable[[], bool]) -> Mapping[str, float]:
        assert not cancelled()
        self.asked += names
        return dict.fromkeys(names, 400e9) | {RAM: 40e9}


def desk_of(window: ScriptedWindow) -> OutlookDesk:
    (desk,) = window.session.findChildren(OutlookDesk)
    return desk


def test_the_figures_say_what_to_expect_and_why(window: ScriptedWindow) -> None:
    note = window.window.speed.note
    assert "is a rough guess" in note.toolTip()
    assert "usual hardware" in note.toolTip()
    assert "cross the bus" in note.toolTip()
    assert window.window.speed.average.text().startswith("guess ≈ ")


def test_no_speed_is_promised_of_what_does_not_fit(window: ScriptedWindow) -> None:
    window.window.placement.slider.setValue(0)
    window.wait(lambda: not window.plan.forecast.fits)
    assert window.window.speed.average.text() == ""
    window.window.placement.auto.click()
    window.wait(lambda: window.plan.forecast.fits)
    assert window.window.speed.average.text().startswith("guess ≈ ")


def test_bandwidths_are_measured_once_in_a_quiet_moment_and_kept(window: ScriptedWindow) -> None:
    desk, probe = desk_of(window), Probe()
    window.probe = probe
    desk.set_able(True)
    with window.signal(desk.hardware_known):
        desk._quiet.timeout.emit()
    gpus = [gpu.name for gpu in window.session.planner.machine.gpus]
    assert sorted(probe.asked) == sorted([RAM, *gpus])
    kept = BandwidthFile(window.paths.bandwidths_file).read(window.session.known.machine().name)
    assert kept.ram_bytes_s == 40e9
    assert "bandwidth" in window.window.speed.note.toolTip()
    assert window.window.speed.average.text().startswith("expected ≈ "), "no guess any more"
    plot = window.window.speed.settings
    assert plot is not None and plot._predicted_name.toPlainText() == "expected"
    desk.set_able(True)
    assert not desk._quiet.isActive(), "what is known is not measured again"


def test_nothing_is_measured_while_something_goes_on(window: ScriptedWindow) -> None:
    desk = desk_of(window)
    desk.set_able(True)
    assert desk._quiet.isActive()
    desk.set_able(False)
    assert not desk._quiet.isActive()


def test_every_stop_has_a_speed_before_anything_is_loaded(window: ScriptedWindow) -> None:
    curve = desk_of(window).curve
    assert len(curve) == window.plan.slider.last + 1
    assert all(rate is not None and rate > 0 for rate in curve)
    plot = window.window.speed.settings
    assert plot is not None
    assert "a rough guess" in plot.tip_at(plot.width() / 2)
    assert plot._predicted_name.toPlainText() == "guess"
