"""Did the load do what the plan said?

In: the request, and what llama.cpp logged. Out: one sentence for each difference. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.translate import tr
from moelauncher.engine.load_log import LoadLog

_MIB = 2**20
#: The promise is 0.1 MiB; the log itself is rounded to 0.01 MiB a buffer.
_TOLERANCE_BYTES = round(0.12 * _MIB)

_OVERRIDDEN = re.compile(r"tensor (\S+) \(.*buffer type overridden to (\S+)")


def find_mismatches(
    request: LoadRequest, log: LoadLog, lines: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """One sentence for each point in which the load is not the plan; none: verified."""
    return (
        *_layers(request, log),
        *_unmoved_patterns(request, lines),
        *_weights(request, log),
    )


def _layers(request: LoadRequest, log: LoadLog) -> list[str]:
    placement = request.placement
    if not placement.devices:
        return []
    if log.offloaded is None:
        return [tr("The plan uses a GPU, but this build of llama.cpp offloads nothing.")]
    done, total = log.offloaded
    planned = min(placement.n_gpu_layers, len(placement.layer_devices))
    if done == planned:
        return []
    return [
        tr("{done} of {total} layers went to the GPU; the plan has {planned}.").format(
            done=done, total=total, planned=planned
        )
    ]


def _unmoved_patterns(request: LoadRequest, lines: Sequence[tuple[str, str]]) -> list[str]:
    placement = request.placement
    if not placement.devices or not placement.patterns:
        return []
    moved = [match[1] for _, text in lines if (match := _OVERRIDDEN.search(text))]
    unmoved = [
        pattern
        for pattern in placement.patterns
        if not any(re.search(pattern, tensor) for tensor in moved)
    ]
    return [
        tr("No tensor was moved to the CPU by the pattern {pattern}.").format(pattern=pattern)
        for pattern in unmoved
    ]


def _weights(request: LoadRequest, log: LoadLog) -> list[str]:
    found = log.bytes_of("weights")
    sentences = []
    for device, expected in request.expected_gpu_weights.items():
        actual = found.get(device, 0)
        if abs(actual - expected) > _TOLERANCE_BYTES:
            sentences.append(
                tr(
                    "{device} holds {actual:.2f} MiB of weights; the plan has {planned:.2f}."
                ).format(device=device, actual=actual / _MIB, planned=expected / _MIB)
            )
    return sentences
