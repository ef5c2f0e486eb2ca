"""How fast main memory can be read: measured, in about a second.

In: how many threads read. Out: bytes a second. Experts in RAM are read once a token, so this is
what their speed hangs on. Blocks for as long as it is told to; any thread, but nothing else
should be running, since whatever reads memory meanwhile takes its part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MIB = 1 << 20
#: More than any processor's cache holds, over all threads.
BUFFER_BYTES = 512 * MIB
#: With less than this free, measuring would push other programs out of memory.
_LEAST_FREE_BYTES = 4 * BUFFER_BYTES
_PIECE_BYTES = 8 * MIB
#: The best of several short rounds: what disturbs one seldom disturbs all.
_ROUNDS = 4


def measure_ram_bandwidth(
    n_threads: int,
    *,
    free_bytes: int,
    seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
    cancelled: Callable[[], bool] = lambda: False,
) -> float | None:
    """Bytes a second that ``n_threads`` read together; None where there is too little memory,
    or it was cancelled. ``free_bytes``: what of main memory is free.
    """
    if free_bytes < _LEAST_FREE_BYTES:
        return None
    # Filled, not zeros: pages that were never written are all one page of the system's.
    pieces = _PIECE_BYTES // 8
    memory = np.ones((BUFFER_BYTES // _PIECE_BYTES, pieces), dtype=np.float64)
    shares = np.array_split(memory, max(1, n_threads))
    rates = []
    for _ in range(_ROUNDS):
        if cancelled():
            return None
        rates.append(_round([share for share in shares if len(share)], seconds / _ROUNDS, clock))
    return max(rates)


def _round(shares: list[Any], seconds: float, clock: Callable[[], float]) -> float:
    start = threading.Barrier(len(shares) + 1)
    counts = [0] * len(shares)
    spans = [(0.0, 0.0)] * len(shares)

    def read(at: int) -> None:
        start.wait()
        begun = clock()
        while True:
            for piece in shares[at]:
                np.add.reduce(piece)  # without the interpreter's lock
                counts[at] += piece.nbytes
            ended = clock()
            if ended - begun >= seconds:
                break
        spans[at] = (begun, ended)

    threads = [
        threading.Thread(target=read, args=(at,), name=f"bandwidth-{at}", daemon=True)
        for at in range(len(shares))
    ]
    for thread in threads:
        thread.start()
    start.wait()
    for thread in threads:
        thread.join()
    elapsed = max(ended for _, ended in spans) - min(begun for begun, _ in spans)
    return sum(counts) / elapsed if elapsed > 0 else 0.0
