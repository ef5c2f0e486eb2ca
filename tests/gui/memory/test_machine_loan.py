"""The machine, lent for a measurement."""

from __future__ import annotations

import pytest

from moelauncher.core.session_state import SessionState
from moelauncher.gui.memory.machine_loan import MachineLoan


class Lender:
    """A session as the loan sees it."""

    def __init__(self, state: SessionState, *, loaded: bool) -> None:
        self.state, self.loaded = state, loaded
        self.said: list[str] = []
        self.loan = MachineLoan(
            lambda: self.state,
            lambda: self.loaded,
            unload=lambda: self.said.append("unload"),
            launch=lambda: self.said.append("launch"),
        )

    def take(self) -> None:
        self.loan.take(lambda: self.said.append("free"))

    def stands(self, state: SessionState, *, loaded: bool) -> None:
        self.state, self.loaded = state, loaded
        self.loan.state_changed(state)


def test_what_was_loaded_leaves_first_and_comes_back() -> None:
    lender = Lender(SessionState.READY, loaded=True)
    lender.take()
    assert lender.said == ["unload"]
    lender.stands(SessionState.UNLOADING, loaded=True)
    assert lender.said == ["unload"]
    lender.stands(SessionState.SELECTED, loaded=False)
    assert lender.said == ["unload", "free"]
    lender.stands(SessionState.SELECTED, loaded=False)
    lender.loan.give_back()
    assert lender.said == ["unload", "free", "launch"]


@pytest.mark.parametrize(
    ("now", "launched"), [(SessionState.SELECTED, []), (SessionState.READY, ["launch"])]
)
def test_where_nothing_was_loaded_nothing_is(now: SessionState, launched: list[str]) -> None:
    lender = Lender(SessionState.SELECTED, loaded=False)
    lender.take()
    lender.state = now
    lender.loan.give_back()
    assert lender.said == ["free", *launched]


def test_it_waits_until_a_load_is_over() -> None:
    lender = Lender(SessionState.LOADING, loaded=False)
    lender.take()
    assert lender.said == []
    lender.stands(SessionState.READY, loaded=True)
    assert lender.said == ["unload"]
