"""llama.cpp's CUDA module, to be put into a bundle that is there already.

Standard library only. It needs NVIDIA's compiler: an installed toolkit where there is one, else
the toolkit's parts as packages (2 GB with the compiler's own). No GPU is needed to compile.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import llama_source
from dev_console import DevError, run_logged, say

PACKAGES = (
    *("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm"),
    *("nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cublas"),
)
"""NVIDIA's own packages of one toolkit; all their versions must be of one major release."""
MAJOR = 13
ARCHITECTURES = "75-virtual;86-real;89-real;120a-real"
"""Turing and newer: GeForce 20 series on."""
RUNTIME = ("cudart", "cublas", "cublasLt")
"""What the module needs beside it: a gamer's driver does not bring these."""
FLAGS = (
    *("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DGGML_BACKEND_DL=ON"),
    *("-DGGML_NATIVE=OFF", "-DGGML_CUDA=ON", "-DGGML_CUDA_NCCL=OFF", "-DGGML_OPENMP=OFF"),
    *("-DLLAMA_BUILD_COMMON=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_TOOLS=OFF"),
    *("-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF"),
    *("-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN"),
)


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit: its folder, and whether NVIDIA's driver library can be linked against."""

    root: Path
    has_driver_library: bool

    @property
    def compiler(self) -> Path:
        """NVIDIA's compiler."""
        return self.root / "bin" / ("nvcc.exe" if sys.platform == "win32" else "nvcc")


def make_module(version: str, architectures: str, work: Path, output: Path, name: str) -> Path:
    """Compiles the module and packs it with what it needs; returns the archive in ``output``.

    ``version`` is llama-cpp-python's. What ``work`` holds of a run that was stopped is not made
    again: compiling takes an hour and more. Raises :class:`DevError`.
    """
    log = work / "cuda.txt"
    programs = llama_source.make_tools(work, log)
    toolkit = installed_toolkit(os.environ) or packaged_toolkit(programs, work / "toolkit", log)
    say(f"      CUDA toolkit: {toolkit.root}")
    source = llama_source.fetch_source(version, programs, work, log)
    built = compile_module(source, toolkit, programs, architectures, work / "build", log)
    folder = collect(built, toolkit, work / "cuda")
    return pack(folder, output, name)


def installed_toolkit(environ: Mapping[str, str]) -> Toolkit | None:
    """The toolkit of this machine, where it has all that is needed; None without one."""
    named = [Path(environ[key]) for key in ("CUDA_PATH", "CUDA_HOME") if environ.get(key)]
    found = shutil.which("nvcc", path=environ.get("PATH"))
    if found and (root := _root_of(found)):
        named.append(root)
    for root in named:
        toolkit = Toolkit(root, has_driver_library=True)
        if toolkit.compiler.is_file() and all(_runtime_libraries(root, name) for name in RUNTIME):
            return toolkit
    return None


def _root_of(compiler: str) -> Path | None:
    """Where a compiler on the path belongs to: it may be a link, or a script that calls it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.cu"
        source.touch()
        command = [compiler, "--dryrun", "-c", str(source)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"^#\$ TOP=(.+)$", answer.stdout + answer.stderr, re.MULTILINE)
    return Path(match.group(1)).resolve() if match else None


def packaged_toolkit(programs: Path, target: Path, log: Path) -> Toolkit:
    """A toolkit put together from packages. Raises :class:`DevError` where they cannot be had."""
    root = target / "nvidia" / f"cu{MAJOR}"
    toolkit = Toolkit(root, has_driver_library=False)
    if not toolkit.compiler.is_file():
        # Renaming last: a folder of that name holds all of it, however an earlier run ended.
        unfinished = target.with_name(f"unfinished-{target.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        wanted = [f"{package}=={MAJOR}.*" for package in PACKAGES]
        pip = [str(programs / "python"), "-m", "pip", "install", "--progress-bar", "off"]
        try:
            run_logged(
                [*pip, "--no-deps", "--target", str(unfinished), *wanted],
                log=log,
                what="taking NVIDIA's compiler and libraries",
            )
        except DevError as error:
            raise DevError(
                f"{error}\nThe CUDA module needs NVIDIA's compiler. Install the CUDA toolkit (so "
                "that nvcc is on the path, or CUDA_PATH names it) and run this again."
            ) from error
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    _make_linkable(root)
    return toolkit


def _make_linkable(root: Path) -> None:
    """Packages hold programs that cannot be run and libraries without their short names."""
    for program in (*(root / "bin").iterdir(), *(root / "nvvm" / "bin").iterdir()):
        if program.is_file():
            program.chmod(0o755)
    if sys.platform == "win32":
        return
    for library in (root / "lib").glob("*.so.*"):
        short = library.with_name(library.name.split(".so.")[0] + ".so")
        if not short.exists():
            short.symlink_to(library.name)
    if not (root / "lib64").exists():
        (root / "lib64").symlink_to("lib")


def compile_module(
    source: Path, toolkit: Toolkit, programs: Path, architectures: str, build: Path, log: Path
) -> Path:
    """Compiles llama.cpp's CUDA part alone; returns the module's file."""
    cmake = programs / ("cmake.exe" if sys.platform == "win32" else "cmake")
    flags = [*FLAGS, f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"]
    flags += [f"-DCMAKE_CUDA_COMPILER={toolkit.compiler}", f"-DCUDAToolkit_ROOT={toolkit.root}"]
    if not toolkit.has_driver_library:
        # Its memory pool would call the driver directly; without it the runtime's own is used.
        flags.append("-DGGML_CUDA_NO_VMM=ON")
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}
    # With it set, ggml switches every SIMD instruction off.
    environment.pop("SOURCE_DATE_EPOCH", None)
    llama = source / "vendor" / "llama.cpp"
    run_logged(
        [cmake, "-G", "Ninja", "-S", llama, "-B", build, *flags],
        log=log,
        what="looking at the compilers",
        environment=environment,
    )
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    run_logged(
        [cmake, "--build", build, "--target", "ggml-cuda", "--parallel", jobs],
        log=log,
        what=f"compiling llama.cpp's CUDA module for {architectures} ({jobs} at once)",
        environment=environment,
    )
    for file in sorted(build.rglob("*ggml-cuda*")):
        if re.fullmatch(r"(lib)?ggml-cuda\.(so|dll)", file.name):
            return file
    raise DevError(f"The build made no CUDA module. See {log}.")


def collect(module: Path, toolkit: Toolkit, target: Path) -> Path:
    """A folder with the module and NVIDIA's libraries that it asks for."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy2(module, target / module.name)
    for name in RUNTIME:
        library = _runtime_library(toolkit.root, name)
        shutil.copy2(library, target / library.name)
    return target


def _runtime_library(root: Path, name: str) -> Path:
    found = _runtime_libraries(root, name)
    if not found:
        raise DevError(f"The CUDA toolkit in {root} has no library {name}.")
    return found[0]


def _runtime_libraries(root: Path, name: str) -> list[Path]:
    if sys.platform == "win32":
        return sorted(root.rglob(f"{name}64_*.dll"))
    # By the name that the module asks for, which says the major version and no more.
    return sorted((root / "lib64").glob(f"lib{name}.so.*"), key=lambda file: len(file.name))


def pack(folder: Path, output: Path, name: str) -> Path:
    """A zip of ``folder``, named for this system; it is unpacked beside the other modules."""
    output.mkdir(parents=True, exist_ok=True)
    system = "windows" if sys.platform == "win32" else "linux"
    target = output / f"{name}-{system}-{platform.machine().lower()}.zip"
    unfinished = target.with_name(f"unfinished-{target.name}")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{folder.name}/{file.name}")
    return unfinished.replace(target)
