"""Profiles: what is left free, by the use of the machine."""

from __future__ import annotations

import json

import pytest

from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.memory.profiles import ALL_MINE, GAMING, USUAL, Profiles, profiles_from
from moelauncher.core.units import GIB

GPUS = (PlacementDevice("CUDA0", 11 * GIB, 12 * GIB), PlacementDevice("CUDA1", 4 * GIB, 4 * GIB))


def test_the_built_in_ones() -> None:
    profiles = Profiles()
    assert profiles.leave_free(GPUS) == {}
    assert profiles.choose(ALL_MINE).leave_free(GPUS) == {"CUDA0": 0, "CUDA1": 0}
    assert profiles.choose(GAMING).leave_free(GPUS) == {"CUDA0": 4 * GIB, "CUDA1": 2 * GIB}
    assert profiles.choose("no such").chosen == USUAL


def test_a_changed_margin_belongs_to_its_profile() -> None:
    profiles = Profiles().choose(GAMING).change("CUDA0", 5 * GIB)
    assert profiles.leave_free(GPUS)["CUDA0"] == 5 * GIB
    assert profiles.choose(USUAL).leave_free(GPUS) == {}
    assert profiles.choose(ALL_MINE).choose(GAMING).leave_free(GPUS)["CUDA0"] == 5 * GIB


def test_own_profiles_are_saved_and_deleted() -> None:
    profiles = Profiles().save_as(" video\nwork ", {"CUDA0": GIB})
    assert profiles.chosen == "video work"
    assert profiles.names == (USUAL, GAMING, ALL_MINE, "video work")
    assert profiles.leave_free(GPUS) == {"CUDA0": GIB}
    assert profiles_from(json.loads(json.dumps(profiles.to_stored()))) == profiles
    assert profiles.delete("video work") == Profiles()
    assert Profiles().save_as("  ", {}) == Profiles()


def test_margins_from_before_there_were_profiles_are_kept() -> None:
    assert profiles_from(None, {"CUDA0": GIB}).leave_free(GPUS) == {"CUDA0": GIB}


@pytest.mark.parametrize(
    "stored",
    [None, 5, [], {}, {"chosen": 5}, {"chosen": "x", "margins": []}, {"margins": {"a": {"b": -1}}}],
)
def test_nonsense_leaves_the_usual_one(stored: object) -> None:
    assert profiles_from(stored).leave_free(GPUS) == {}
    assert profiles_from(stored).chosen == USUAL
