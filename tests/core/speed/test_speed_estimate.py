"""Speed of what is not measured: from the model, from replies, from usual hardware, or none."""

from __future__ import annotations

import pytest

from moelauncher.core.library.model_card import card_of
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.model_verdict import verdict_of
from moelauncher.core.speed.chat_speeds import reply_speeds, with_reply
from moelauncher.core.speed.speed_estimate import (
    MODEL,
    ONE_REPLY,
    REPLIES,
    USUAL,
    SpeedBasis,
    basis_of,
    estimate_text,
    estimated_tok_s,
)
from moelauncher.core.speed.speed_prediction import USUAL_HARDWARE, SpeedModel, TokenTraffic
from tests.helpers.planned_models import GIB, gpu, truth_facts

CONTEXT = ContextSettings(n_ctx=4096)
QWEN = "qwen3-30b-a3b-q4_k_m"


def machine(vram_gib: float, ram_gib: float = 32) -> Machine:
    ram = round(ram_gib * GIB)
    return Machine(gpus=(gpu(vram_gib),), ram_free_bytes=ram, ram_total_bytes=ram)


def test_more_vram_is_expected_to_be_faster() -> None:
    facts = truth_facts(QWEN)
    rates = []
    for vram in (4, 8, 12, 24):
        verdict = verdict_of(facts, machine(vram), CONTEXT)
        rates.append(estimated_tok_s(facts, verdict, CONTEXT, basis_of([])))
    assert None not in rates
    assert rates == sorted(rates)  # type: ignore[type-var]
    assert rates[0] != rates[-1]


def test_what_does_not_run_has_no_speed() -> None:
    facts = truth_facts(QWEN)
    none = verdict_of(facts, machine(0.5), CONTEXT)
    assert estimate_text(facts, none, CONTEXT, basis_of([])) == ""
    disk = verdict_of(facts, machine(8, ram_gib=2), CONTEXT)
    assert disk.kind == "disk"
    assert "as fast as the disk" in estimate_text(facts, disk, CONTEXT, basis_of([]))


def test_replies_of_a_machine_teach_what_it_can() -> None:
    # A machine with half the usual speed of RAM.
    slow = SpeedModel(2 / 40e9, 1 / 300e9, 0.5e-3, 40e-6, 0.0)
    reads = [
        TokenTraffic(vram * 1e9, ram * 1e9, 0.0, hops)
        for vram, ram, hops in ((1, 1, 20), (2, 0, 0), (0, 3, 2), (1, 2, 40))
    ]
    basis = basis_of([(one, slow.tok_s(one)) for one in reads])
    assert basis.kind == REPLIES
    other = TokenTraffic(0.5e9, 1.5e9, 0.0, 30)
    assert basis.model.tok_s(other) == pytest.approx(slow.tok_s(other), rel=0.15)


def test_one_reply_scales_the_usual_machine() -> None:
    read = TokenTraffic(1e9, 1e9, 0.0, 10)
    basis = basis_of([(read, USUAL_HARDWARE.tok_s(read) / 3)])
    assert basis.kind == ONE_REPLY
    assert basis.model.tok_s(read) == pytest.approx(USUAL_HARDWARE.tok_s(read) / 3)


def test_the_estimate_says_what_it_is_and_its_error() -> None:
    facts = truth_facts(QWEN)
    verdict = verdict_of(facts, machine(12), CONTEXT)
    fitted = SpeedModel(1 / 50e9, 1 / 400e9, 1e-3, 5e-5, 0.063)
    own = estimate_text(facts, verdict, CONTEXT, SpeedBasis(fitted, MODEL))
    assert own.startswith("about ") and "tok/s" in own and "misses by 6 %" in own
    usual = estimate_text(facts, verdict, CONTEXT, SpeedBasis(USUAL_HARDWARE, USUAL))
    assert "twice as fast or half" in usual
    rows = dict(card_of(facts, machine(12), CONTEXT, basis=basis_of([])).here)
    assert rows["Expected speed"] == usual
    assert "Expected speed" not in dict(card_of(facts, machine(12), CONTEXT).here)


def test_replies_are_stored_with_what_they_read() -> None:
    read = TokenTraffic(1e9, 2e9, 4096.0, 12)
    stored = with_reply(None, "/m.gguf", 30.0, 100, 24, 40, read)
    assert reply_speeds(stored) == [(read, 30.0)]
    # Stored by an older version, or by hand.
    assert reply_speeds({"/m": {"tok_s": 3, "cpu_moe": 0, "of": 0}}) == []
    odd = {"/m": {"tok_s": 3, "cpu_moe": 0, "of": 0, "reads": [1, 2, "x", 4]}, "/n": 5}
    assert reply_speeds(odd) == []
