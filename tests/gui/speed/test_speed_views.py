"""gui/speed/speed_views.py: one plot or both, as the height allows."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from moelauncher.gui.speed.speed_pane import SpeedPane
from moelauncher.gui.speed.speed_views import BOTH_FROM, SpeedViews

TALL, SHORT = BOTH_FROM + 200, BOTH_FROM


@pytest.fixture
def pane(qtbot: QtBot) -> SpeedPane:
    pane = SpeedPane()
    qtbot.addWidget(pane)
    pane.build_plot()
    pane.resize(392, SHORT)
    with qtbot.waitExposed(pane):
        pane.show()
    return pane


def seen(views: SpeedViews) -> list[bool]:
    return [view.isVisible() for view in (views.live, views.by_setting)]


def test_a_tall_pane_shows_both_views_and_needs_no_switch(pane: SpeedPane) -> None:
    assert seen(pane.views) == [True, False]
    assert pane.live_button.isVisible() and not pane.views.live.caption.isVisible()
    pane.resize(392, TALL)
    assert seen(pane.views) == [True, True]
    assert not pane.live_button.isVisible() and pane.views.live.caption.isVisible()
    live, by_setting = pane.views.live.geometry(), pane.views.by_setting.geometry()
    assert live.bottom() < by_setting.top()
    assert abs(live.height() - by_setting.height()) <= 1


def test_a_pane_that_becomes_short_shows_the_view_that_was_wanted(pane: SpeedPane) -> None:
    pane.resize(392, TALL)
    pane.setting_button.setChecked(True)
    assert seen(pane.views) == [True, True]
    pane.resize(392, SHORT)
    assert seen(pane.views) == [False, True]
    pane.live_button.click()
    assert seen(pane.views) == [True, False]


def test_what_is_shown_does_not_keep_the_pane_from_shrinking(pane: SpeedPane) -> None:
    least = pane.minimumSizeHint()
    pane.resize(392, TALL)
    assert pane.minimumSizeHint() == least


def test_a_low_plot_is_a_curve_without_a_scale(pane: SpeedPane) -> None:
    assert pane.plot is not None
    axis = pane.plot.getPlotItem().getAxis("left")
    assert axis.isVisible()
    pane.resize(392, pane.minimumSizeHint().height())
    assert not axis.isVisible()
    pane.resize(392, SHORT)
    assert axis.isVisible()


def test_with_both_views_the_menu_has_a_part_for_each(pane: SpeedPane) -> None:
    asked: list[QMenu] = []
    pane.menu_wanted.connect(asked.append)
    one = QMenu()
    pane.fill_menu(one, pane.views.shown)
    assert [action.text() for action in one.actions()] == ["Copy as image", "Copy as CSV"]
    pane.resize(392, TALL)
    both = QMenu()
    pane.fill_menu(both, pane.views.shown)
    assert [action.text() for action in both.actions()] == ["Live", "By setting"]
    assert [menu.title() for menu in asked] == ["By setting"]
