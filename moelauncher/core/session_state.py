"""The one table behind the window's buttons.

In: the state, an event, and what is selected. Out: the next state, and the
:class:`Controls` that follow from it. Pure; the window only paints them.

Reading the table: a row is a state, its entries are the events that can happen there.
An event that stands in no row is refused (:class:`RefusedEvent`): it would be a fault of
the program, not of the user, since the controls do not offer it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class SessionState(Enum):
    """Where the session stands. The value is the key of the status text."""

    EMPTY = "empty"  # nothing selected, nothing loaded
    SELECTED = "selected"  # a model that can be loaded is selected, nothing is loaded
    UNLOADABLE = "unloadable"  # the selected row has a problem, nothing is loaded
    CHECKING = "checking"  # a child process tries the file
    LOADING = "loading"
    READY = "ready"
    PREFILL = "prefill"  # the prompt is read
    GENERATING = "generating"
    MOVING = "moving"  # a reply waits while its model goes to another placement or context
    STOPPING = "stopping"  # a load or a reply was asked to end
    UNLOADING = "unloading"
    FAILED = "failed"  # the last load failed, nothing is loaded


class Selection(Enum):
    """What the model list has selected."""

    NONE = "none"
    LOADABLE = "loadable"
    PROBLEM = "problem"


class SessionEvent(Enum):
    """What can happen, by the user or by the engine."""

    SELECT = "select"  # the selection changed
    LAUNCH = "launch"  # Launch or Apply
    ACCEPTED = "accepted"  # the child process accepted the file
    LOADED = "loaded"
    LOAD_FAILED = "load_failed"
    RESTORED = "restored"  # the load ended without a new model, the old one is there again
    CANCEL = "cancel"
    CANCELLED = "cancelled"
    SEND = "send"
    FIRST_TOKEN = "first_token"
    PROMPT_GOES_ON = "prompt_goes_on"  # the model moved before the first token
    FINISHED = "finished"  # a reply ended, for whatever reason
    STOP = "stop"
    UNLOAD = "unload"
    UNLOADED = "unloaded"
    ENGINE_LOST = "engine_lost"  # the process that ran the model ended


class RefusedEvent(Exception):  # noqa: N818 - named for what it says
    """An event that cannot happen in this state."""


_S, _E = SessionState, SessionEvent

_RESTING: Mapping[SessionEvent, SessionState] = {
    _E.SELECT: _S.SELECTED,  # or EMPTY, UNLOADABLE: by what is selected
    _E.UNLOADED: _S.SELECTED,  # a late answer to an unload that was asked for twice
    # By the button where it is offered; what was lent comes back whatever is selected by now.
    _E.LAUNCH: _S.CHECKING,
}

_TABLE: Mapping[SessionState, Mapping[SessionEvent, SessionState]] = MappingProxyType(
    {
        _S.EMPTY: _RESTING,
        _S.UNLOADABLE: _RESTING,
        _S.SELECTED: _RESTING,
        _S.FAILED: {**_RESTING, _E.UNLOADED: _S.FAILED},
        _S.CHECKING: {
            _E.SELECT: _S.CHECKING,
            _E.ACCEPTED: _S.LOADING,
            _E.LOADED: _S.READY,  # a change that needs only a new context
            _E.LOAD_FAILED: _S.FAILED,
            _E.RESTORED: _S.READY,
            _E.CANCEL: _S.STOPPING,
            _E.CANCELLED: _S.SELECTED,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.LOADING: {
            _E.SELECT: _S.LOADING,
            _E.ACCEPTED: _S.LOADING,
            _E.LOADED: _S.READY,
            _E.LOAD_FAILED: _S.FAILED,
            _E.RESTORED: _S.READY,
            _E.CANCEL: _S.STOPPING,
            _E.CANCELLED: _S.SELECTED,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.READY: {
            _E.SELECT: _S.READY,
            _E.LAUNCH: _S.CHECKING,
            _E.SEND: _S.PREFILL,
            _E.UNLOAD: _S.UNLOADING,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.PREFILL: {
            _E.SELECT: _S.PREFILL,
            _E.FIRST_TOKEN: _S.GENERATING,
            _E.FINISHED: _S.READY,
            _E.LAUNCH: _S.MOVING,
            _E.STOP: _S.STOPPING,
            _E.UNLOAD: _S.UNLOADING,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.GENERATING: {
            _E.SELECT: _S.GENERATING,
            _E.PROMPT_GOES_ON: _S.PREFILL,
            _E.LAUNCH: _S.MOVING,
            _E.FINISHED: _S.READY,
            _E.STOP: _S.STOPPING,
            _E.UNLOAD: _S.UNLOADING,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.MOVING: {
            _E.SELECT: _S.MOVING,
            _E.ACCEPTED: _S.MOVING,
            # The last piece of a prompt may be read before the model moves.
            _E.FIRST_TOKEN: _S.MOVING,
            _E.LOADED: _S.GENERATING,
            _E.RESTORED: _S.GENERATING,
            _E.CANCEL: _S.MOVING,  # the move ends with RESTORED, the reply goes on
            _E.LOAD_FAILED: _S.FAILED,
            _E.CANCELLED: _S.FAILED,
            _E.FINISHED: _S.LOADING,  # the reply was faster: the move is a load at rest
            _E.STOP: _S.STOPPING,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.STOPPING: {
            _E.SELECT: _S.STOPPING,
            # What ran can still get further before it sees the flag, or end by itself.
            _E.ACCEPTED: _S.STOPPING,
            _E.FIRST_TOKEN: _S.STOPPING,
            _E.LOADED: _S.READY,
            _E.LOAD_FAILED: _S.FAILED,
            _E.RESTORED: _S.READY,
            _E.CANCELLED: _S.SELECTED,
            _E.FINISHED: _S.READY,
            _E.UNLOAD: _S.UNLOADING,
            _E.ENGINE_LOST: _S.FAILED,
        },
        _S.UNLOADING: {
            _E.SELECT: _S.UNLOADING,
            # The reply that was running ends on the way.
            _E.FIRST_TOKEN: _S.UNLOADING,
            _E.FINISHED: _S.UNLOADING,
            _E.LOADED: _S.UNLOADING,
            _E.LOAD_FAILED: _S.UNLOADING,
            _E.RESTORED: _S.UNLOADING,
            _E.CANCELLED: _S.UNLOADING,
            _E.UNLOADED: _S.SELECTED,
            _E.ENGINE_LOST: _S.FAILED,
        },
    }
)

_AT_REST = {
    Selection.NONE: SessionState.EMPTY,
    Selection.LOADABLE: SessionState.SELECTED,
    Selection.PROBLEM: SessionState.UNLOADABLE,
}


def next_state(
    state: SessionState, event: SessionEvent, selection: Selection = Selection.LOADABLE
) -> SessionState:
    """The state after ``event``. ``selection`` is what is selected now: it names the rest.

    Raises RefusedEvent where the event cannot happen.
    """
    after = _TABLE[state].get(event)
    if after is None:
        raise RefusedEvent(f"{event.value} cannot happen in {state.value}")
    return _AT_REST[selection] if after is SessionState.SELECTED else after


def possible_events(state: SessionState) -> frozenset[SessionEvent]:
    """What can happen in ``state``; everything else is refused."""
    return frozenset(_TABLE[state])


class LaunchAction(Enum):
    """What the one large button does now."""

    LAUNCH = "launch"
    APPLY = "apply"
    CANCEL = "cancel"


#: States in which a model is loaded and this session owns it.
LOADED_STATES = frozenset({SessionState.READY, SessionState.PREFILL, SessionState.GENERATING})
#: States in which something runs that can take long.
BUSY_STATES = frozenset(
    {
        SessionState.CHECKING,
        SessionState.LOADING,
        SessionState.PREFILL,
        SessionState.GENERATING,
        SessionState.MOVING,
        SessionState.STOPPING,
        SessionState.UNLOADING,
    }
)
_CANCELLABLE = frozenset({SessionState.CHECKING, SessionState.LOADING, SessionState.MOVING})
_ANSWERING = frozenset({SessionState.PREFILL, SessionState.GENERATING})


@dataclass(frozen=True)
class Controls:
    """What can be pressed. ``why_not`` is the key of the reason that Launch is off, or ""."""

    launch_action: LaunchAction
    launch_enabled: bool
    why_not: str  # "" | "nothing_selected" | "problem" | "no_change" | "answering" | "stopping" ...
    unload_enabled: bool
    send_enabled: bool
    stop_enabled: bool
    busy: bool
    status: str  # key of the status text: SessionState's value


def controls(
    state: SessionState,
    selection: Selection,
    *,
    same_model: bool = False,
    settings_differ: bool = False,
    reload_on_send: bool = False,
) -> Controls:
    """The controls that follow from where the session stands.

    ``same_model``: the selected model is the loaded one. ``settings_differ``: slider,
    context and the like differ from what is loaded. ``reload_on_send``: the GPU was freed,
    and the next message loads the model again.
    """
    action, why_not = _launch(state, selection, same_model, settings_differ)
    waiting = state in (SessionState.SELECTED, SessionState.FAILED)
    return Controls(
        launch_action=action,
        launch_enabled=why_not == "",
        why_not=why_not,
        unload_enabled=state in LOADED_STATES,
        send_enabled=state is SessionState.READY or (waiting and reload_on_send),
        stop_enabled=state in _ANSWERING or state is SessionState.MOVING,
        # Dragging only forecasts, so it is never in the way of what runs.
        busy=state in BUSY_STATES,
        status=state.value,
    )


def _launch(
    state: SessionState, selection: Selection, same_model: bool, settings_differ: bool
) -> tuple[LaunchAction, str]:
    if state in _CANCELLABLE:
        return LaunchAction.CANCEL, ""
    loaded = state in LOADED_STATES
    action = LaunchAction.APPLY if loaded and same_model else LaunchAction.LAUNCH
    if state in (SessionState.STOPPING, SessionState.UNLOADING):
        return action, state.value
    if selection is Selection.NONE:
        return action, "nothing_selected"
    if selection is Selection.PROBLEM:
        return action, "problem"
    if state in _ANSWERING and action is LaunchAction.LAUNCH:
        return action, "answering"  # another model cannot take over a reply
    if action is LaunchAction.APPLY and not settings_differ:
        return action, "no_change"
    return action, ""
