"""How many real cores this machine has, and how many threads to compute with.

In: the system's CPU topology. Out: counts. Hyper-threads share one core's arithmetic, so
they are not counted. Any thread; the answer does not change while the program runs.
"""

from __future__ import annotations

import os
from pathlib import Path

#: Where Linux describes its CPUs.
LINUX_TOPOLOGY = Path("/sys/devices/system/cpu")
#: ggml's own limit (GGML_MAX_N_THREADS); far more end the process.
MAX_THREADS = 512


def logical_cores() -> int:
    """Hardware threads of the machine, at least 1."""
    return max(os.cpu_count() or 1, 1)


def cores_of_topology(folder: Path, allowed: set[int]) -> int | None:
    """Distinct cores of the ``allowed`` CPUs under a sysfs ``folder``; None if it is silent."""
    cores = set()
    for cpu in allowed:
        try:
            siblings = (folder / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(
                encoding="utf-8"
            )
        except OSError:
            return None
        cores.add(siblings.strip())
    return len(cores) or None


def default_threads(cores: int) -> int:
    """One core is left to the window and the system: ``cores`` - 1, at least 1."""
    return max(cores - 1, 1)
