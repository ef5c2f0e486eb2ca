"""Windows' power plan and mode, as one profile."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from moelauncher.core.speed.conditions import Conditions, condition_notes
from moelauncher.meters.power_profile import power_profile
from moelauncher.meters.windows_power import PowerSchemes, profile_of_schemes
from tests.helpers.windows_stub import build_stub

SAVER, BALANCED = "a1841308-3541-4fab-bc81-f71556f20b4a", "381b4222-f694-41f0-9685-ff5bb260df2e"
FASTEST = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"
MAKERS_OWN = "11111111-2222-3333-4444-555555555555"
NO_MODE, EFFICIENT = "00000000-0000-0000-0000-000000000000", "961cc777-2547-4f9d-8174-7d86181b8a7a"
FAST_MODE = "ded574b5-45a0-4f42-8737-46345c09c238"


@dataclass
class Schemes:
    """Windows with that plan and that mode."""

    active: str | None
    overlay: str | None

    def plan(self) -> str | None:
        return self.active

    def mode(self) -> str | None:
        return self.overlay


@pytest.mark.parametrize(
    ("plan", "mode", "profile"),
    [
        (SAVER, FAST_MODE, "power-saver"),  # the mode counts in balanced plans only
        (FASTEST, EFFICIENT, "performance"),
        (BALANCED, NO_MODE, "balanced"),
        (BALANCED, EFFICIENT, "power-saver"),
        (BALANCED, FAST_MODE, "performance"),
        (BALANCED, None, "balanced"),
        (MAKERS_OWN, EFFICIENT, "power-saver"),
        (MAKERS_OWN, MAKERS_OWN, ""),
        (None, None, ""),
    ],
)
def test_plan_and_mode_are_one_profile(plan: str | None, mode: str | None, profile: str) -> None:
    assert profile_of_schemes(Schemes(plan, mode)) == profile


def test_a_saving_profile_is_a_note() -> None:
    saving = profile_of_schemes(Schemes(BALANCED, EFFICIENT))
    assert condition_notes(Conditions(power_profile=saving)) == (
        "The power profile is “power-saver”.",
    )
    assert condition_notes(Conditions(power_profile="balanced")) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="asked of Windows itself below")
def test_the_real_calls_against_a_compiled_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ctypes.CDLL(str(build_stub(tmp_path)))
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: library, raising=False)
    schemes = PowerSchemes()
    assert (schemes.plan(), schemes.mode()) == (BALANCED, EFFICIENT)
    assert ctypes.c_int.in_dll(library, "stub_freed").value == 1


def test_a_windows_without_these_calls_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: object(), raising=False)
    assert (PowerSchemes().plan(), PowerSchemes().mode()) == (None, None)


def test_this_computer_has_a_name_for_it_or_none() -> None:
    assert power_profile() == power_profile().strip()
