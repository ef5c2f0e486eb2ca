"""The settings beside the slider that Tune may also move: threads, ubatch, mmap, which layers.

In: launch choices. Out: other values worth a try, coarse ones first, and the choices with one of
them. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import replace

from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.translate import tr

THREADS, UBATCH, MMAP, WHICH = "threads", "ubatch", "mmap", "which"
#: In the order they are tried: what matters most first.
LEVERS = (THREADS, UBATCH, MMAP, WHICH)

_UBATCHES = (128, 256, 512, 1024, 2048, 4096)

Value = int | bool | str | None


def value_of(choices: LaunchChoices, lever: str) -> Value:
    """Where that lever stands; threads None: llama.cpp gets our default."""
    values: dict[str, Value] = {
        THREADS: choices.context.n_threads,
        UBATCH: choices.context.n_ubatch,
        MMAP: choices.use_mmap,
        WHICH: choices.which,
    }
    return values[lever]


def with_value(choices: LaunchChoices, lever: str, value: Value) -> LaunchChoices:
    """``choices`` with that lever moved."""
    if lever == THREADS:
        assert value is None or isinstance(value, int)
        return replace(choices, context=replace(choices.context, n_threads=value))
    if lever == UBATCH:
        assert isinstance(value, int)
        return replace(choices, context=replace(choices.context, n_ubatch=value))
    if lever == MMAP:
        return replace(choices, use_mmap=bool(value))
    assert isinstance(value, str)
    return replace(choices, which=value)


def coarse_values(choices: LaunchChoices, lever: str, logical_cores: int) -> list[Value]:
    """Values to try beside the present one."""
    now = value_of(choices, lever)
    if lever == THREADS:
        most = min(logical_cores, MAX_THREADS)
        # Half of the hardware threads is, where each core has two, every core once.
        found = {max(1, most // 4), max(1, most // 2), max(1, 3 * most // 4), most}
        return [count for count in sorted(found, reverse=True) if count != now]
    if lever == UBATCH:
        most = max(choices.context.n_ctx, _UBATCHES[0])
        return [size for size in _UBATCHES if size <= most and size != now]
    if lever == MMAP:
        return [not now]
    return ["last" if now == "first" else "first"]


def fine_values(choices: LaunchChoices, lever: str, logical_cores: int) -> list[Value]:
    """Values close to the present one, to try once the coarse ones are decided."""
    now = value_of(choices, lever)
    if lever != THREADS or not isinstance(now, int):
        return []
    step = max(1, logical_cores // 16)
    most = min(logical_cores, MAX_THREADS)
    return [count for count in (now - step, now + step) if 1 <= count <= most]


def levers_document(choices: LaunchChoices) -> dict[str, Value]:
    """All levers as ``--json`` names them."""
    return {lever: value_of(choices, lever) for lever in LEVERS}


def lever_text(lever: str, value: Value) -> str:
    """ "6 threads", "mmap off": a lever in a row's words."""
    if lever == THREADS:
        if value == 1:
            return tr("1 thread")
        return tr("threads by default") if value is None else tr("{n} threads").format(n=value)
    if lever == UBATCH:
        return tr("ubatch {n}").format(n=value)
    if lever == MMAP:
        return tr("file mapped") if value else tr("file not mapped")
    return tr("last layers on the CPU") if value == "last" else tr("first layers on the CPU")


def difference_text(choices: LaunchChoices, other: LaunchChoices) -> str:
    """How ``choices`` differ from ``other`` in their levers; "" where they do not."""
    return ", ".join(
        lever_text(lever, value_of(choices, lever))
        for lever in LEVERS
        if value_of(choices, lever) != value_of(other, lever)
    )
