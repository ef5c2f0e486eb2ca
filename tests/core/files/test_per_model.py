"""Results that are kept as long as the model's facts are."""

from __future__ import annotations

import gc

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.files.per_model import once_per_model
from tests.helpers.planned_models import MIB, made_facts


def test_computed_once_for_each_living_model_and_dropped_with_it() -> None:
    computed: list[str] = []

    @once_per_model
    def blocks(facts: ModelFacts) -> int:
        computed.append(facts.arch)
        return facts.n_layer_all

    one = made_facts([(MIB, 0)] * 3, arch="one")
    other = made_facts([(MIB, 0)] * 5, arch="other")
    assert [blocks(one), blocks(other), blocks(one)] == [3, 5, 3]
    assert computed == ["one", "other"]
    del one
    gc.collect()
    # Another model may get the same place in memory; it must not get the old answer.
    again = [made_facts([(MIB, 0)] * 4, arch="again") for _ in range(20)]
    assert {blocks(facts) for facts in again} == {4}
