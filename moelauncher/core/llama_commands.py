"""The same placement in llama.cpp's own programs: command lines to copy.

In: facts, placement, context. Out: text for a shell. Pure; any thread. The options are
those of ``common/arg.cpp`` and ``tools/llama-bench/llama-bench.cpp`` in the vendored
llama.cpp; ``--n-cpu-moe N`` counts block indices from 0, leading dense blocks included.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from moelauncher.core.placement import EXPERT_TENSOR_REGEX

if TYPE_CHECKING:
    from moelauncher.core.engine_protocol import ContextSettings
    from moelauncher.core.model_facts import ModelFacts
    from moelauncher.core.placement import Placement

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


def n_cpu_moe(facts: ModelFacts, placement: Placement) -> int | None:
    """The N of ``--n-cpu-moe`` that says the same; None where no N does."""
    chosen = set(placement.cpu_expert_layers)
    if not chosen:
        return 0
    n = max(chosen) + 1
    return n if chosen == {block for block in facts.expert_layers if block < n} else None


def override_argument(placement: Placement) -> str:
    """The value of ``-ot`` for the placement's expert layers, as one pattern."""
    blocks = "|".join(str(block) for block in placement.cpu_expert_layers)
    return rf"blk\.({blocks}){EXPERT_TENSOR_REGEX}=CPU"


def _placement_arguments(
    facts: ModelFacts, placement: Placement, n_cpu_moe_option: str, split_delimiter: str
) -> list[str]:
    everything = facts.n_layer_all + 1
    layers = placement.n_gpu_layers
    if layers >= everything:
        layers = max(_ALL_LAYERS, everything)
    arguments = ["-ngl", str(layers)]
    if placement.patterns:
        n = n_cpu_moe(facts, placement)
        if n is None:
            arguments += ["-ot", override_argument(placement)]
        else:
            arguments += [n_cpu_moe_option, str(n)]
    if placement.tensor_split:
        split = split_delimiter.join(f"{part:.9g}" for part in placement.tensor_split)
        arguments += ["-ts", split]
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
