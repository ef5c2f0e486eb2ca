"""The same placement in llama.cpp's own programs: command lines to copy.

In: facts, placement, context. Out: text for a shell. Pure; any thread. The options are
those of ``common/arg.cpp`` and ``tools/llama-bench/llama-bench.cpp`` in the vendored
llama.cpp; ``--n-cpu-moe N`` counts block indices from 0, leading dense blocks included.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moelauncher.core.memory.placement import blocks_at_stop
from moelauncher.core.memory.tensor_names import EXPERT_TENSOR_REGEX

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.placement import Placement
    from moelauncher.core.speed.measurement import Measurement

#: What people write for "all layers"; larger models need a larger number.
_ALL_LAYERS = 99
_DEFAULT_BATCH = 2048
_SAFE_ON_WINDOWS = frozenset("-_./\\:=,+@") | frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)


def llama_server_command(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    *,
    windows: bool | None = None,
) -> str:
    """The ``llama-server`` call, one slot as here, quoted for the system's shell."""
    arguments = [
        "llama-server",
        "-m",
        str(facts.path),
        *_placement_arguments(facts, placement, "--n-cpu-moe", ","),
        "-c",
        str(context.n_ctx),
        "-np",
        "1",
        *_context_arguments(context),
    ]
    return join_arguments(arguments, windows=windows)


def llama_bench_command(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    *,
    windows: bool | None = None,
) -> str:
    """The ``llama-bench`` call with its own usual prompt and reply lengths."""
    arguments = [
        "llama-bench",
        "-m",
        str(facts.path),
        *_placement_arguments(facts, placement, "-ncmoe", "/"),
        *_context_arguments(context),
        "-p",
        "512",
        "-n",
        "128",
    ]
    return join_arguments(arguments, windows=windows)


def measured_commands(
    facts: ModelFacts, measured: Measurement, n_repeats: int, *, windows: bool | None = None
) -> tuple[str, ...]:
    """The ``llama-bench`` calls that measure the same: prompt, and decode at that depth.

    The file by its name only: whoever gets the text has it somewhere else.
    """
    setting = measured.setting
    chosen = blocks_at_stop(facts, setting.cpu_moe, setting.which)
    arguments = ["llama-bench", "-m", facts.path.name]
    arguments += _layer_arguments(facts, setting.n_gpu_layers, setting.tensor_split, "/")
    if chosen and setting.gpus:
        arguments += _expert_arguments(facts, chosen, "-ncmoe")
    arguments += ["-ctk", setting.kv_type, "-ctv", setting.kv_type]
    arguments += ["-b", str(setting.n_ubatch), "-ub", str(setting.n_ubatch)]
    threads = measured.threads or setting.n_threads
    arguments += ["-t", str(threads)] if threads is not None else []
    if measured.flash_attention is not None:
        arguments += ["-fa", "on" if measured.flash_attention else "off"]
    arguments += ["-lm", "mmap" if setting.use_mmap else "none", "-r", str(n_repeats)]
    tests = []
    if measured.prompt_tok_s is not None:
        tests.append(["-p", str(measured.n_prompt), "-n", "0"])
    if measured.tok_s is not None:
        tests.append(["-p", "0", "-n", str(measured.n_generated), "-d", str(measured.depth)])
    return tuple(join_arguments([*arguments, *test], windows=windows) for test in tests)


def _expert_arguments(facts: ModelFacts, blocks: Sequence[int], option: str) -> list[str]:
    """The experts of these blocks on the CPU: by ``option``, as one pattern where no N says it."""
    n = n_cpu_moe(facts, blocks)
    return ["-ot", _override(blocks)] if n is None else [option, str(n)]


def n_cpu_moe(facts: ModelFacts, blocks: Sequence[int]) -> int | None:
    """The N of ``--n-cpu-moe`` that moves the experts of these blocks; None where no N does."""
    chosen = set(blocks)
    if not chosen:
        return 0
    n = max(chosen) + 1
    return n if chosen == {block for block in facts.expert_layers if block < n} else None


def _override(blocks: Sequence[int]) -> str:
    names = "|".join(str(block) for block in blocks)
    return rf"blk\.({names}){EXPERT_TENSOR_REGEX}=CPU"


def _placement_arguments(
    facts: ModelFacts, placement: Placement, n_cpu_moe_option: str, split_delimiter: str
) -> list[str]:
    arguments = _layer_arguments(
        facts, placement.n_gpu_layers, placement.tensor_split, split_delimiter
    )
    if placement.patterns:
        arguments += _expert_arguments(facts, placement.cpu_expert_layers, n_cpu_moe_option)
    return arguments


def _layer_arguments(
    facts: ModelFacts, n_gpu_layers: int, tensor_split: Sequence[float], delimiter: str
) -> list[str]:
    everything = facts.n_layer_all + 1
    layers = n_gpu_layers
    if layers >= everything:
        layers = max(_ALL_LAYERS, everything)
    arguments = ["-ngl", str(layers)]
    if tensor_split:
        arguments += ["-ts", delimiter.join(f"{part:.9g}" for part in tensor_split)]
    return arguments


def _context_arguments(context: ContextSettings) -> list[str]:
    arguments = ["-ctk", context.kv_type, "-ctv", context.kv_type]
    if context.n_ubatch > _DEFAULT_BATCH:
        arguments += ["-b", str(context.n_ubatch)]
    arguments += ["-ub", str(context.n_ubatch)]
    if context.n_threads is not None:
        arguments += ["-t", str(context.n_threads)]
    return arguments


def join_arguments(arguments: list[str], *, windows: bool | None = None) -> str:
    """Arguments as one line for a POSIX shell, or for cmd and PowerShell on Windows."""
    if windows is None:
        windows = sys.platform == "win32"
    if not windows:
        return shlex.join(arguments)
    return " ".join(_quote_for_windows(argument) for argument in arguments)


def _quote_for_windows(argument: str) -> str:
    if argument and set(argument) <= _SAFE_ON_WINDOWS:
        return argument
    return '"' + argument.replace('"', '\\"') + '"'
