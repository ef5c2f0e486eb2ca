"""Windows' suspend notification: the call returns when the program is ready, or patience ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from moelauncher.meters.windows_sleep import WindowsSleep, register_with_windows

SUSPEND, RESUME, OTHER = 4, 0x12, 0x0A


class System:
    """Registers one listener and calls it, as Windows does, on a thread of its own."""

    def __init__(self) -> None:
        self.told: Callable[[int], None] | None = None
        self.ended = 0

    def register(self, told: Callable[[int], None]) -> Callable[[], None]:
        self.told = told
        return self.end

    def end(self) -> None:
        self.ended += 1

    def tell(self, event: int) -> threading.Thread:
        assert self.told is not None
        thread = threading.Thread(target=self.told, args=(event,))
        thread.start()
        return thread


def test_suspend_waits_until_ready() -> None:
    system, heard = System(), []
    asleep = threading.Event()
    source = WindowsSleep(system.register, patience_s=60.0)
    assert source.start(asleep.set, lambda: heard.append("wake"))
    thread = system.tell(SUSPEND)
    assert asleep.wait(60)
    assert thread.is_alive()
    source.ready()
    thread.join(60)
    assert not thread.is_alive()
    for event in (OTHER, RESUME):
        system.tell(event).join(60)
    assert heard == ["wake"]
    source.close()
    source.close()
    assert system.ended == 1


def test_system_is_not_held_up_for_ever() -> None:
    system = System()
    source = WindowsSleep(system.register, patience_s=0.01)
    source.start(lambda: None, lambda: None)
    thread = system.tell(SUSPEND)
    thread.join(60)
    assert not thread.is_alive()
    source.close()


def test_closing_lets_a_waiting_suspend_go() -> None:
    system, asleep = System(), threading.Event()
    source = WindowsSleep(system.register, patience_s=60.0)
    source.start(asleep.set, lambda: None)
    thread = system.tell(SUSPEND)
    assert asleep.wait(60)
    source.close()
    thread.join(60)
    assert not thread.is_alive()
    system.tell(RESUME).join(60)  # comes too late, and nobody hears it


@pytest.mark.skipif(sys.platform == "win32", reason="what other systems answer")
def test_elsewhere_nothing_is_told() -> None:
    assert register_with_windows(lambda event: None) is None
    source = WindowsSleep()
    assert not source.start(lambda: None, lambda: None)
    source.close()


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_windows_takes_the_registration() -> None:
    end = register_with_windows(lambda event: None)
    if end is not None:
        end()
