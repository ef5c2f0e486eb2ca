"""The part of llama-cpp-python that a bundle carries, taken out of the loadable build.

Standard library only. A wheel holds each library under three names, as three files, since it
cannot hold links; a bundle gets each once, under the name by which it is asked for.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

#: Asked for by other libraries, so under the name with the major version.
_LINKED = re.compile(r"lib(ggml|ggml-base)\.so\.\d+")
#: Asked for by path: llama_cpp itself loads libllama, the engine loads the modules.
_OPENED = re.compile(r"(libllama|libggml-[\w-]+)\.so")
_MODULE = re.compile(r"(?:lib)?ggml-(?P<name>[\w-]+)\.(?:so|dll)")
_NOT_MODULES = frozenset({"base", "cpu"})
#: Upstream's HTTP server: the bundle starts none.
_UNUSED_FOLDERS = shutil.ignore_patterns("server", "__pycache__", "lib", "*.pyi")


def needed_libraries(names: Iterable[str]) -> list[str]:
    """Of a build's library files, those that a bundle needs, sorted."""
    return sorted(
        name
        for name in names
        if name.endswith(".dll")
        or _LINKED.fullmatch(name)
        or (_OPENED.fullmatch(name) and name != "libggml-base.so")
    )


def modules_of(folder: Path) -> list[str]:
    """The backend modules in a folder of libraries, by their short names, sorted."""
    matches = (_MODULE.fullmatch(file.name) for file in folder.iterdir())
    return sorted({match["name"] for match in matches if match} - _NOT_MODULES)


def make_engine(unpacked: Path, target: Path) -> Path:
    """A folder at ``target`` with the ``llama_cpp`` package of ``unpacked``, each library once."""
    shutil.rmtree(target, ignore_errors=True)
    source = unpacked / "llama_cpp"
    shutil.copytree(source, target / "llama_cpp", ignore=_UNUSED_FOLDERS)
    libraries = target / "llama_cpp" / "lib"
    libraries.mkdir()
    for name in needed_libraries(file.name for file in (source / "lib").iterdir()):
        shutil.copy2(source / "lib" / name, libraries / name)
    return target
