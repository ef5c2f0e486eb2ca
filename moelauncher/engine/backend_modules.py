"""The loadable parts of a llama.cpp build: one module a GPU interface, one a processor generation.

In: the folder of the native library, and the user's wishes from the environment. Out:
:class:`LoadedModules`: what was loaded, and what was not and why. A build that has
everything linked into one library has no modules; then nothing happens here. Only the
given folder is looked at, never the current one. Any thread, once a process.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moelauncher.core.translate import tr

#: Which processor variant to load, by its name ("haswell"); unset or "auto": the best one.
CPU_VARIANT_VARIABLE = "MOELAUNCHER_CPU_VARIANT"
#: Which GPU interfaces to load, by their names ("vulkan", "cuda"), separated by commas; "none",
#: or unset and "auto" for all that are there.
BACKENDS_VARIABLE = "MOELAUNCHER_BACKENDS"
#: Modules that were found to crash on this machine; written by the process that found out.
BROKEN_VARIABLE = "MOELAUNCHER_BROKEN_BACKENDS"

#: What the child says on standard error before each step that may end it.
LOADING = "loading backend module"
#: In place of a module's name: all are loaded, and their drivers are asked for devices.
DEVICES = "(devices)"
#: In place of names, for the variable: no GPU module at all.
EVERY_GPU = "every-gpu"

# ggml-backend-impl.h of the pinned release: a module of another one has other structs.
_API_VERSION = 2
_MODULE = re.compile(r"(?:lib)?ggml-(?P<name>[\w.+-]+?)\.(?:so|dll|dylib)")
_CPU_PREFIX = "cpu-"
_NOT_MODULES = frozenset({"base", "cpu"})


@dataclass(frozen=True)
class LoadedModules:
    """What became of the modules. All empty for a build without any."""

    #: The processor variant in use; None where the build has none to choose from.
    cpu_variant: str | None = None
    #: Variants that this processor can run, best first.
    cpu_usable: tuple[str, ...] = ()
    #: GPU interfaces that were loaded, and all that the build brings.
    gpu: tuple[str, ...] = ()
    gpu_found: tuple[str, ...] = ()
    #: Module name to the reason, one sentence, why it is not loaded.
    not_loaded: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, as sentences."""
        return tuple(self.not_loaded.values())


NO_MODULES = LoadedModules()


def load_modules(
    ggml: Any,
    folder: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    announce: Callable[[str], None] = lambda _: None,
) -> LoadedModules:
    """Load what is in ``folder`` into ``ggml``'s registry: GPUs first, then the processor.

    A module that does not load is told of and left out; so is a forced variant that this
    processor cannot run, and then the best one is used. ``announce`` gets a module's name
    before it is touched: a driver may end the process.
    """
    modules = find_modules(folder)
    if not modules:
        return NO_MODULES
    not_loaded: dict[str, str] = {}
    gpu = []
    for name in sorted(name for name in modules if not name.startswith(_CPU_PREFIX)):
        reason = _unwanted(name, environ)
        if reason is None:
            announce(name)
            # Who put a folder beside the others wants its GPUs, and is told where there are none.
            reason = _register(ggml, modules[name], needs_device=modules[name].parent != folder)
        if reason is None:
            gpu.append(name)
        elif reason:
            not_loaded[name] = tr("The module “{name}” is not used: {reason}").format(
                name=name, reason=reason
            )
    scores = {
        name.removeprefix(_CPU_PREFIX): _score(modules[name])
        for name in modules
        if name.startswith(_CPU_PREFIX)
    }
    usable = sorted((v for v, score in scores.items() if score), key=lambda v: (-scores[v], v))
    variant = _choose(usable, scores, environ, not_loaded)
    if variant is not None:
        announce(_CPU_PREFIX + variant)
        reason = _register(ggml, modules[_CPU_PREFIX + variant])
        if reason is not None:
            not_loaded[_CPU_PREFIX + variant] = reason
            variant = None
    return LoadedModules(
        cpu_variant=variant,
        cpu_usable=tuple(usable),
        gpu=tuple(gpu),
        gpu_found=tuple(sorted(name for name in modules if not name.startswith(_CPU_PREFIX))),
        not_loaded=not_loaded,
    )


def wish_for(backends: str, cpu_variant: str, environ: MutableMapping[str, str]) -> None:
    """Put the user's settings into ``environ``, for this process and its children.

    What is in the environment already, from whoever started the program, weighs more.
    """
    for variable, value in ((BACKENDS_VARIABLE, backends), (CPU_VARIANT_VARIABLE, cpu_variant)):
        if value.strip().lower() not in ("", "auto"):
            environ.setdefault(variable, value)


def find_modules(folder: Path) -> dict[str, Path]:
    """Module name ("vulkan", "cpu-haswell") to its file. Libraries with versions are links.

    A module that brings libraries of its own, as CUDA's does, may lie in a folder of its name.
    """
    found: dict[str, Path] = {}
    below = (file for inner in _files(folder) for file in _files(inner))
    for file in (*_files(folder), *below):
        match = _MODULE.fullmatch(file.name)
        if match is None or match["name"] in _NOT_MODULES:
            continue
        if file.parent == folder or file.parent.name == match["name"]:
            found.setdefault(match["name"], file)
    # Without a single processor variant this is an ordinary build, whose libraries are linked.
    return found if any(name.startswith(_CPU_PREFIX) for name in found) else {}


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # also where it is none
        return []


def names_of(text: str) -> frozenset[str]:
    """The names in a list as the variables hold it."""
    return frozenset(name for part in text.split(",") if (name := part.strip().lower()))


def listed(names: Iterable[str]) -> str:
    """The opposite of :func:`names_of`."""
    return ",".join(sorted(names))


def _unwanted(name: str, environ: Mapping[str, str]) -> str | None:
    """Why ``name`` must not be loaded; "" where the user does not want it; None to load it."""
    if {name, EVERY_GPU} & names_of(environ.get(BROKEN_VARIABLE, "")):
        return tr("it crashed here before. Update the graphics driver, then run the doctor.")
    wish = names_of(environ.get(BACKENDS_VARIABLE, ""))
    return None if not wish or "auto" in wish or name in wish else ""


def _choose(
    usable: list[str],
    scores: Mapping[str, int],
    environ: Mapping[str, str],
    not_loaded: dict[str, str],
) -> str | None:
    wish = environ.get(CPU_VARIANT_VARIABLE, "").strip().lower()
    if wish in usable:
        return wish
    if wish not in ("", "auto"):
        if wish in scores:
            text = tr("This processor cannot run the variant “{name}” of llama.cpp.")
        else:
            text = tr("This build of llama.cpp has no processor variant “{name}”.")
        not_loaded[_CPU_PREFIX + wish] = (
            text.format(name=wish)
            + " "
            + tr("It can run: {names}.").format(names=", ".join(usable))
        )
    return usable[0] if usable else None


def _score(file: Path) -> int:
    """How well this processor and that variant go together; 0: not at all."""
    try:
        function = _open(file).ggml_backend_score
    except (OSError, AttributeError):
        return 0
    function.restype = ctypes.c_int
    return int(function())


class _Registry(ctypes.Structure):
    """The beginning of ggml_backend_reg."""

    _fields_ = [
        ("api_version", ctypes.c_int),
        ("get_name", ctypes.c_void_p),
        ("get_device_count", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)),
    ]


def _register(ggml: Any, file: Path, *, needs_device: bool = False) -> str | None:
    """Put the module into the registry; the reason, a sentence, where that fails."""
    # Not by ggml_backend_load: that takes no path outside the code page of Windows, and says
    # nothing there about why a library does not load.
    try:
        start = _open(file).ggml_backend_init
    except OSError as error:
        reason = loader_words(error).replace(f"{file.parent}{os.sep}", "")
        return tr("its library does not load ({reason}).").format(reason=reason)
    except AttributeError:
        return tr("{file} is no module of llama.cpp.").format(file=file.name)
    start.restype = ctypes.c_void_p
    address = start()
    if not address:
        return tr("its driver is missing or does not start.")
    registry = _Registry.from_address(address)
    if registry.api_version != _API_VERSION:
        return tr("it belongs to another version of llama.cpp.")
    if needs_device and not registry.get_device_count(address):
        # CUDA's module starts without a driver, too.
        return tr("it finds no GPU, or its driver is missing or too old.")
    ggml.ggml_backend_register(ctypes.c_void_p(address))
    return None


def _open(file: Path) -> ctypes.CDLL:
    if sys.platform == "win32":
        # Only the module's own folder and the system's are searched, never the current one.
        search_dll_load_dir, search_default_dirs = 0x0100, 0x1000
        return ctypes.CDLL(str(file), winmode=search_dll_load_dir | search_default_dirs)
    return ctypes.CDLL(str(file))


def loader_words(error: OSError) -> str:
    """What the system's loader said of a library, without a full stop."""
    # In a package PyInstaller puts its own guess over them.
    return str(error.__cause__ or error).strip().rstrip(".")
