"""What compiling llama.cpp with Vulkan needs, and where this machine has it.

Standard library only. llama.cpp needs Vulkan headers from 1.3.272 on. A Debian whose own are
older takes the two header packages of the next release: downloaded by apt through a source
list derived from the machine's own, and unpacked into the cache; nothing is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dev_console import DevError, run_logged

NEEDED_HEADERS = (1, 3, 272)
_NEXT_RELEASE = {"bookworm": "trixie"}
_HEADER_PACKAGES = ("libvulkan-dev", "spirv-headers")


@dataclass(frozen=True)
class VulkanSdk:
    """Headers and loader to compile against; ``None`` where CMake finds them by itself."""

    include: Path | None = None
    spirv_cmake: Path | None = None
    loader: Path | None = None

    @property
    def cmake_flags(self) -> tuple[str, ...]:
        """The flags that name what CMake would not find by itself."""
        named = {
            "Vulkan_INCLUDE_DIR": self.include,
            "Vulkan_LIBRARY": self.loader,
            "SPIRV-Headers_DIR": self.spirv_cmake,
        }
        return tuple(f"-D{name}={path}" for name, path in named.items() if path)


def headers_version(core_header: str) -> tuple[int, int, int] | None:
    """The version that a ``vulkan_core.h`` says it is."""
    patch = re.search(r"#define VK_HEADER_VERSION (\d+)", core_header)
    complete = re.search(
        r"#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(\d+, (\d+), (\d+),", core_header
    )
    if not (patch and complete):
        return None
    return int(complete.group(1)), int(complete.group(2)), int(patch.group(1))


def installed_headers() -> tuple[int, int, int] | None:
    """The version of the system's Vulkan headers, ``None`` without any."""
    roots = [Path("/usr")]
    if sdk := os.environ.get("VULKAN_SDK"):
        roots.insert(0, Path(sdk))
    for root in roots:
        core_header = root / "include" / "vulkan" / "vulkan_core.h"
        if core_header.exists():
            return headers_version(core_header.read_text(encoding="utf-8", errors="replace"))
    return None


def has_headers() -> bool:
    """Whether the system's own headers serve."""
    version = installed_headers()
    return version is not None and version >= NEEDED_HEADERS and _system_spirv()


def next_release() -> tuple[str, str] | None:
    """This system's code name and that of the release to borrow headers from, if there is one."""
    try:
        release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return None
    named = re.search(r"^VERSION_CODENAME=(\S+)$", release, re.MULTILINE)
    codename = named.group(1) if named else ""
    following = _NEXT_RELEASE.get(codename)
    return (codename, following) if following and shutil.which("apt-get") else None


def find_sdk(cache: Path, log: Path) -> VulkanSdk:
    """Headers, SPIR-V headers and loader, downloaded into ``cache`` where the system's are old.

    Raises :class:`DevError` naming what is missing.
    """
    if not shutil.which("glslc"):
        raise DevError("The shader compiler glslc is missing (package glslc, on Arch shaderc).")
    if has_headers():
        return VulkanSdk(loader=None if _has_link_name() else _loader())
    root = cache / "vulkan-headers"
    if not (root / "usr" / "include" / "vulkan" / "vulkan_core.h").exists():
        _download_headers(root, log)
    return VulkanSdk(
        include=root / "usr" / "include",
        spirv_cmake=root / "usr" / "share" / "cmake" / "SPIRV-Headers",
        loader=_loader(),
    )


def next_release_source(sources: Iterable[str], codename: str, following: str) -> str | None:
    """A source list for ``following``, made from the machine's own lists for ``codename``.

    Understands both of apt's formats; ``None`` when no list serves ``codename`` itself.
    """
    for text in sources:
        for stanza in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.+)$", stanza, re.MULTILINE))
            if codename in fields.get("Suites", "").split() and "deb" in fields.get("Types", ""):
                kept = {"Types": "deb", "URIs": fields["URIs"], "Suites": following}
                kept["Components"] = "main"
                if "Signed-By" in fields:
                    kept["Signed-By"] = fields["Signed-By"]
                return "".join(f"{name}: {value}\n" for name, value in kept.items())
        line = re.search(
            rf"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+{re.escape(codename)}\s", text, re.MULTILINE
        )
        if line:
            signed = re.search(r"signed-by=(\S+)", line.group(1) or "")
            key = f"Signed-By: {signed.group(1)}\n" if signed else ""
            head = f"Types: deb\nURIs: {line.group(2)}\nSuites: {following}\n"
            return f"{head}Components: main\n{key}"
    return None


def _download_headers(root: Path, log: Path) -> None:
    needed = ".".join(str(part) for part in NEEDED_HEADERS)
    releases = next_release()
    if releases is None:
        raise DevError(
            f"The Vulkan headers are missing or older than {needed}. "
            "Install the Vulkan SDK (packages libvulkan-dev and spirv-headers on Debian)."
        )
    codename, following = releases
    lists = [Path("/etc/apt/sources.list")]
    lists += sorted(Path("/etc/apt/sources.list.d").glob("*"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in lists if path.is_file()]
    source = next_release_source(texts, codename, following)
    if source is None:
        raise DevError(f"No source list of this machine serves {codename}; cannot derive one.")
    work = root.with_name(root.name + "-unfinished")
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("parts", "lists/partial", "archives/partial", "root"):
        (work / folder).mkdir(parents=True)
    (work / "parts" / "next.sources").write_text(source, encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": work / "parts",
        "Dir::State::lists": work / "lists",
        "Dir::Cache::archives": work / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        # apt's own user could not write into a private folder.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    run_logged([*apt, "update"], log=log, what="reading the next release's package list")
    run_logged(
        [*apt, "download", *_HEADER_PACKAGES], log=log, what="taking its headers", folder=work
    )
    for archive in work.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, work / "root"], check=True)
    shutil.rmtree(root, ignore_errors=True)
    (work / "root").replace(root)
    shutil.rmtree(work, ignore_errors=True)


def _system_spirv() -> bool:
    return any(Path("/usr").glob("*/cmake/SPIRV-Headers")) or any(
        Path("/usr").glob("*/*/cmake/SPIRV-Headers")
    )


def _library_folders() -> list[Path]:
    return [Path("/usr/lib64"), Path("/usr/lib"), *sorted(Path("/usr/lib").glob("*-linux-gnu*"))]


def _has_link_name() -> bool:
    return any((folder / "libvulkan.so").exists() for folder in _library_folders())


def _loader() -> Path | None:
    # The link name libvulkan.so comes only with the old headers' package; this file serves too.
    for folder in _library_folders():
        if (folder / "libvulkan.so.1").exists():
            return folder / "libvulkan.so.1"
    return None
