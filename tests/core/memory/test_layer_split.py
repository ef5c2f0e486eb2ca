"""What programs that split by whole layers would choose."""

from __future__ import annotations

from moelauncher.core.memory.auto_placement import Machine, forecast_on, gpus_fit
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.layer_split import layer_split, no_layer_split
from moelauncher.core.memory.place_model import place
from tests.helpers.planned_models import MIB, gpu, made_facts

GIB = 1 << 30
CONTEXT = ContextSettings()
FACTS = made_facts([(20 * MIB, 0)] + [(20 * MIB, 480 * MIB)] * 23)


def test_as_many_whole_layers_as_fit() -> None:
    machine = Machine(gpus=(gpu(8),))
    split = layer_split(FACTS, machine, CONTEXT)
    assert split is not None
    assert 0 < split.n_gpu_layers < FACTS.n_layer_all
    assert split.cpu_moe == 0 and not split.patterns
    assert split.ram_layers == FACTS.n_layer_all + 1 - split.n_gpu_layers
    assert gpus_fit(forecast_on(FACTS, split, CONTEXT, machine))
    one_more = place(FACTS, machine.gpus, cpu_moe=0, n_gpu_layers=split.n_gpu_layers + 1)
    assert not gpus_fit(forecast_on(FACTS, one_more, CONTEXT, machine))


def test_two_gpus_hold_more() -> None:
    one = layer_split(FACTS, Machine(gpus=(gpu(4, "A"),)), CONTEXT)
    two = layer_split(FACTS, Machine(gpus=(gpu(4, "A"), gpu(4, "B"))), CONTEXT)
    assert one is not None and two is not None
    assert two.n_gpu_layers > one.n_gpu_layers


def test_where_there_is_none_of_its_own() -> None:
    dense = made_facts([(400 * MIB, 0)] * 24)
    for facts, gpus, words in (
        (FACTS, (), "Without a GPU"),
        (FACTS, (gpu(64),), "fits on the GPU"),
        (dense, (gpu(4),), "no experts"),
    ):
        assert layer_split(facts, Machine(gpus=gpus), CONTEXT) is None
        assert words in no_layer_split(facts, Machine(gpus=gpus), CONTEXT)
    assert no_layer_split(FACTS, Machine(gpus=(gpu(8),)), CONTEXT) == ""
