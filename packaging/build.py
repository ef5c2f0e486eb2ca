"""Builds what people download: one command a system, nothing before.

    python3 packaging/build.py linux         one-folder bundle, tar.gz and .deb, smoke test
    python3 packaging/build.py windows       the same as .zip and installer; on Linux by Wine
    python3 packaging/build.py cuda-module   llama.cpp's CUDA module, to add to a bundle

Needs what ``dev.py`` needs. The compiled llama.cpp is kept in the user's cache; everything
else is made in ``build/`` and ends in ``dist/``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import build_linux
import build_windows
import bundle_build
import cuda_module
import dev_llama
import dev_system
from bundle_build import ROOT
from dev_console import DevError, format_elapsed, say


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    started_s = time.monotonic()
    try:
        BUILDS[options.system](options)
    except DevError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130
    say(f"Done in {format_elapsed(time.monotonic() - started_s)}.")
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument(
        "system",
        choices=tuple(BUILDS),
        help="windows-engine: only llama.cpp for Windows, on Linux, to package it on Windows",
    )
    parser.add_argument(
        "--yes", action="store_true", help="install missing system packages without asking"
    )
    parser.add_argument(
        "--only-bundle", action="store_true", help="stop after the folder and its smoke test"
    )
    parser.add_argument(
        "--only-packages",
        action="store_true",
        help="windows: packages of the folder that is there, say after signing its programs",
    )
    parser.add_argument("--no-smoke", action="store_true", help="do not run what was built")
    parser.add_argument(
        "--no-sample", action="store_true", help="leave the sample model out (98 MB less)"
    )
    parser.add_argument(
        "--cuda-architectures",
        default=cuda_module.ARCHITECTURES,
        help="cuda-module: the GPU generations, as CMake names them (86 alone compiles quickest)",
    )
    return parser.parse_args(arguments)


def build_cuda_module(options: argparse.Namespace) -> None:
    """The CUDA module with the libraries it needs, as a zip; it is not run."""
    dev_system.provide(
        dev_system.missing_compiler(),
        yes=options.yes,
        log=dev_llama.cache_folder() / "logs" / "system-packages.txt",
    )
    work = ROOT / "build" / "cuda"
    work.mkdir(parents=True, exist_ok=True)
    name = f"moelauncher-{bundle_build.program_version()}-cuda-module"
    file = cuda_module.make_module(
        bundle_build.pinned_llama(), options.cuda_architectures, work, ROOT / "dist", name
    )
    size = bundle_build.megabytes(file.stat().st_size)
    say(f"      {file.relative_to(ROOT)}: {size}; it was not run")


BUILDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "linux": build_linux.build_linux,
    "windows": build_windows.build_windows,
    "windows-engine": build_windows.build_engine,
    "cuda-module": build_cuda_module,
}

if __name__ == "__main__":
    sys.exit(main())
