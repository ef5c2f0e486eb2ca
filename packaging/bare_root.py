"""A Debian without Python, Qt or compiler, in a folder, and programs run inside it.

Standard library only; needs root and debootstrap. The system is kept in the build cache, with
and without Mesa's software Vulkan driver. What is run there sees the network of this
machine, so also its X server, and of its files only the folders that are named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import dev_llama
import dev_vulkan
from dev_console import DevError, run_logged

VULKAN_PACKAGES = ("libvulkan1", "mesa-vulkan-drivers")
_FORBIDDEN = ("python3", "libqt6core6", "libqt5core5a", "gcc", "libegl1", "fontconfig-config")

#: Mounts live in the new namespace only, so they are gone with the last process in it.
_ENTER = """
set -eu
root=$1; shift
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
shift
exec chroot "$root" "$@"
"""


def can_make() -> str:
    """Why no bare root can be made here; "" where one can."""
    if sys.platform == "win32":
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it needs root"
    if not shutil.which("debootstrap"):
        return "debootstrap is not installed"
    if not shutil.which("unshare"):
        return "unshare is not installed"
    return ""


def make_root(*, vulkan: bool) -> Path:
    """The folder of the bare system, made at the first call. Raises :class:`DevError`."""
    cache = dev_llama.cache_folder()
    codename = _codename()
    plain = cache / f"bare-root-{codename}"
    if not plain.exists():
        _debootstrap(plain, codename)
    if not vulkan:
        return plain
    with_driver = cache / f"bare-root-{codename}-vulkan"
    if not with_driver.exists():
        making = with_driver.with_name(with_driver.name + "-unfinished")
        shutil.rmtree(making, ignore_errors=True)
        subprocess.run(["cp", "--archive", plain, making], check=True)
        apt = ["apt-get", "install", "--yes", "--no-install-recommends", *VULKAN_PACKAGES]
        run_logged(
            enter_command(making, {}, ["env", "DEBIAN_FRONTEND=noninteractive", *apt]),
            log=cache / "logs" / "bare-root-vulkan.txt",
            what="installing the software Vulkan driver in the bare root",
        )
        making.replace(with_driver)
    return with_driver


def enter_command(
    root: Path,
    folders: dict[Path, str],
    command: Sequence[str],
    read_only: Collection[Path] = (),
) -> list[str]:
    """The command that runs ``command`` inside ``root``; ``folders``: here to path there.

    Nothing can be written into those of them that are ``read_only``, not even by root.
    """
    mounts = [
        part
        for here, there in folders.items()
        for part in (str(here), there, "ro" if here in read_only else "rw")
    ]
    inside = ["sh", "-c", _ENTER, "enter", str(root), *mounts, "--", *command]
    return ["unshare", "--mount", *inside]


def _codename() -> str:
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    for line in release.splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    raise DevError("This system does not say which release it is.")


def _debootstrap(target: Path, codename: str) -> None:
    lists = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in lists if file.is_file()]
    source = dev_vulkan.next_release_source(texts, codename, codename)
    if source is None:
        raise DevError(f"No source list of this machine serves {codename}.")
    fields = dict(line.split(": ", 1) for line in source.splitlines())
    making = target.with_name(target.name + "-unfinished")
    shutil.rmtree(making, ignore_errors=True)
    run_logged(
        ["debootstrap", "--variant=minbase", codename, making, fields["URIs"]],
        log=dev_llama.cache_folder() / "logs" / "bare-root.txt",
        what="making a bare Debian",
    )
    (making / "etc" / "apt" / "sources.list").write_text(
        f"deb {fields['URIs']} {codename} main\n", encoding="utf-8"
    )
    present = [
        name
        for name in _FORBIDDEN
        if any(
            (making / "var" / "lib" / "dpkg" / "info" / f"{name}{ending}.list").exists()
            for ending in ("", ":amd64", ":arm64")
        )
    ]
    if present:
        raise DevError(f"The bare root is not bare: it has {', '.join(present)}.")
    making.replace(target)
