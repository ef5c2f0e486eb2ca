"""Asks the build for its devices once a second, without holding a GPU for the asking.

A process that asks a CUDA driver how much is free keeps some 300 MiB of that GPU until it
ends. So the child is asked only while it is awake for something else, and sent to sleep
when that is over; where a model is loaded this process asks itself, since it has its
context anyway. In between the last answer stands. Any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.units import MIB
from moelauncher.engine.child import Child
from moelauncher.engine.devices import list_devices
from moelauncher.engine.dry_run import describe_devices

#: A child that was not asked for anything else for so long gives its GPU back.
IDLE_S = 20.0
#: Where nobody else can say how much is free, the child is woken this often.
_REFRESH_S = 30.0
#: What the child may take of a GPU for one answer.
_CONTEXT_BYTES = 512 * MIB
#: Backends whose devices cost next to nothing to ask.
_CHEAP_BACKENDS = ("Vulkan", "CPU")


class DeviceWatch:
    """Call :meth:`devices` as often as a second."""

    def __init__(
        self,
        child: Child,
        *,
        clock: Callable[[], float] = time.monotonic,
        ask_here: Callable[[], Sequence[BackendDevice]] = list_devices,
    ) -> None:
        self._child = child
        self._clock = clock
        self._ask_here = ask_here
        self._lock = threading.Lock()
        self._here = False
        self._known: tuple[BackendDevice, ...] | None = None
        self._asked_s = float("-inf")
        self._measured_elsewhere = False
        self._least_free_bytes: int | None = None

    def computes_here(self) -> None:
        """From now on this process has a context on the GPUs, until it ends."""
        self._here = True

    def heard(self, snapshot: MachineSnapshot) -> None:
        """Whether another meter says how full the GPUs are, so that nobody need be asked."""
        known = [gpu for gpu in snapshot.gpus if gpu.device_name is not None]
        self._measured_elsewhere = bool(known) and all(
            gpu.used_bytes is not None and not gpu.source.startswith("llama.cpp") for gpu in known
        )

        free = [gpu.free_bytes for gpu in known if gpu.free_bytes is not None]
        self._least_free_bytes = min(free, default=None)

    def room_to_ask(self) -> bool:
        """Whether the child may wake beside a loaded model without pushing it off its GPU."""
        known, free = self._known, self._least_free_bytes
        if not self._here or known is None or free is None:
            return True
        cheap = all(device.backend in _CHEAP_BACKENDS for device in known)
        return cheap or free >= _CONTEXT_BYTES

    def devices(self) -> Sequence[BackendDevice]:
        """All devices. Raises LauncherError where llama.cpp or a driver does not start."""
        with self._lock:
            if self._known is None:
                return self._ask(lambda: describe_devices(self._child))
            if not any(device.kind != "cpu" for device in self._known):
                return self._known  # nothing that could fill up or be held
            self._child.sleep(idle_s=IDLE_S)
            if self._here:
                return self._ask(self._ask_here)
            if self._child.pid is not None and not self._measured_elsewhere:
                # It is awake; being asked by a meter keeps nobody awake.
                return self._ask(lambda: describe_devices(self._child, counts=False))
            stale = self._clock() - self._asked_s > _REFRESH_S
            if stale and not self._measured_elsewhere:
                return self._ask(lambda: describe_devices(self._child))
            return self._known

    def asked_anew(self) -> Sequence[BackendDevice]:
        """What a child that was just started says, whatever is known. Raises as above."""
        with self._lock:
            return self._ask(lambda: describe_devices(self._child))

    def _ask(self, ask: Callable[[], Sequence[BackendDevice]]) -> Sequence[BackendDevice]:
        self._known = tuple(ask())
        self._asked_s = self._clock()
        return self._known
