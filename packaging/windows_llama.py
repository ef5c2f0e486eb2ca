"""llama.cpp for Windows, compiled on Linux by mingw: processor variants and Vulkan as modules.

Standard library only. The result is a folder with ``llama_cpp`` in it, llama-cpp-python's own
Python files and the DLLs, kept in the user's cache. Nothing of Windows is needed: Vulkan's
loader is linked by an import library that is made from the names of its functions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import dev_llama
import dev_system
import dev_vulkan
import llama_source
import windows_dlls
from dev_console import DevError, run_logged, say
from dev_lock import alone

TOOLCHAIN = Path(__file__).resolve().parent / "windows"
TRIPLE = "x86_64-w64-mingw32"
FLAGS = (
    *("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON"),
    *("-DGGML_BACKEND_DL=ON", "-DGGML_CPU_ALL_VARIANTS=ON", "-DGGML_NATIVE=OFF"),
    # llama.cpp's own threads: another runtime library less to carry.
    *("-DGGML_OPENMP=OFF", "-DGGML_VULKAN=ON"),
    *("-DLLAMA_BUILD_COMMON=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_TOOLS=OFF"),
    *("-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF"),
)
RUNTIME = ("libgcc_s_seh-1.dll", "libstdc++-6.dll", "libwinpthread-1.dll")
"""The compiler's libraries, which travel with what it compiled."""

_CORE_FUNCTION = re.compile(r"^VKAPI_ATTR \S+ VKAPI_CALL (vk\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class WindowsBuild:
    """One llama.cpp build for Windows and the folder of the cache that it is kept in."""

    version: str
    folder: Path

    @property
    def package_folder(self) -> Path:
        """What goes on Python's path: a folder with ``llama_cpp`` and nothing else in it."""
        return self.folder / "package"

    @property
    def finished(self) -> bool:
        """Whether it is there."""
        return self.package_folder.is_dir()


def windows_build(version: str) -> WindowsBuild:
    """The build of that llama-cpp-python release, made or not."""
    recipe = [file.read_text(encoding="utf-8") for file in sorted(TOOLCHAIN.glob("*mingw*"))]
    key = dev_llama.key_of(version, "windows", FLAGS, "\n".join(recipe))
    return WindowsBuild(version, dev_llama.cache_folder() / key)


def missing_tools() -> list[dev_system.Need]:
    """What compiling takes and this machine lacks."""
    # A part of llama.cpp runs here while the rest is compiled for Windows.
    needs = [*dev_system.missing_mingw_cxx(), *dev_system.missing_compiler()]
    return [*needs, *dev_system.missing_shader_tools()]


def provide(build: WindowsBuild) -> Path:
    """``build``'s package folder, compiled first where the cache has none (20 min on two cores).

    Raises :class:`DevError`. An interrupted build leaves nothing that a later run would take
    for a finished one.
    """
    cache = build.folder.parent
    with alone(
        cache / "locks" / f"{build.folder.name}.lock", "another run that makes the same build"
    ):
        if not build.finished:
            _compile(build, cache)
    return build.package_folder


def _compile(build: WindowsBuild, cache: Path) -> None:
    log = cache / "logs" / f"{build.folder.name}.txt"
    say(f"      compiling llama.cpp for Windows; its output goes to {log}")
    sdk = dev_vulkan.find_sdk(cache, cache / "logs" / "vulkan-headers.txt")
    with tempfile.TemporaryDirectory(dir=cache, prefix="unfinished-") as making:
        work = Path(making)
        tools = llama_source.make_tools(work, log)
        source = llama_source.fetch_source(build.version, tools, work, log)
        include = private_headers(sdk, work / "vulkan")
        loader = import_library(include, work / "vulkan")
        libraries = compile_libraries(source, tools, work, log, loader)
        package = work / "package"
        collect_package(source, libraries, package)
        shutil.rmtree(build.folder, ignore_errors=True)
        build.folder.mkdir()
        package.replace(build.package_folder)


def private_headers(sdk: dev_vulkan.VulkanSdk, target: Path) -> Path:
    """Vulkan's and SPIR-V's headers and nothing else, in ``target``; returns the include folder.

    The system's whole include folder would give Linux's C headers to the Windows compiler.
    """
    root = Path(os.environ.get("VULKAN_SDK", "/usr"))
    include = sdk.include or root / "include"
    spirv = sdk.spirv_cmake or next(root.glob("*/cmake/SPIRV-Headers"), None)
    if spirv is None:
        raise DevError("SPIR-V's headers are missing (package spirv-headers).")
    for name in ("vulkan", "vk_video", "spirv"):
        shutil.copytree(include / name, target / "include" / name)
    shutil.copytree(spirv, target / "share" / "cmake" / "SPIRV-Headers")
    return target / "include"


def loader_functions(core_header: str) -> list[str]:
    """The functions of Vulkan 1.0 and 1.1 in ``vulkan_core.h``, sorted.

    Every loader of today's drivers exports these. llama.cpp needs 1.2, but asks the loader for all
    later functions by name, while it runs.
    """
    start = core_header.index("#define VK_VERSION_1_0 1")
    end = core_header.index("#define VK_VERSION_1_2 1")
    return sorted(set(_CORE_FUNCTION.findall(core_header[start:end])))


def import_library(include: Path, target: Path) -> Path:
    """An import library for ``vulkan-1.dll``, made by dlltool. Raises :class:`DevError`."""
    header = (include / "vulkan" / "vulkan_core.h").read_text(encoding="utf-8")
    names = "".join(f"    {name}\n" for name in loader_functions(header))
    definition = target / "vulkan-1.def"
    definition.write_text(f"LIBRARY vulkan-1.dll\nEXPORTS\n{names}", encoding="utf-8")
    library = target / "libvulkan-1.dll.a"
    run_tool("dlltool", "-d", str(definition), "-l", str(library))
    return library


def compile_libraries(source: Path, tools: Path, work: Path, log: Path, loader: Path) -> Path:
    """Configures and compiles; returns the folder of the DLLs."""
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    # With it set, ggml switches every SIMD instruction off.
    environment.pop("SOURCE_DATE_EPOCH", None)
    build = work / "build"
    configure = [
        *(str(tools / "cmake"), "-G", "Ninja", "-B", str(build)),
        *("-S", str(source / "vendor" / "llama.cpp")),
        f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN / 'mingw.cmake'}",
        *FLAGS,
        f"-DVulkan_INCLUDE_DIR={work / 'vulkan' / 'include'}",
        f"-DVulkan_LIBRARY={loader}",
        f"-DVulkan_GLSLC_EXECUTABLE={shutil.which('glslc')}",
        f"-DSPIRV-Headers_DIR={work / 'vulkan' / 'share' / 'cmake' / 'SPIRV-Headers'}",
    ]
    run_logged(configure, log=log, what="configuring llama.cpp", environment=environment)
    cores = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    command = [str(tools / "cmake"), "--build", str(build), "--target", "llama", "-j", cores]
    what = f"compiling llama.cpp for Windows ({cores} cores)"
    run_logged(command, log=log, what=what, environment=environment)
    return build / "bin"


def collect_package(source: Path, libraries: Path, target: Path) -> None:
    """llama-cpp-python's Python files with the DLLs in ``lib``, into ``target``.

    Raises :class:`DevError` where a DLL needs another one that neither this folder nor Windows
    has.
    """
    package = target / "llama_cpp"
    shutil.copytree(
        source / "llama_cpp", package, ignore=shutil.ignore_patterns("lib", "__pycache__")
    )
    (package / "lib").mkdir()
    # The compiler's own come with debugging symbols, ten times their size.
    for file in [*sorted(libraries.glob("*.dll")), *map(runtime_library, RUNTIME)]:
        run_tool("strip", "--strip-unneeded", "-o", str(package / "lib" / file.name), str(file))
    check_package(package / "lib")


def check_package(folder: Path) -> None:
    """Raises :class:`DevError` unless the DLLs are complete and load on any Windows 10."""
    names = {file.name for file in folder.glob("*.dll")}
    for wanted in ("libllama.dll", "ggml.dll", "ggml-cpu-x64.dll", "ggml-cpu-haswell.dll"):
        if wanted not in names:
            raise DevError(f"The build for Windows made no {wanted}.")
    lacking = windows_dlls.unmet_needs(folder.glob("*.dll"), present=names)
    # Drivers bring it; without one the module is left out and says so.
    lacking.get("ggml-vulkan.dll", set()).discard("vulkan-1.dll")
    unmet = {name: sorted(missing) for name, missing in lacking.items() if missing}
    if unmet:
        raise DevError(f"These DLLs need others that nothing brings: {unmet}")


def runtime_library(name: str) -> Path:
    """The file of one of the compiler's own DLLs. Raises :class:`DevError`."""
    compiler = dev_system.mingw_cxx()
    if compiler is None:
        raise DevError(f"Missing: {dev_system.MINGW_CXX.what}.")
    answer = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False
    )
    candidates = [Path(answer.stdout.strip()), Path("/usr") / TRIPLE / "lib" / name]
    candidates.append(Path("/usr") / TRIPLE / "bin" / name)
    found = next((path for path in candidates if path.is_absolute() and path.is_file()), None)
    if found is None:
        raise DevError(f"The compiler's {name} was not found.")
    return found


def run_tool(name: str, *arguments: str) -> None:
    """One of mingw's small programs. Raises :class:`DevError` with its words."""
    command = [f"{TRIPLE}-{name}", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise DevError(f"{command[0]} failed: {answer.stderr.strip()}")
