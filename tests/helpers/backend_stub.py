"""Backend modules for tests, compiled on the spot, beside the real ggml of this environment.

A stand-in module has the two functions that a real one has. It cannot compute: what is tested
is which one is taken, and what becomes of one that fails.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = r"""
#include <stdlib.h>
#include <stddef.h>
static const char *name(void *reg) { return "Stub"; }
static size_t count(void *reg) { return DEVICES; }
static void *device(void *reg, size_t index) { return NULL; }
static void *address(void *reg, const char *symbol) { return NULL; }
static struct {
    int version; const char *(*name)(void *); size_t (*count)(void *);
    void *(*device)(void *, size_t); void *(*address)(void *, const char *); void *context;
} registry = { VERSION, name, count, device, address, NULL };
int ggml_backend_score(void) { return SCORE; }
void *ggml_backend_init(void) { if (CRASH) abort(); return START ? &registry : NULL; }
"""


def make_module(
    folder: Path,
    name: str,
    *,
    score: int = 1,
    crash: bool = False,
    start: bool = True,
    version: int = 2,
    n_devices: int = 0,
) -> Path:
    """``libggml-NAME.so`` in ``folder``."""
    target = folder / f"libggml-{name}.so"
    source = folder / "stub.c"
    source.write_text(SOURCE, encoding="utf-8")
    defines = {"SCORE": score, "CRASH": int(crash), "START": int(start), "VERSION": version}
    defines["DEVICES"] = n_devices
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    flags = [f"-D{key}={value}" for key, value in defines.items()]
    subprocess.run(
        [compiler, "-shared", "-fPIC", *flags, "-o", str(target), str(source)], check=True
    )
    source.unlink()
    return target


def real_libraries(folder: Path) -> Path:
    """``folder`` with links to this environment's llama.cpp libraries in it."""
    spec = importlib.util.find_spec("llama_cpp")
    assert spec is not None and spec.submodule_search_locations
    for file in (Path(spec.submodule_search_locations[0]) / "lib").iterdir():
        (folder / file.name).symlink_to(file)
    return folder
