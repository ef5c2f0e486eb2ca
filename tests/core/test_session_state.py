"""The state table behind the buttons: every state, every event, every control."""

from __future__ import annotations

import itertools

import pytest

from moelauncher.core.session_state import (
    BUSY_STATES,
    LOADED_STATES,
    Controls,
    LaunchAction,
    RefusedEvent,
    Selection,
    SessionEvent,
    SessionState,
    controls,
    next_state,
    possible_events,
)

S, E = SessionState, SessionEvent


@pytest.mark.parametrize(("state", "event"), list(itertools.product(SessionState, SessionEvent)))
def test_every_event_moves_or_is_refused(state: SessionState, event: SessionEvent) -> None:
    if event in possible_events(state):
        assert isinstance(next_state(state, event), SessionState)
    else:
        with pytest.raises(RefusedEvent, match=f"{event.value} cannot happen in {state.value}"):
            next_state(state, event)


def run(state: SessionState, *events: SessionEvent) -> SessionState:
    for event in events:
        state = next_state(state, event)
    return state


@pytest.mark.parametrize(
    ("start", "events", "end"),
    [
        (S.EMPTY, (E.SELECT, E.LAUNCH, E.ACCEPTED, E.LOADED), S.READY),
        (S.READY, (E.SEND, E.FIRST_TOKEN, E.FINISHED), S.READY),
        (S.READY, (E.SEND, E.FINISHED), S.READY),  # failed before the first token
        (S.READY, (E.SEND, E.STOP, E.FIRST_TOKEN, E.FINISHED), S.READY),
        (S.READY, (E.UNLOAD, E.UNLOADED), S.SELECTED),
        (S.GENERATING, (E.UNLOAD, E.FINISHED, E.UNLOADED), S.SELECTED),
        (S.READY, (E.LAUNCH, E.ACCEPTED, E.CANCEL, E.CANCELLED), S.SELECTED),
        (S.READY, (E.LAUNCH, E.CANCEL, E.RESTORED), S.READY),
        (S.GENERATING, (E.LAUNCH, E.ACCEPTED, E.LOADED), S.GENERATING),
        (S.PREFILL, (E.LAUNCH, E.FIRST_TOKEN, E.LOADED, E.FINISHED), S.READY),
        (S.GENERATING, (E.LAUNCH, E.CANCEL, E.RESTORED), S.GENERATING),
        (S.GENERATING, (E.LAUNCH, E.FINISHED, E.LOADED), S.READY),  # the reply was faster
        (S.GENERATING, (E.LAUNCH, E.STOP, E.FINISHED), S.READY),
        (S.GENERATING, (E.LAUNCH, E.LOAD_FAILED), S.FAILED),
        (S.SELECTED, (E.LAUNCH, E.LOAD_FAILED, E.LAUNCH), S.CHECKING),
        (S.UNLOADABLE, (E.LAUNCH, E.ACCEPTED, E.LOADED), S.READY),  # what was lent comes back
        (S.LOADING, (E.CANCEL, E.LOADED), S.READY),  # the cancel came too late
        (S.FAILED, (E.SELECT,), S.SELECTED),
    ],
)
def test_a_day_at_work(
    start: SessionState, events: tuple[SessionEvent, ...], end: SessionState
) -> None:
    assert run(start, *events) is end


@pytest.mark.parametrize(
    ("selection", "state"),
    [
        (Selection.NONE, S.EMPTY),
        (Selection.LOADABLE, S.SELECTED),
        (Selection.PROBLEM, S.UNLOADABLE),
    ],
)
def test_the_selection_names_the_rest(selection: Selection, state: SessionState) -> None:
    assert next_state(S.UNLOADING, E.UNLOADED, selection) is state
    assert next_state(S.EMPTY, E.SELECT, selection) is state


@pytest.mark.parametrize("state", sorted(BUSY_STATES | {S.READY}, key=lambda s: s.value))
def test_selecting_another_row_disturbs_nothing(state: SessionState) -> None:
    for selection in Selection:
        assert next_state(state, E.SELECT, selection) is state


def test_no_busy_state_is_a_trap() -> None:
    resting = set(SessionState) - BUSY_STATES
    for state in BUSY_STATES:
        reached, edge = {state}, {state}
        while edge:
            edge = {
                next_state(one, event) for one in edge for event in possible_events(one)
            } - reached
            reached |= edge
        assert reached & resting, state


@pytest.mark.parametrize("state", sorted(LOADED_STATES, key=lambda s: s.value))
def test_a_lost_engine_is_always_told(state: SessionState) -> None:
    assert next_state(state, E.ENGINE_LOST) is S.FAILED


def every_case() -> list[tuple[SessionState, Selection, bool, bool, bool]]:
    flags = (False, True)
    return list(itertools.product(SessionState, Selection, flags, flags, flags))


@pytest.mark.parametrize(("state", "selection", "same", "differ", "reload"), every_case())
def test_what_can_be_pressed_can_happen(
    state: SessionState, selection: Selection, same: bool, differ: bool, reload: bool
) -> None:
    shown = controls(
        state,
        selection,
        same_model=same,
        settings_differ=differ,
        reload_on_send=reload,
    )
    possible = possible_events(state)
    if shown.launch_enabled:
        wanted = E.CANCEL if shown.launch_action is LaunchAction.CANCEL else E.LAUNCH
        assert wanted in possible
    if shown.stop_enabled:
        assert E.STOP in possible
    if shown.unload_enabled:
        assert E.UNLOAD in possible
    if shown.send_enabled:
        assert E.SEND in possible or (reload and E.LAUNCH in possible)
    assert shown.launch_enabled == (shown.why_not == "")
    assert shown.status == state.value


def shown(state: SessionState, selection: Selection = Selection.LOADABLE, **more: bool) -> Controls:
    return controls(state, selection, **more)


def test_nothing_selected() -> None:
    empty = shown(S.EMPTY, Selection.NONE)
    assert (empty.launch_action, empty.launch_enabled) == (LaunchAction.LAUNCH, False)
    assert empty.why_not == "nothing_selected"
    assert not (empty.send_enabled or empty.stop_enabled or empty.unload_enabled)


def test_a_row_with_a_problem_cannot_be_launched() -> None:
    assert shown(S.UNLOADABLE, Selection.PROBLEM).why_not == "problem"
    assert shown(S.READY, Selection.PROBLEM).launch_enabled is False


def test_apply_waits_for_a_change() -> None:
    same = shown(S.READY, same_model=True)
    assert (same.launch_action, same.why_not) == (LaunchAction.APPLY, "no_change")
    changed = shown(S.READY, same_model=True, settings_differ=True)
    assert (changed.launch_action, changed.launch_enabled) == (LaunchAction.APPLY, True)


def test_another_model_is_launched_not_applied() -> None:
    other = shown(S.READY)
    assert (other.launch_action, other.launch_enabled) == (LaunchAction.LAUNCH, True)


@pytest.mark.parametrize("state", [S.CHECKING, S.LOADING, S.MOVING])
def test_what_runs_long_can_be_cancelled(state: SessionState) -> None:
    assert shown(state).launch_action is LaunchAction.CANCEL
    assert shown(state).launch_enabled


def test_while_answering() -> None:
    answering = shown(S.GENERATING, same_model=True, settings_differ=True)
    assert answering.stop_enabled
    assert not answering.send_enabled
    assert (answering.launch_action, answering.launch_enabled) == (LaunchAction.APPLY, True)
    assert answering.unload_enabled
    assert shown(S.GENERATING, same_model=True).why_not == "no_change"
    assert shown(S.GENERATING).why_not == "answering", "another model waits for the reply"


def test_while_a_reply_waits_for_its_model() -> None:
    moving = shown(S.MOVING, same_model=True, settings_differ=True)
    assert (moving.launch_action, moving.launch_enabled) == (LaunchAction.CANCEL, True)
    assert moving.stop_enabled
    assert not moving.send_enabled


def test_a_freed_gpu_takes_messages() -> None:
    assert shown(S.SELECTED).send_enabled is False
    assert shown(S.SELECTED, reload_on_send=True).send_enabled is True
