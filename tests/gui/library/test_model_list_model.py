"""The catalog as a list: sorted, told apart by path, and safe to show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.speed.best_setting import BestSetting
from moelauncher.gui.library.model_list_model import ModelFilter, ModelListModel, is_listed


def entry(name: str, **values: object) -> CatalogEntry:
    path = Path("/models") / f"{name}.gguf"
    fields = {"quant": "Q4_K_M", "arch": "qwen3moe", "role": "chat", "size_bytes": 2**30} | values
    return CatalogEntry(path=path, files=(path,), name=name, **fields)


def names(model: ModelListModel | ModelFilter) -> list[str]:
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def row_data(model: ModelListModel, row: int, role: int) -> str:
    return model.index(row, 0).data(role)


@pytest.fixture
def model(qapp):
    return ModelListModel()


def test_qt_s_own_check(model, qtmodeltester):
    model.set_entries([entry("b"), entry("a")])
    qtmodeltester.check(model)
    model.upsert(entry("c"))
    model.upsert(entry("a", problem="broken"))
    model.remove(Path("/models/b.gguf"))
    assert names(model) == ["c", "a"]


def test_qt_s_own_check_of_the_filter(model, qtmodeltester):
    proxy = ModelFilter(model)
    qtmodeltester.check(proxy)
    model.set_entries([entry("b"), entry("a")])
    proxy.set_words("a")
    model.upsert(entry("ba"))
    assert names(proxy) == ["a", "ba"]


def test_rows_are_sorted_and_problems_come_last(model):
    model.set_entries([entry("zeta"), entry("Beta"), entry("alpha", problem="cut short")])
    assert names(model) == ["Beta", "zeta", "alpha"]


def test_only_chat_models_and_problems_are_listed(model):
    model.set_entries(
        [
            entry("chat"),
            entry("mmproj", role="mmproj"),
            entry("embed", role="embedding"),
            entry("odd", role="unknown", problem="This is no GGUF file."),
        ]
    )
    assert names(model) == ["chat", "odd"]
    model.upsert(entry("chat", role="embedding"))
    assert names(model) == ["odd"]
    assert not is_listed(entry("x", role="lora"))


def test_an_update_keeps_one_row_a_path(model):
    model.set_entries([entry("a"), entry("b")])
    path = Path("/models/a.gguf")
    model.upsert(replace(entry("a"), name="z"))
    assert names(model) == ["b", "z"]
    assert model.row_of(path) == 1
    model.upsert(replace(entry("a"), name="0"))
    assert names(model) == ["0", "b"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.sampled_from("uvwxyz"), st.booleans(), st.booleans()
        )
    )
)
def test_any_order_of_changes_gives_the_sorted_list(steps):
    model = ModelListModel()
    expected: dict[Path, CatalogEntry] = {}
    for file, name, problem, remove in steps:
        new = replace(entry(file, problem="bad" if problem else ""), name=name)
        if remove:
            model.remove(new.path)
            expected.pop(new.path, None)
        else:
            model.upsert(new)
            expected[new.path] = new
    fresh = ModelListModel()
    fresh.set_entries(expected.values())
    assert model.entries == fresh.entries


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"n_expert": 256, "n_expert_used": 8}, "Q4_K_M · MoE 256 experts, 8 used"),
        ({"n_expert": 256}, "Q4_K_M · MoE 256 experts"),
        ({"n_expert": 0}, "Q4_K_M · dense"),
        ({"n_expert": None}, "Q4_K_M"),
        ({"quant": "", "n_expert": 0}, "qwen3moe · dense"),
        ({"problem": "cut short: 8.4 GiB are missing"}, "cut short: 8.4 GiB are missing"),
    ],
)
def test_the_facts_line(model, values, line):
    assert model.facts_line(entry("x", **values)) == line


def test_files_are_counted(model):
    split = replace(entry("x", n_expert=128, n_expert_used=8), files=(Path("1"), Path("2")))
    assert model.facts_line(split) == "Q4_K_M · 2 files · MoE 128, 8 used"


def test_the_verdict_line(model):
    model.set_entries(
        [
            entry("x", n_params=34_700_000_000, n_expert=256, n_active_params=3_000_000_000),
            entry("y", problem="cut short"),
        ]
    )
    rows = [model.index(row, 0).data(ModelListModel.ROW) for row in range(2)]
    assert model.verdict_line(rows[0]) == ("34.7B parameters, 3.0B active", "")
    assert model.verdict_line(rows[1]) == ("cannot be used", "bad")
    model.set_verdict(rows[0].entry.path, "fits", "good")
    assert model.verdict_line(model.index(0, 0).data(ModelListModel.ROW)) == ("fits", "good")


def test_the_best_measured_setting_stands_for_a_good_verdict(model):
    path = Path("/models/x.gguf")
    model.set_best(path, BestSetting(38.0, 24, 40, tuned=True))
    model.set_entries([entry("x")])
    model.set_verdict(path, "fits with 24 layers on the CPU", "good")

    def line():
        return model.verdict_line(model.index(0, 0).data(ModelListModel.ROW))

    assert line() == ("24 of 40 layers on CPU · 38 tok/s", "good")
    tip = model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "Tune measured here · fits with 24 layers" in tip
    # What speaks against it now is what one has to know.
    model.set_verdict(path, "will not run here", "bad")
    assert line() == ("will not run here", "bad")
    model.set_verdict(path, "fits", "good")
    model.set_best(path, None)
    assert line() == ("fits", "good")


def test_verdicts_do_not_measure_the_rows_again(model, qtbot):
    model.set_entries([entry("x"), entry("y")])
    measured = []
    model.dataChanged.connect(lambda *_: measured.append(1))
    with qtbot.waitSignal(model.told):
        model.set_verdict(Path("/models/x.gguf"), "fits", "good")
    with qtbot.waitSignal(model.told):
        model.set_best(Path("/models/x.gguf"), BestSetting(38.0, 24, 40, tuned=True))
    assert not measured


def test_rows_that_stay_are_the_same_rows(model):
    model.set_entries([entry("x"), entry("y")])
    before = model.index(0, 0).data(ModelListModel.ROW)
    model.set_entries([entry("x"), entry("y"), entry("z")])
    assert model.index(0, 0).data(ModelListModel.ROW) is before
    model.set_entries([entry("x", quant="Q8_0"), entry("y")])
    assert model.index(0, 0).data(ModelListModel.ROW).entry.quant == "Q8_0"


def test_a_verdict_outlives_a_new_scan_and_waits_for_its_row(model):
    path = Path("/models/x.gguf")
    model.set_verdict(path, "fits", "good")
    model.upsert(entry("x"))
    model.set_entries([entry("x"), entry("y")])
    assert model.index(0, 0).data(ModelListModel.ROW).verdict == "fits"


def test_unknown_numbers_are_not_zero(model):
    bare = entry("x", size_bytes=None, quant="", arch="")
    model.set_entries([bare])
    assert model.size_text(bare) == ""
    assert model.facts_line(bare) == ""
    assert model.verdict_line(model.index(0, 0).data(ModelListModel.ROW)) == ("", "")


def test_names_in_tooltips_are_escaped(model):
    model.set_entries([entry("x", problem="<img src=http://a.example/x>", hint="a & b")])
    tip = row_data(model, 0, Qt.ItemDataRole.ToolTipRole)
    assert "<img" not in tip
    assert "&lt;img" in tip
    assert "a &amp; b" in tip
    assert "x.gguf" in tip


def test_a_reader_hears_the_whole_row(model):
    model.set_entries([entry("x", n_expert=8, n_expert_used=2)])
    model.set_verdict(Path("/models/x.gguf"), "fits on the GPU", "good")
    spoken = row_data(model, 0, Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "x 1.0 GiB, Q4_K_M · MoE 8 experts, 2 used, fits on the GPU"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["GLM Air", "Qwen (A3B)"]),
        ("qwen", ["Qwen (A3B)"]),
        ("a3b QWEN", ["Qwen (A3B)"]),
        ("(", ["Qwen (A3B)"]),
        ("air q4", ["GLM Air"]),
        ("qwen air", []),
        (".*", []),
    ],
)
def test_the_filter_looks_for_every_word(model, text, found):
    model.set_entries([entry("Qwen (A3B)"), entry("GLM Air", arch="glm4moe")])
    proxy = ModelFilter(model)
    proxy.set_words(text)
    assert names(proxy) == found


def test_quantisations_of_one_label_are_told_by_their_files(model):
    known = {"n_layer": 4, "n_expert": 8}
    twice = [
        replace(entry(f"copy-{number}", **known), name="Alpha", size_bytes=2**30)
        for number in (1, 2)
    ]
    other = replace(entry("x-Q8_0", quant="Q8_0", **known), name="Alpha", size_bytes=2**31)
    model.set_entries([*twice, other])
    assert [model.quant_text(one) for one in (other, *twice)] == [
        "Q8_0",
        "Q4_K_M · copy-1",
        "Q4_K_M · copy-2",
    ]
