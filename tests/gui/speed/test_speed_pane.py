"""gui/speed/speed_pane.py and speed_plot.py: the live curve, built late, painted for hours."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtWidgets import QWidget

from moelauncher.gui.palette import DARK, LIGHT
from moelauncher.gui.speed.speed_pane import SpeedPane
from moelauncher.gui.theme import apply_theme, theme


@pytest.fixture
def pane(qtbot) -> SpeedPane:
    pane = SpeedPane()
    qtbot.addWidget(pane)
    pane.resize(392, 330)
    return pane


def top_of_scale(pane: SpeedPane) -> float:
    _, (_, top) = pane.plot.getPlotItem().getViewBox().viewRange()
    return float(top)


def test_the_plot_library_waits_for_build_plot() -> None:
    code = (
        "import sys; import moelauncher.gui.main_window, moelauncher.gui.speed.speed_pane;"
        "sys.exit('pyqtgraph' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=240).returncode == 0


def test_the_size_does_not_change_when_the_plot_comes(pane: SpeedPane) -> None:
    pane.show()
    least, figure = pane.minimumSizeHint(), pane.figure.geometry()
    pane.build_plot()
    assert pane.minimumSizeHint() == least
    assert pane.figure.geometry() == figure
    assert pane.findChild(QWidget, "speedPlot").accessibleName()


def test_an_empty_pane_says_what_to_do_until_something_is_there(pane: SpeedPane) -> None:
    pane.show()
    pane.build_plot()
    assert pane.views.live.empty.isVisible()
    pane.add_rate(10.0, 30.0)
    assert not pane.views.live.empty.isVisible()


def test_what_came_before_the_plot_is_shown(pane: SpeedPane) -> None:
    for second in range(20):
        pane.add_rate(100.0 + second, 38.0)
    pane.build_plot()
    x, y = pane.plot._curve.getData()
    assert len(x) == 20
    assert x[-1] == 0.0
    assert set(y) == {38.0}
    assert top_of_scale(pane) == 45.0


def test_a_gap_is_a_gap(pane: SpeedPane) -> None:
    pane.build_plot()
    for second, rate in enumerate((30.0, 30.0, None, 30.0)):
        pane.add_rate(float(100 + second), rate)
    pane.plot.refresh()
    _, y = pane.plot._curve.getData()
    assert [math.isnan(value) for value in y] == [False, False, True, False]


def test_the_scale_grows_at_once_and_shrinks_rarely(pane: SpeedPane) -> None:
    pane.build_plot()
    pane.add_rate(100.0, 50.0)
    pane.plot.refresh()
    assert top_of_scale(pane) == 60.0
    pane.add_rate(101.0, 200.0)
    pane.plot.refresh()
    assert top_of_scale(pane) == 240.0
    pane.add_rate(400.0, 150.0)
    pane.plot.refresh()
    assert top_of_scale(pane) == 240.0
    pane.add_rate(700.0, 20.0)
    pane.plot.refresh()
    assert top_of_scale(pane) == 24.0


def test_the_time_axis_widens(pane: SpeedPane) -> None:
    pane.build_plot()
    view = pane.plot.getPlotItem().getViewBox()
    for time_s, window in ((100.0, 30.0), (150.0, 60.0), (250.0, 180.0), (999.0, 180.0)):
        pane.add_rate(time_s, 30.0)
        pane.plot.refresh()
        assert pane.plot.window_s == window
        assert view.viewRange()[0] == [-window, 0.0]


@pytest.mark.parametrize("rate", [0.02, 0.7, 1.3, 38.4, 99.0, 310.0, 4321.0])
def test_every_rate_lies_inside_its_scale(pane: SpeedPane, rate: float) -> None:
    pane.build_plot()
    pane.add_rate(100.0, rate)
    pane.plot.refresh()
    assert rate < top_of_scale(pane) <= 2.5 * rate


def test_marks_and_shades_come_and_go(pane: SpeedPane) -> None:
    pane.build_plot()
    pane.add_rate(100.0, 30.0)
    pane.mark(101.0, "30 › 24")
    pane.shade_prompt(102.0, 105.0)
    pane.plot.refresh()
    ((line, text),) = pane.plot._marks
    assert line.isVisible()
    assert text.textItem.toPlainText() == "30 › 24"
    assert line.value() == 101.0 - 105.0
    assert pane.plot._shades[0].getRegion() == (-3.0, 0.0)
    pane.add_rate(1000.0, 30.0)
    pane.plot.refresh()
    assert not line.isVisible()
    assert not pane.plot._shades[0].isVisible()


def test_labels_of_close_marks_stand_below_each_other(qtbot, pane: SpeedPane) -> None:
    pane.build_plot()
    pane.show()
    for second in range(30):
        pane.add_rate(100.0 + second, 38.0)
    for n, text in enumerate(("30 › 24", "24 › 8", "8 › 0")):
        pane.mark(110.0 + n / 10, text)
    pane.mark(125.0, "0 › 30")
    pane.plot.refresh()
    heights = [text.pos().y() for _, text in pane.plot._marks]
    assert heights[0] > heights[1] > heights[2]
    assert heights[3] == heights[0]


def test_it_repaints_only_when_something_changed(qtbot, pane: SpeedPane) -> None:
    pane.build_plot()
    with qtbot.waitExposed(pane):
        pane.show()
    qtbot.waitUntil(lambda: not pane.plot._due.isActive())
    pane.add_rate(100.0, 30.0)
    assert pane.plot._due.isActive()
    pane.add_rate(100.1, 30.0)
    qtbot.waitUntil(lambda: not pane.plot._due.isActive())
    assert not pane.plot._dirty


def test_a_hidden_plot_does_no_work(pane: SpeedPane) -> None:
    pane.build_plot()
    pane.add_rate(100.0, 30.0)
    assert not pane.plot._due.isActive()


def test_the_axes_follow_the_scheme(qtbot, qapp, pane: SpeedPane) -> None:
    pane.build_plot()
    for mode, colors in (("dark", DARK), ("light", LIGHT)):
        apply_theme(qapp, mode)
        assert theme().colors == colors
        axis = pane.plot.getPlotItem().getAxis("left")
        assert axis.textPen().color() == colors.muted
        assert pane.plot._curve.opts["pen"].color() == colors.accent


def test_the_background_follows_the_scheme(qtbot, qapp, pane: SpeedPane) -> None:
    pane.setProperty("panel", True)
    pane.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    pane.build_plot()
    pane.show()
    seen = []
    for mode in ("dark", "light"):
        apply_theme(qapp, mode)
        image = pane.grab().toImage()
        seen.append(image.pixelColor(pane.plot.geometry().bottomRight() - QPoint(4, 4)))
    assert seen == [DARK.window, LIGHT.window]


def test_the_tooltip_tells_the_rate(pane: SpeedPane) -> None:
    pane.build_plot()
    for second in range(180):
        pane.add_rate(1000.0 + second, 38.4)
    pane.show()
    pane.plot.refresh()
    pane.grab()
    assert "38.4 tok/s" in pane.plot.tip_at(pane.plot.width() - 40)


def test_the_numbers_below(pane: SpeedPane) -> None:
    pane.set_summary(38.42, 37.9)
    pane.set_traffic("0.9 GiB VRAM + 0.8 GiB RAM a token")
    assert pane.figure.text() == "38.4"
    assert pane.average.text() == "average 37.9"
    assert pane.note.text() == "0.9 GiB VRAM + 0.8 GiB RAM a token"
    pane.set_traffic("0.9 GiB VRAM + 0.8 GiB RAM a token", "why", "≈ 36.9")
    assert pane.average.text() == "expected ≈ 36.9\naverage 37.9"
    pane.set_traffic("")
    pane.set_summary(None)
    assert pane.figure.text() == "–"
    assert pane.average.text() == ""


class PaintCounter(QObject):
    """Counts the paint events of the object that it watches."""

    n = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.n += event.type() == QEvent.Type.Paint
        return False


def test_repaints_take_no_references(qtbot, pane: SpeedPane) -> None:
    """PySide6 6.12 on Python 3.11 loses one to None at each, and then aborts."""
    pane.build_plot()
    pane.resize(200, 240)
    with qtbot.waitExposed(pane):
        pane.show()
    counter = PaintCounter()
    viewport = pane.plot.viewport()
    viewport.installEventFilter(counter)
    pane.add_rate(0.0, 30.0)
    pane.plot.refresh()
    viewport.repaint()
    before = sys.getrefcount(None)
    for i in range(500):
        pane.add_rate(i * 0.5, None if i % 50 == 0 else 30.0 + i % 7)
        pane.plot.refresh()
        viewport.repaint()
    assert counter.n >= 500
    assert sys.getrefcount(None) > before - 100
