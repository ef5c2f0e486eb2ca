"""gui/library/model_heading.py: what a model is, in one line."""

from __future__ import annotations

from dataclasses import replace

from moelauncher.gui.library.model_heading import ModelHeading
from tests.helpers.planned_models import MIB, made_facts


def test_a_hybrid_model(qtbot) -> None:
    heading = ModelHeading()
    qtbot.addWidget(heading)
    kinds = dict.fromkeys(range(3), "recurrent")
    facts = replace(
        made_facts([(MIB, MIB)] * 5, kinds=kinds, n_not_loaded=1, ctx_train=262144),
        name="Qwen3.6-35B-A3B",
        n_params=34_700_000_000,
        n_active_params=3_000_000_000,
    )
    heading.set_facts(facts)
    assert heading.name.text() == "Qwen3.6-35B-A3B"
    details = heading.details.text()
    assert "34.7B, 3.0B active" in details
    assert "3 recurrent + 1 attention layers" in details
    assert "256k" in details
    assert "8 experts, 2 used" in details


def test_a_dense_model(qtbot) -> None:
    heading = ModelHeading()
    qtbot.addWidget(heading)
    facts = replace(made_facts([(MIB, 0)] * 4), n_expert=0, n_expert_used=0)
    heading.set_facts(facts)
    assert "4 layers" in heading.details.text()
    assert "expert" not in heading.details.text()
    heading.set_facts(None)
    assert heading.name.text() == "No model selected"
    assert heading.details.text() == ""


def test_a_long_name_is_cut_not_the_window(qtbot) -> None:
    heading = ModelHeading()
    qtbot.addWidget(heading)
    heading.resize(300, 48)
    heading.set_text("a name " * 40, "<i>details</i>")
    heading.show()
    heading.grab()
    assert heading.minimumSizeHint().width() < 300
    assert heading.name.toolTip().startswith("a name a name")
    assert heading.details.text() == "<i>details</i>"
