"""Windows packages of a finished bundle: the .zip, and the installer that makensis makes.

Standard library only; nothing here needs Windows. Both packages hold the same files.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import bundle_parts
import dev_system
import windows_dlls
from dev_console import DevError, run_logged

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "packaging" / "windows"
#: Of a path inside the bundle. Windows' own limit is 260 for the whole, the user's folder included.
LONGEST_PATH = 150
_EARLIEST = (1980, 1, 1, 0, 0, 0)

_VERSION_RESOURCE = """\
VSVersionInfo(
    ffi=FixedFileInfo(
        filevers={numbers}, prodvers={numbers}, mask=0x3F, flags=0x0, OS=0x40004, fileType=0x1,
        subtype=0x0, date=(0, 0),
    ),
    kids=[
        StringFileInfo([StringTable("040904B0", [
            StringStruct("CompanyName", "MoE Launcher contributors"),
            StringStruct("FileDescription", "MoE Launcher"),
            StringStruct("FileVersion", {version!r}),
            StringStruct("InternalName", "moelauncher"),
            StringStruct("LegalCopyright", "MIT License"),
            StringStruct("ProductName", "MoE Launcher"),
            StringStruct("ProductVersion", {version!r}),
        ])]),
        VarFileInfo([VarStruct("Translation", [0x0409, 0x04B0])]),
    ],
)
"""


def version_numbers(version: str) -> tuple[int, int, int, int]:
    """The four numbers that Windows wants of a version such as ``0.1.0`` or ``1.2.0rc1``."""
    found = [int(number) for number in re.findall(r"\d+", re.split(r"[a-z+-]", version)[0])]
    first, second, third, fourth, *_ = [*found, 0, 0, 0, 0]
    return first, second, third, fourth


def version_resource(version: str) -> str:
    """The version resource of both programs, as PyInstaller reads it."""
    return _VERSION_RESOURCE.format(numbers=version_numbers(version), version=version)


def check_bundle(bundle: Path) -> None:
    """Raises :class:`DevError` where the bundle would not run on a Windows of its own.

    It holds nothing of Wine nor a stand-in for a Windows library, brings every DLL that its parts
    are linked to and Windows has not, and no path in it is too long.
    """
    files = sorted(file for file in bundle.rglob("*") if file.is_file())
    names = [file.relative_to(bundle).as_posix() for file in files]
    long = [name for name in names if len(name) > LONGEST_PATH]
    if long:
        raise DevError(f"Paths too long for Windows: {', '.join(long[:5])}")
    stand_ins = [name for name in names if bundle_parts.is_stand_in(name)]
    if stand_ins:
        raise DevError(
            f"Windows' own library must not be in the bundle: {', '.join(stand_ins)}. The one that "
            "tests under Wine use does nothing."
        )
    binaries = [file for file in files if file.suffix.lower() in (".dll", ".pyd", ".exe")]
    of_wine = [file.name for file in binaries if windows_dlls.is_of_wine(file.read_bytes())]
    if of_wine:
        raise DevError(f"The bundle holds libraries of Wine: {', '.join(of_wine)}")
    unmet = windows_dlls.unmet_needs(binaries, present=(file.name for file in binaries))
    unmet.get("ggml-vulkan.dll", set()).discard("vulkan-1.dll")
    lacking = {name: sorted(missing) for name, missing in unmet.items() if missing}
    if lacking:
        raise DevError(f"The bundle lacks libraries: {lacking}")


def make_packages(bundle: Path, output: Path, version: str, icon: Path, work: Path) -> list[Path]:
    """The finished files in ``output``. Raises :class:`DevError`."""
    output.mkdir(parents=True, exist_ok=True)
    name = f"moelauncher-{version}-windows-x86_64"
    shutil.copy2(TEMPLATES / "README.txt", bundle / "README.txt")
    return [
        make_zip(bundle, output / f"{name}.zip", name),
        make_installer(bundle, output / f"{name}-setup.exe", version, icon, work),
    ]


def make_zip(bundle: Path, target: Path, root: str) -> Path:
    """The .zip that runs wherever it is unpacked; one folder called ``root`` is in it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for file in sorted(bundle.rglob("*")):
            if not file.is_file():
                continue
            inside = f"{root}/{file.relative_to(bundle).as_posix()}"
            entry = zipfile.ZipInfo.from_file(file, inside, strict_timestamps=False)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.date_time = max(entry.date_time, _EARLIEST)
            with file.open("rb") as content, archive.open(entry, "w", force_zip64=False) as packed:
                shutil.copyfileobj(content, packed, 1 << 20)
    return target


def removals(names: Iterable[str]) -> str:
    """NSIS commands that delete exactly the files ``names`` (with ``/``), then empty folders."""
    files = sorted(names)
    parents = {folder for name in files for folder in PurePosixPath(name).parents}
    folders = {str(folder) for folder in parents if folder.name}
    lines = [f'Delete "$INSTDIR\\{_escaped(name)}"' for name in files]
    deepest_first = sorted(folders, key=lambda folder: (-folder.count("/"), folder))
    lines += [f'RMDir "$INSTDIR\\{_escaped(folder)}"' for folder in deepest_first]
    return "\n".join(lines) + "\n"


def _escaped(name: str) -> str:
    return name.replace("/", "\\").replace("$", "$$")


def make_installer(bundle: Path, target: Path, version: str, icon: Path, work: Path) -> Path:
    """The installer, made by makensis. Raises :class:`DevError` with the end of its log."""
    files = [file for file in bundle.rglob("*") if file.is_file()]
    listed = work / "removals.nsh"
    names = (file.relative_to(bundle).as_posix() for file in files)
    listed.write_text(removals(names), encoding="utf-8")
    size = sum(file.stat().st_size for file in files)
    defines = {
        "VERSION": version,
        "FILE_VERSION": ".".join(map(str, version_numbers(version))),
        "BUNDLE": bundle,
        "LICENSE": ROOT / "LICENSE",
        "ICON": icon,
        "INSTALLED_KIB": size // 1024,
        "OUTPUT": target,
        "REMOVALS": listed,
    }
    makensis = find_makensis()
    if makensis is None:
        raise DevError(f"Missing: {dev_system.NSIS.what}.")
    command: list[str | Path] = [makensis, "-V3", "-INPUTCHARSET", "UTF8", "-WX"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    command.append(TEMPLATES / "installer.nsi")
    target.unlink(missing_ok=True)
    log = work / "logs" / "installer.txt"
    run_logged(command, log=log, what="packing the installer")
    return target


def missing_makensis() -> list[dev_system.Need]:
    """NSIS where there is none."""
    return [] if find_makensis() else [dev_system.NSIS]


def find_makensis() -> str | None:
    """NSIS's compiler, which on Windows is on no path."""
    programs = os.environ.get("PROGRAMFILES(X86)", "")
    places = ("makensis", str(Path(programs, "NSIS", "makensis.exe")))
    return next((found for place in places if (found := shutil.which(place))), None)
