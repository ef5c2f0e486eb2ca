"""Loads without weights, in the child process: is the file sound, and what will it take?

In: a file, a placement, context settings. Out: :class:`DryRunResult`, or LauncherError with
llama.cpp's reason. Blocks for 0.1 to 10 s: pool jobs and engine threads only.
"""

from __future__ import annotations

import copy
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import LauncherError, SettingsRefused
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import BackendDevice
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.kv_cache import kv_bytes_per_layer, recurrent_bytes_per_layer
from moelauncher.core.memory.load_comparison import buffer_device
from moelauncher.core.memory.placement import RAM, Placement
from moelauncher.core.translate import tr
from moelauncher.engine.backend_modules import NO_MODULES, LoadedModules
from moelauncher.engine.child import Child, ChildUnavailableError
from moelauncher.engine.load_log import CacheReport, LoadLog, parse_load_log
from moelauncher.engine.placement_json import context_to_json, placement_to_json

_CACHED_RESULTS = 256
#: What every model that runs at all can have.
_PLAIN = ContextSettings(n_ctx=256, kv_type="f16", n_ubatch=8, n_threads=1)
#: A GPU backend takes tensors of some size only, and ggml aborts over a cache beyond that.
_TOO_LARGE_A_PIECE = re.compile(
    r"pre-allocated tensor \(cache_\w+.*?\) in a buffer \((\w+)\) that cannot run"
)

_Outcome = DryRunResult | LauncherError
_cache_lock = threading.Lock()
_caches: WeakKeyDictionary[Child, OrderedDict[object, _Outcome]] = WeakKeyDictionary()


@dataclass(frozen=True)
class InstalledBuild:
    """The llama.cpp build that is installed. ``gpu_offload``: has it any GPU backend?"""

    version: str  # of llama-cpp-python
    gpu_offload: bool
    system_info: str
    library_folder: Path
    notes: tuple[str, ...]
    modules: LoadedModules = NO_MODULES


def dry_run(
    child: Child,
    path: Path,
    placement: Placement,
    context: ContextSettings,
    *,
    facts: ModelFacts | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> DryRunResult:
    """What llama.cpp would allocate for ``path``; remembered while the file stays the same.

    ``facts`` makes the shares exact where a cache lies on several devices and its layers
    differ. With pretended GPUs the child is not asked, and ``problem`` says so. Raises
    LauncherError where llama.cpp refuses the file, SettingsRefused where only these settings,
    ChildUnavailableError where nothing could be learnt, Cancelled.
    """
    if any(device.pretended for device in placement.devices):
        return DryRunResult(problem=tr("GPUs that are not there are planned by formula."))
    key = _key(path, placement, context, facts is not None)
    outcome = _remembered(child, key)
    if outcome is None:
        try:
            outcome = _ask(child, path, placement, context, facts, cancelled)
        except ChildUnavailableError:
            raise
        except LauncherError as error:
            outcome = _of_the_settings(child, path, placement, context, error, cancelled)
        _remember(child, key, outcome)
    if isinstance(outcome, LauncherError):
        # The one that is kept must not hold on to whoever asked, by a traceback.
        raise copy.copy(outcome)
    return outcome


def _of_the_settings(
    child: Child,
    path: Path,
    placement: Placement,
    context: ContextSettings,
    error: LauncherError,
    cancelled: Callable[[], bool],
) -> LauncherError:
    """``error``, or SettingsRefused where a plain context on the same file is accepted."""
    if context == _PLAIN:
        return error
    try:
        _ask(child, path, placement, _PLAIN, None, cancelled)
    except LauncherError:
        return error
    if match := _TOO_LARGE_A_PIECE.search(error.message):
        text = tr("The context is too large for {device}: one layer's part fits no buffer.").format(
            device=match[1]
        )
        hint = tr("Choose a smaller context or a smaller KV type.")
        return SettingsRefused(text, hint, error.message)
    _, prefix, reason = error.message.partition(tr("llama.cpp refused this file: "))
    if not prefix:  # a sentence of ours
        return SettingsRefused(error.message, error.hint, error.details)
    text = tr("llama.cpp does not run this model with these settings: {reason}")
    hint = tr("Choose a smaller context or the KV type f16.")
    return SettingsRefused(text.format(reason=reason), hint, error.details)


def dry_run_or_problem(
    child: Child,
    path: Path,
    placement: Placement,
    context: ContextSettings,
    *,
    facts: ModelFacts | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> DryRunResult:
    """As :func:`dry_run`, with the refusal as ``problem`` of an empty result."""
    try:
        return dry_run(child, path, placement, context, facts=facts, cancelled=cancelled)
    except LauncherError as error:
        return DryRunResult(problem=error.message)


def make_acceptor(child: Child) -> Callable[[LoadRequest, Callable[[], bool]], DryRunResult]:
    """What an engine asks before it loads a file in its own process.

    The function raises LauncherError for a file that must not be loaded, and Cancelled.
    """

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> DryRunResult:
        result = dry_run(
            child, request.path, request.placement, request.context, cancelled=cancelled
        )
        if request.placement.devices:
            # What its drivers hold of the GPUs is needed for the load now.
            child.sleep()
        return result

    return accept


def describe_devices(child: Child, *, counts: bool = True) -> list[BackendDevice]:
    """The devices of the installed build, asked in the child: no driver starts here.

    ``counts`` as in :meth:`Child.request`. Raises LauncherError where llama.cpp or a driver
    does not start.
    """
    return [BackendDevice(**device) for device in child.request("devices", counts=counts)]


def describe_build(child: Child) -> InstalledBuild:
    """Version and abilities of the installed build. Raises LauncherError."""
    values = child.request("build")
    modules = values["modules"]
    return InstalledBuild(
        version=values["version"],
        gpu_offload=values["gpu_offload"],
        system_info=values["system_info"],
        library_folder=Path(values["library_folder"]),
        notes=tuple(values["notes"]),
        modules=LoadedModules(
            cpu_variant=modules["cpu_variant"],
            cpu_usable=tuple(modules["cpu_usable"]),
            gpu=tuple(modules["gpu"]),
            gpu_found=tuple(modules["gpu_found"]),
            not_loaded=modules["not_loaded"],
        ),
    )


def _ask(
    child: Child,
    path: Path,
    placement: Placement,
    context: ContextSettings,
    facts: ModelFacts | None,
    cancelled: Callable[[], bool],
) -> DryRunResult:
    parameters = {
        "path": str(path),
        "placement": placement_to_json(placement),
        "context": context_to_json(context),
    }
    lines = child.request("dry_run", parameters, cancelled=cancelled)
    log = parse_load_log((level, text) for level, text in lines)
    return result_of(log, [device.name for device in placement.devices], context, facts)


def result_of(
    log: LoadLog,
    gpu_names: list[str],
    context: ContextSettings,
    facts: ModelFacts | None = None,
) -> DryRunResult:
    """The log of a load without allocation, as bytes per device. Pure."""
    weights: dict[str, tuple[int, ...]] = {}
    if facts is not None:
        weights["kv"] = kv_bytes_per_layer(facts, context)
        weights["recurrent"] = recurrent_bytes_per_layer(facts)
    sizes: dict[str, dict[str, int]] = {"kv": {}, "recurrent": {}, "compute": {}}
    for cache in log.caches:
        for name, n_bytes in _shares(cache, weights.get(cache.kind, ())).items():
            _add(sizes[cache.kind], gpu_names, name, n_bytes)
    for name, n_bytes in log.bytes_of("compute").items():
        _add(sizes["compute"], gpu_names, name, n_bytes)
    return DryRunResult(
        kv_bytes=sizes["kv"],
        recurrent_bytes=sizes["recurrent"],
        compute_bytes=sizes["compute"],
        output_bytes=sum(log.bytes_of("output").values()),
        n_ctx=log.n_ctx,
        flash_attention=log.flash_attention,
    )


def _shares(cache: CacheReport, layer_bytes: tuple[int, ...]) -> dict[str, int]:
    """A cache's bytes by device: by the layers' own sizes, else alike."""
    devices = cache.layer_devices
    if not devices:
        return {RAM: cache.n_bytes}
    known = all(layer < len(layer_bytes) and layer_bytes[layer] for layer in devices)
    parts: dict[str, int] = {}
    for layer, device in devices.items():
        parts[device] = parts.get(device, 0) + (layer_bytes[layer] if known else 1)
    whole = sum(parts.values())
    return {device: round(cache.n_bytes * part / whole) for device, part in parts.items()}


def _add(sizes: dict[str, int], gpu_names: list[str], name: str, n_bytes: int) -> None:
    """Add to the GPU whose buffer ``name`` is; all others (CPU, pinned host) lie in RAM."""
    device = buffer_device(name, gpu_names)
    sizes[device] = sizes.get(device, 0) + n_bytes


def _key(path: Path, placement: Placement, context: ContextSettings, exact: bool) -> object:
    """What a result depends on. Free memory of the devices, which always changes, is not in it."""
    try:
        status = path.stat()
        state: object = (status.st_size, status.st_mtime_ns)
    except OSError:
        state = None
    names = tuple(device.name for device in placement.devices)
    where = (names, placement.n_gpu_layers, placement.tensor_split, placement.patterns)
    return (path, state, where, context, exact)


def _remembered(child: Child, key: object) -> _Outcome | None:
    with _cache_lock:
        cache = _caches.get(child)
        if cache is None or key not in cache:
            return None
        cache.move_to_end(key)
        return cache[key]


def _remember(child: Child, key: object, outcome: _Outcome) -> None:
    with _cache_lock:
        cache = _caches.setdefault(child, OrderedDict())
        cache[key] = outcome
        while len(cache) > _CACHED_RESULTS:
            cache.popitem(last=False)
