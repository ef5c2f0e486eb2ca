"""What the child process can do: dry runs, and describing the installed build.

In: parameters from JSON. Out: results for JSON; LauncherError with llama.cpp's reason. Runs
in the child only, on its main thread: a call here may end the process.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement
from moelauncher.core.translate import tr
from moelauncher.engine.backend_modules import DEVICES, LOADING
from moelauncher.engine.bandwidth_probe import bandwidth
from moelauncher.engine.child import refusal_reason
from moelauncher.engine.child_bench import bench_open, bench_repeat
from moelauncher.engine.devices import list_devices
from moelauncher.engine.load_log import is_telling
from moelauncher.engine.load_model import check_context, context_params, file_state, longest_context
from moelauncher.engine.native import Native, load_native, log_to
from moelauncher.engine.placement_json import context_from_json, placement_from_json
from moelauncher.engine.placement_overrides import NativePlacement
from moelauncher.engine.vulkan_survey import survey_here
from moelauncher.engine.weight_support import answer_probes

#: What llama.cpp puts before a reason: its function names, and what it was doing.
_PREAMBLE = re.compile(r"^(?:\w+: )*(?:error loading model(?: \w+)*: )*(?:\w+: )*")

_Lines = list[tuple[str, str]]


def warm_up() -> None:
    """Load the native library and start its drivers, which may take seconds."""
    with contextlib.suppress(LauncherError):  # told again by the request that needs it
        load_native(_announce)
        _announce(DEVICES)
        list_devices()
        _announce("")


def _announce(name: str) -> None:
    """The parent reads it if we die: a driver may crash while it starts."""
    os.write(2, f"{LOADING}: {name}\n".encode())


def _dry_run(parameters: Mapping[str, Any]) -> _Lines:
    """Load metadata only, make a context on it, return what llama.cpp said meanwhile."""
    path = Path(parameters["path"])
    placement = placement_from_json(parameters["placement"])
    context = context_from_json(parameters["context"])
    file_state(path)
    native = load_native()
    lines: _Lines = []

    def take(level: str, text: str) -> None:
        if is_telling(level, text):
            lines.append((level, text))
            if level in ("warning", "error"):
                os.write(2, f"{level}: {text}\n".encode())  # the parent reads it if we die

    with log_to(take):
        model = _load_without_weights(native, path, placement)
        if not model:
            raise _refused(lines)
        try:
            _make_and_free_context(native, model, context, lines)
        finally:
            native.lib.llama_model_free(model)
    return lines


def _load_without_weights(native: Native, path: Path, placement: Placement) -> Any:
    lib = native.lib
    native_placement = NativePlacement(native, placement)
    params = lib.llama_model_default_params()
    native_placement.apply(params)
    params.no_alloc = True
    params.load_mode = lib.LLAMA_LOAD_MODE_NONE  # nothing else works without allocation
    return lib.llama_model_load_from_file(os.fsencode(path), params)


def _make_and_free_context(
    native: Native, model: Any, settings: ContextSettings, lines: _Lines
) -> None:
    lib = native.lib
    check_context(settings, longest_context(native, model))
    context = lib.llama_init_from_model(model, context_params(native, settings))
    if not context:
        raise _refused(lines)
    lib.llama_free(context)


def _refused(lines: Sequence[tuple[str, str]]) -> LauncherError:
    return LauncherError(
        tr("llama.cpp refused this file: {reason}").format(reason=refusal_reason(_reason(lines))),
        tr("The file may be damaged, or need a newer llama.cpp."),
        "\n".join(text for level, text in lines if level in ("warning", "error")),
    )


def _reason(lines: Sequence[tuple[str, str]]) -> str:
    """The first error: those that follow only say that something failed."""
    for level, text in lines:
        if level == "error" and (reason := _PREAMBLE.sub("", text).strip()):
            return reason
    return tr("it did not say why")


def _devices(_parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [asdict(device) for device in list_devices()]


def _build(_parameters: Mapping[str, Any]) -> dict[str, Any]:
    native = load_native()
    return {
        "version": native.version,
        "gpu_offload": bool(native.lib.llama_supports_gpu_offload()),
        "system_info": native.lib.llama_print_system_info().decode("utf-8", errors="replace"),
        "library_folder": str(native.library_folder),
        "notes": list(native.notes),
        "modules": asdict(native.modules),
    }


def _vulkan(_parameters: Mapping[str, Any]) -> dict[str, Any]:
    return survey_here()


# numpy is imported where it is needed only: every dry run starts a child.


def _answers_open(parameters: Mapping[str, Any]) -> dict[str, Any]:
    from moelauncher.engine.child_answers import answers_open

    return answers_open(parameters)


def _answers_ask(parameters: Mapping[str, Any]) -> dict[str, Any]:
    from moelauncher.engine.child_answers import answers_ask

    return answers_ask(parameters)


OPERATIONS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "dry_run": _dry_run,
    "devices": _devices,
    "build": _build,
    "bandwidth": bandwidth,
    "vulkan": _vulkan,
    "answers_open": _answers_open,
    "answers_ask": _answers_ask,
    "weight_support": answer_probes,
    "bench_open": bench_open,
    "bench_repeat": bench_repeat,
}
