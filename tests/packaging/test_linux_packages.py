"""The .deb and the archive of a small stand-in bundle, read back with the system's own tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import linux_packages
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="packages for Linux")

VERSION = "1.2.3"


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Path]:
    """The packages by their ending."""
    bundle = tmp_path / "bundle" / "moelauncher"
    (bundle / "_internal").mkdir(parents=True)
    shutil.copy2(Path(sys.executable).resolve(), bundle / "moelauncher")
    (bundle / "_internal" / "libx.so").write_bytes(b"")
    (bundle / "_internal" / "libx.so").chmod(0o777)
    icons = tmp_path / "icons"
    for size in (16, 256):
        (icons / f"{size}x{size}").mkdir(parents=True)
        (icons / f"{size}x{size}" / "moelauncher.png").write_bytes(b"png")
    files = linux_packages.make_packages(
        bundle, tmp_path / "dist", VERSION, icons, tmp_path / "work"
    )
    return {file.suffix: file for file in files}


def test_archive_is_one_folder_owned_by_nobody_in_particular(made: dict[str, Path]) -> None:
    with tarfile.open(made[".gz"]) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive.getmembers()}
        tops = {member.name.split("/")[0] for member in archive.getmembers()}
    (top,) = tops
    assert top.startswith(f"moelauncher-{VERSION}-linux-")
    assert members["moelauncher"].mode == 0o755
    assert members["add-to-menu.sh"].mode == 0o755
    assert "share/icons/hicolor/256x256/apps/moelauncher.png" in members
    assert {member.uid for member in members.values()} == {0}


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is Debian's")
def test_deb_has_the_program_on_the_path_and_modes_that_debian_wants(
    made: dict[str, Path], tmp_path: Path
) -> None:
    deb = made[".deb"]
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    program = root / "usr" / "bin" / "moelauncher"
    assert program.is_symlink() and program.resolve().name == "moelauncher"
    assert (root / "usr/lib/moelauncher/_internal/libx.so").stat().st_mode & 0o777 == 0o644
    assert (root / "usr/share/mime/packages/moelauncher.xml").exists()
    fields = subprocess.run(
        ["dpkg-deb", "-f", deb, "Version", "Depends"], capture_output=True, text=True, check=True
    ).stdout
    assert f"Version: {VERSION}" in fields
    assert "libc6 (>= 2." in fields
    assert "@" not in fields
    if shutil.which("dpkg-parsechangelog"):
        parsed = subprocess.run(
            ["dpkg-parsechangelog", "-l", root / "usr/share/doc/moelauncher/changelog.gz"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert parsed.returncode == 0 and f"Version: {VERSION}" in parsed.stdout


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_deb_has_no_error_that_debian_knows(made: dict[str, Path]) -> None:
    answer = subprocess.run(
        ["lintian", "--fail-on", "error", made[".deb"]], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_menu_entry_of_the_archive_is_added_and_removed(
    made: dict[str, Path], tmp_path: Path
) -> None:
    with tarfile.open(made[".gz"]) as archive:
        archive.extractall(tmp_path / "a folder", filter="data")
    (top,) = (tmp_path / "a folder").iterdir()
    data = tmp_path / "data"
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(data), "PATH": "/usr/bin:/bin"}
    subprocess.run([top / "add-to-menu.sh"], env=environment, check=True)
    entry = (data / "applications" / "moelauncher.desktop").read_text(encoding="utf-8")
    assert f'Exec="{top}/moelauncher" %f\n' in entry
    subprocess.run([top / "add-to-menu.sh", "--remove"], env=environment, check=True)
    assert not [p for p in data.rglob("*") if p.is_file() and "moelauncher" in p.name]


def test_glibc_is_the_newest_that_any_binary_asks_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7fELF GLIBC_2.17 GLIBC_2.34")
    (tmp_path / "b").write_bytes(b"\x7fELF GLIBC_2.9")
    (tmp_path / "text").write_bytes(b"GLIBC_2.99")
    assert linux_packages.needed_glibc(tmp_path.iterdir()) == "2.34"


def test_gguf_files_are_known_by_name_and_by_content(tmp_path: Path) -> None:
    (tmp_path / "icons").mkdir()
    share = linux_packages.make_share(tmp_path / "share", VERSION, tmp_path / "icons")
    xml = ElementTree.parse(share / "mime" / "packages" / "moelauncher.xml")
    space = {"m": "http://www.freedesktop.org/standards/shared-mime-info"}
    (kind,) = xml.getroot().findall("m:mime-type", space)
    (match,) = kind.findall("m:magic/m:match", space)
    (pattern,) = kind.findall("m:glob", space)
    assert (match.attrib["offset"], match.attrib["value"]) == ("0", "GGUF")
    assert pattern.attrib["pattern"] == "*.gguf"
    desktop = (share / "applications" / "moelauncher.desktop").read_text(encoding="utf-8")
    assert f"MimeType={kind.attrib['type']};" in desktop


@pytest.mark.parametrize(
    ("program", "arguments", "name"),
    [
        ("desktop-file-validate", [], "applications/moelauncher.desktop"),
        (
            "appstreamcli",
            ["validate", "--no-net"],
            "metainfo/io.github.moelauncher.metainfo.xml",
        ),
    ],
)
def test_desktop_files_are_valid(
    tmp_path: Path, program: str, arguments: list[str], name: str
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    icons = tmp_path / "icons"
    icons.mkdir()
    share = linux_packages.make_share(tmp_path / "share", VERSION, icons)
    answer = subprocess.run(
        [program, *arguments, share / name], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "warning" not in answer.stdout.lower()
