"""Linux packages of a finished bundle: tar.gz and .deb, and the spares for bare systems.

Standard library only; dpkg-deb makes the .deb where it is installed. Both packages hold the
same tree; only where it lies and who registers it with the desktop differs.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable
from email.utils import formatdate
from pathlib import Path

from bundle_parts import SPARE_LIBRARIES
from dev_console import DevError, say

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "packaging" / "linux"
_LIBRARY_FOLDERS = ("/usr/lib64", "/usr/lib", "/lib64", "/lib")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_GLIBC_SYMBOL = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def collect_spares(target: Path, font_settings: Path) -> Path:
    """What a bare system lacks, from this one: OpenGL's dispatch, xcb, one font and its settings.

    The bundle uses each only where the system has none. Raises :class:`DevError` naming what is
    missing here.
    """
    shutil.rmtree(target, ignore_errors=True)
    (target / "fonts").mkdir(parents=True)
    for name in SPARE_LIBRARIES:
        shutil.copy2(find_library(name), target / name)
    for file in sorted(Path("/usr/share/fonts").rglob("DejaVuSans*.ttf")):
        if file.name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf"):
            shutil.copy2(file, target / "fonts" / file.name)
    if not (target / "fonts" / "DejaVuSans.ttf").exists():
        raise DevError("The font DejaVu Sans is missing (Debian: apt install fonts-dejavu-core).")
    shutil.copy2(font_settings, target / "fonts.conf")
    return target


def find_library(name: str) -> Path:
    """The file of a system library. Raises :class:`DevError`."""
    machine = f"{platform.machine()}-linux-gnu"
    for folder in _LIBRARY_FOLDERS:
        for path in (Path(folder) / machine / name, Path(folder) / name):
            if path.exists():
                return path.resolve()
    raise DevError(f"The library {name} is missing on this machine.")


def make_packages(bundle: Path, output: Path, version: str, icons: Path, work: Path) -> list[Path]:
    """All packages of ``bundle``, in ``output``."""
    output.mkdir(parents=True, exist_ok=True)
    share = make_share(work / "share", version, icons)
    files = [make_archive(bundle, share, output, version)]
    if shutil.which("dpkg-deb"):
        files.append(make_deb(bundle, share, output, version, work / "deb"))
    else:
        say("      no .deb: dpkg-deb is not installed")
    return files


def make_share(target: Path, version: str, icons: Path) -> Path:
    """The tree for ``/usr/share`` or ``~/.local/share``: what a desktop reads."""
    shutil.rmtree(target, ignore_errors=True)
    desktop = (ROOT / "resources" / "desktop" / "moelauncher.desktop").read_text(encoding="utf-8")
    desktop = re.sub(r"^Exec=.*$", "Exec=moelauncher %f", desktop, flags=re.MULTILINE)
    metainfo = filled("io.github.moelauncher.metainfo.xml", version)
    mime = (TEMPLATES / "moelauncher-mime.xml").read_text(encoding="utf-8")
    for name, text in {
        "applications/moelauncher.desktop": desktop,
        "metainfo/io.github.moelauncher.metainfo.xml": metainfo,
        "mime/packages/moelauncher.xml": mime,
    }.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    hicolor = target / "icons" / "hicolor"
    for folder in icons.iterdir():
        shutil.copytree(folder, hicolor / folder.name / "apps")
    (hicolor / "scalable" / "apps").mkdir(parents=True)
    svg = ROOT / "resources" / "icons" / "moelauncher.svg"
    shutil.copy2(svg, hicolor / "scalable" / "apps" / svg.name)
    return target


def filled(template: str, version: str, **values: str) -> str:
    """A template with its ``@WORDS@`` replaced."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    date = time.strftime("%Y-%m-%d", time.gmtime())
    for word, value in {"VERSION": version, "DATE": date, **values}.items():
        text = text.replace(f"@{word}@", value)
    return text


def make_archive(bundle: Path, share: Path, output: Path, version: str) -> Path:
    """The .tar.gz that runs wherever it is unpacked."""
    name = f"moelauncher-{version}-linux-{platform.machine()}"
    target = output / f"{name}.tar.gz"
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for source, inside in (
            (bundle, name),
            (share, f"{name}/share"),
            (TEMPLATES / "add-to-menu.sh", f"{name}/add-to-menu.sh"),
            (TEMPLATES / "README.txt", f"{name}/README.txt"),
        ):
            archive.add(source, inside, filter=_owned_by_root)
    return target


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def make_deb(bundle: Path, share: Path, output: Path, version: str, work: Path) -> Path:
    """The .deb, made by dpkg-deb. Raises :class:`DevError` with its words."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(bundle, work / "usr" / "lib" / "moelauncher", symlinks=True)
    shutil.copytree(share, work / "usr" / "share")
    (work / "usr" / "bin").mkdir()
    (work / "usr" / "bin" / "moelauncher").symlink_to("../lib/moelauncher/moelauncher")
    docs = work / "usr" / "share" / "doc" / "moelauncher"
    docs.mkdir(parents=True)
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8").splitlines()
    indented = "\n".join(f" {line}" if line.strip() else " ." for line in licence)
    copyright_text = filled("copyright", version, LICENSE=indented)
    (docs / "copyright").write_text(copyright_text, encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    (docs / "CHANGELOG.md.gz").write_bytes(gzip.compress(changes, 9, mtime=0))
    entry = debian_changelog(version).encode()
    (docs / "changelog.gz").write_bytes(gzip.compress(entry, 9, mtime=0))
    overrides = work / "usr" / "share" / "lintian" / "overrides" / "moelauncher"
    overrides.parent.mkdir(parents=True)
    shutil.copy2(TEMPLATES / "lintian-overrides", overrides)
    _set_modes(work)
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    size = sum(f.stat().st_size for f in work.rglob("*") if f.is_file() and not f.is_symlink())
    control = filled(
        "control",
        version,
        ARCHITECTURE=architecture,
        SIZE_KIB=str(size // 1024),
        GLIBC=needed_glibc(bundle.rglob("*")),
    )
    (work / "DEBIAN").mkdir(mode=0o755)
    (work / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    target = output / f"moelauncher_{version}_{architecture}.deb"
    answer = subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", work, target],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise DevError(f"dpkg-deb failed: {answer.stderr.strip()}")
    shutil.rmtree(work)
    return target


def debian_changelog(version: str) -> str:
    """The one entry that Debian's tools read; people read CHANGELOG.md."""
    date = formatdate(usegmt=False)
    control = (TEMPLATES / "control").read_text(encoding="utf-8")
    (maintainer,) = re.findall(r"^Maintainer: (.+)$", control, re.MULTILINE)
    return (
        f"moelauncher ({version}) stable; urgency=medium\n\n"
        f"  * What changed is in CHANGELOG.md.\n\n -- {maintainer}  {date}\n"
    )


def _set_modes(root: Path) -> None:
    """Debian's file modes: only programs are executable, whatever this user's umask is."""
    root.chmod(0o755)
    for path in root.rglob("*"):
        if path.is_symlink():
            continue
        if path.is_dir():
            path.chmod(0o755)
        else:
            is_program = os.access(path, os.X_OK) and not re.search(r"\.so(\.|$)", path.name)
            path.chmod(0o755 if is_program else 0o644)


def needed_glibc(files: Iterable[Path]) -> str:
    """The newest glibc version that any of the binaries asks for."""
    newest = (2, 17)
    for file in files:
        if not file.is_file() or file.is_symlink():
            continue
        with file.open("rb") as content:
            if content.read(4) != b"\x7fELF":
                continue
            found = _GLIBC_SYMBOL.findall(content.read())
        newest = max([newest, *((int(major), int(minor)) for major, minor in found)])
    return f"{newest[0]}.{newest[1]}"
