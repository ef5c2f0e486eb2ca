"""memory_pane.py and memory_gauge.py: bars, verdict, legend, tooltips, the margin's mark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor

from moelauncher.core.machine import GpuHolder
from moelauncher.core.memory.launch_plan import IMAGINED_GPU
from moelauncher.core.memory.load_comparison import KindComparison, LoadComparison
from moelauncher.gui.memory.memory_gauge import MemoryGauge
from moelauncher.gui.memory.memory_pane import MemoryPane
from moelauncher.gui.palette import SEGMENT
from moelauncher.gui.theme import theme
from tests.helpers.memory_values import GIB, MIB, device, forecast, snapshot


@pytest.fixture
def pane(qtbot) -> MemoryPane:
    pane = MemoryPane()
    qtbot.addWidget(pane)
    pane.resize(400, pane.sizeHint().height())
    return pane


def settle(qtbot, gauge: MemoryGauge) -> None:
    qtbot.waitUntil(lambda: gauge._easing.state() == gauge._easing.State.Stopped)


def bar_colors(gauge: MemoryGauge, index: int = 0) -> list[QColor]:
    """The colours along the middle of a bar."""
    image = gauge.grab().toImage()
    area = gauge._bar_rect(index)
    y = round(area.center().y())
    return [image.pixelColor(x, y) for x in range(2, image.width() - 2)]


def test_says_what_to_do_before_anything_is_known(pane: MemoryPane) -> None:
    assert "Select a model" in pane.sentence.text()
    assert pane.verdict.text() == ""


def test_names_why_there_is_no_gpu(pane: MemoryPane) -> None:
    pane.set_snapshot(snapshot(note="No GPU in this build."))
    assert pane.sentence.text() == "No GPU in this build."


def test_a_short_verdict_stands_beside_the_title(pane: MemoryPane) -> None:
    pane.set_forecast(forecast(text="fits, 2.0 GiB to spare"))
    assert pane.verdict.text() == "fits, 2.0 GiB to spare"
    assert pane.verdict.property("tone") == "good"
    assert "dry run" in pane.sentence.text()


def test_a_short_form_without_a_gpu_is_short(pane: MemoryPane) -> None:
    text = "Fits in RAM, 20.6 GiB to spare. " + "This is too long for a title. " * 5
    imagined = device(IMAGINED_GPU.name, free_bytes=None, total_bytes=None)
    pane.set_forecast(forecast(imagined, text=text))
    assert pane.verdict.text() == "Fits in RAM"
    assert "what a GPU would hold" in pane.sentence.text()


def test_a_long_verdict_stands_below_with_its_short_form_above(pane: MemoryPane) -> None:
    text = (
        "2.0 GiB too much on the GPU: move 5 more expert layers to the CPU, or shrink the context "
        "to 8,192 tokens, or keep the KV cache in q8_0"
    )
    pane.set_forecast(forecast(device(expert_bytes=8 * GIB), text=text))
    assert pane.verdict.text() == "2.0 GiB over"
    assert pane.verdict.property("tone") == "bad"
    assert pane.sentence.text() == text


def test_streaming_from_disk_is_a_warning(pane: MemoryPane) -> None:
    pane.set_forecast(forecast(text="reads from the disk all the time", streams_from_disk=True))
    assert pane.verdict.property("tone") == "warn"


def test_estimates_are_named(pane: MemoryPane) -> None:
    pane.set_forecast(forecast(compute_source="estimate"))
    assert "estimate" in pane.sentence.text()
    pane.set_forecast(forecast(compute_source="estimate", note="The dry run took too long."))
    assert pane.sentence.text() == "The dry run took too long."


def test_the_legend_has_gpu_and_main_memory(pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    texts = [entry.text for entry in pane.legend._entries]
    assert "experts 4.0 + 10.0" in texts
    assert "dense 2.0" in texts
    assert "KV 0.50" in texts
    assert not any(text.startswith("state") for text in texts)


def test_the_legend_teaches_what_its_words_mean(pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    legend = pane.legend
    for entry, area in legend._places(legend.width()):
        assert legend.lesson_at(area.center()) == pane.gauge.texts.kind_lesson(entry.kind) != ""
    assert "only a few of them are read" in pane.gauge.texts.kind_lesson("experts")
    assert legend.lesson_at(QPointF(legend.width() + 5, 5)) == ""


def test_panes_below_never_move_when_the_verdict_changes(qtbot, pane: MemoryPane) -> None:
    pane.show()
    pane.set_snapshot(snapshot())
    pane.set_forecast(forecast(device(recurrent_bytes=GIB), text="fits"))
    qtbot.wait(1)
    height = pane.sizeHint().height()
    text = "2.0 GiB too much on the GPU: move 5 more expert layers to the CPU."
    pane.set_forecast(forecast(device(), text=text))
    assert pane.sizeHint().height() == height
    pane.set_forecast(None)
    assert pane.sizeHint().height() == height


def test_planned_is_pale_and_loaded_is_solid(qtbot, pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    pale = bar_colors(pane.gauge)
    assert sum(color == SEGMENT.experts for color in pale) <= 4  # the outline
    pane.set_loaded(forecast())
    solid = bar_colors(pane.gauge)
    experts = sum(color == SEGMENT.experts for color in solid)
    assert experts == pytest.approx(len(solid) * 4 / 12, abs=4)
    assert SEGMENT.dense in solid
    assert SEGMENT.kv in solid


def test_what_does_not_fit_is_hatched(pane: MemoryPane) -> None:
    pane.set_forecast(forecast(device(expert_bytes=9 * GIB)))
    colors = bar_colors(pane.gauge)
    assert SEGMENT.over in colors
    right = {color.rgb() for color in colors[-40:]}
    assert len(right) > 2  # stripes, not one colour
    pane.set_forecast(forecast())
    assert SEGMENT.over not in bar_colors(pane.gauge)


def test_widths_ease_to_the_new_forecast(qtbot, pane: MemoryPane) -> None:
    with qtbot.waitExposed(pane):
        pane.show()
    pane.set_forecast(forecast())
    settle(qtbot, pane.gauge)
    key = ("CUDA0", "experts", "then")
    assert pane.gauge._shown[key] == 4 * GIB
    pane.set_forecast(forecast(device(expert_bytes=5 * GIB)))
    assert pane.gauge._shown[key] < 5 * GIB  # on its way
    settle(qtbot, pane.gauge)
    assert pane.gauge._shown[key] == 5 * GIB


def test_the_gauge_tells_itself_in_words(pane: MemoryPane) -> None:
    pane.set_snapshot(snapshot())
    pane.set_forecast(forecast(device(expert_bytes=9 * GIB)))
    spoken = pane.gauge.accessibleDescription()
    assert "GPU · RTX 4070" in spoken
    assert "experts 9.0 GiB" in spoken
    assert "does not fit 3.0 GiB" in spoken
    assert "RAM" in spoken


def test_tooltips_teach_and_name_their_source(pane: MemoryPane) -> None:
    pane.set_snapshot(snapshot())
    pane.set_forecast(forecast())
    gauge = pane.gauge
    area = gauge._bar_rect(0)

    def tip(share: float) -> str:
        return gauge.tip_at(QPointF(area.left() + area.width() * share, area.center().y()))

    assert "measured by NVML" in tip(0.5 / 12)
    assert "Dense weights" in tip(2.5 / 12)
    assert "header" in tip(5 / 12)
    assert "KV cache" in tip(7.8 / 12)
    assert "dry run" in tip(8.5 / 12)
    assert "Free: 3.0 GiB" in tip(10 / 12)
    assert "Kept free: 1.0 GiB" in tip(11 / 12)


def test_other_programs_on_the_gpu_are_named(pane: MemoryPane) -> None:
    holders = tuple(
        GpuHolder(n, f"program {n}", None if n == 2 else (8 - n) * 100 * MIB) for n in range(1, 8)
    )
    seen = snapshot()
    gpu = replace(seen.gpus[0], holders=holders)
    pane.set_snapshot(replace(seen, gpus=(gpu,)))

    def tip() -> str:
        area = pane.gauge._bar_rect(0)
        return pane.gauge.tip_at(QPointF(area.left() + 2, area.center().y()))

    named = "program 1 700 MiB, program 2, program 3 500 MiB, program 4 400 MiB, program 5 300 MiB"
    assert f"{named} and 2 more" in tip()
    pane.set_forecast(forecast())
    assert f"{named} and 2 more" in tip()
    pane.set_snapshot(snapshot())
    assert "program" not in tip().replace("Other programs", "")


def test_the_mark_is_dragged(qtbot, pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    gauge = pane.gauge
    area = gauge._bar_rect(0)
    y = round(area.center().y())
    told: list[tuple[str, int]] = []
    pane.leave_free_changed.connect(lambda name, n: told.append((name, n)))
    start = QPoint(round(area.left() + area.width() * 11 / 12), y)
    qtbot.mousePress(gauge, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(gauge, QPoint(round(area.left() + area.width() * 10 / 12), y))
    qtbot.mouseRelease(gauge, Qt.MouseButton.LeftButton)
    name, n_bytes = told[-1]
    assert name == "CUDA0"
    assert n_bytes == pytest.approx(2 * GIB, abs=64 * MIB)
    assert n_bytes % (32 * MIB) == 0


def test_a_drag_beside_the_mark_changes_nothing(qtbot, pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    area = pane.gauge._bar_rect(0)
    told: list[object] = []
    pane.leave_free_changed.connect(lambda *values: told.append(values))
    y = round(area.center().y())
    qtbot.mousePress(pane.gauge, Qt.MouseButton.LeftButton, pos=QPoint(40, y))
    qtbot.mouseMove(pane.gauge, QPoint(90, y))
    qtbot.mouseRelease(pane.gauge, Qt.MouseButton.LeftButton)
    assert told == []


def test_arrow_keys_move_the_mark_of_the_chosen_bar(qtbot, pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    told: list[tuple[str, int]] = []
    pane.leave_free_changed.connect(lambda name, n: told.append((name, n)))
    qtbot.keyClick(pane.gauge, Qt.Key.Key_Left)
    qtbot.keyClick(pane.gauge, Qt.Key.Key_Down)
    qtbot.keyClick(pane.gauge, Qt.Key.Key_Right)
    assert told == [("CUDA0", GIB + 128 * MIB), ("RAM", 2 * GIB - 128 * MIB)]


def test_it_repaints_in_another_scheme(qtbot, pane: MemoryPane) -> None:
    pane.set_forecast(forecast())
    before = theme().colors
    image = pane.gauge.grab().toImage()
    assert image.width() == pane.gauge.width()
    assert theme().colors is before


def test_what_is_loaded_is_told_also_when_the_machine_was_measured_again(pane: MemoryPane) -> None:
    pane.set_loaded(forecast())
    pane.set_forecast(forecast(device(free_bytes=10 * GIB + 7 * MIB, compute_bytes=GIB + MIB)))
    assert "Loaded" in pane.sentence.text()
    pane.set_forecast(forecast(device(expert_bytes=5 * GIB)))
    assert "Loaded" not in pane.sentence.text()


def test_a_gpu_that_is_not_there_counts_for_nothing(pane: MemoryPane) -> None:
    ghost = device("GPU", free_bytes=None, total_bytes=None, leave_free_bytes=0, driver_bytes=0)
    pane.set_snapshot(snapshot(note="No GPU is used; the README says how."))
    pane.set_forecast(forecast(ghost, text="Fits in RAM, 8.0 GiB to spare.", spare_bytes=8 * GIB))
    assert "none in use" in pane.gauge.spoken()
    texts = [entry.text for entry in pane.legend._entries]
    assert "experts 10.0" in texts, "main memory's alone"
    assert not any(text.startswith("compute") for text in texts)
    assert "No GPU is used; the README says how." in pane.sentence.text()
    assert "what a GPU would hold" in pane.sentence.text()
    colors = bar_colors(pane.gauge)
    assert SEGMENT.of("experts") not in colors, "nothing lies there"


def test_weights_that_stream_are_a_warning_and_no_failure(pane: MemoryPane) -> None:
    made = forecast(
        text="The GPU has 1.0 GiB to spare. 3.0 GiB of the weights do not fit in RAM and stream"
        " from disk: every token may wait for the drive.",
        fits=False,
        streams_from_disk=True,
    )
    pane.set_forecast(made)
    assert pane.verdict.text() == "Streams from disk"
    assert pane.verdict.property("tone") == "warn"
    assert "stream" in pane.sentence.text()


def test_the_load_report_is_offered_while_a_model_is_loaded(qtbot, pane: MemoryPane) -> None:
    pane.show()
    assert not pane.report.isVisible()
    fine = KindComparison("CUDA0", "kv", GIB, GIB, "dry-run")
    pane.set_report(LoadComparison((fine,), ()))
    assert pane.report.isVisible()
    assert "what was planned" in pane.report.toolTip()
    with qtbot.waitSignal(pane.report_requested):
        pane.report.click()
    off = KindComparison("CUDA0", "kv", GIB, 2 * GIB, "dry-run")
    pane.set_report(LoadComparison((fine, off), ()))
    assert "CUDA0 kv +1.0 GiB" in pane.report.toolTip()
    pane.set_report(None)
    assert not pane.report.isVisible()
