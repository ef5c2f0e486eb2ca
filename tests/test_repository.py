"""What holds for the repository as a whole."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import moelauncher

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Put together here, so that this file does not name them either.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("npmjs", "org"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("golang", "org"),
        ("crates", "io"),
    )
]
MACHINE_PATH = re.compile(r"(?<![\w/.<])(/root/|/work/|/home/\w+/|[A-Z]:\\+Users\\+\w)")


def tracked_names() -> list[str]:
    """Every file that the repository knows."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout (an unpacked source archive)")
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    # The checkout may belong to another user than the one who tests it.
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [name for name in answer.stdout.decode("utf-8").split("\0") if name]


def tracked_texts() -> dict[str, str]:
    """Every text file of the repository by name, as it stands in the work tree."""
    texts = {}
    for name in tracked_names():
        path = ROOT / name
        if path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[name] = content.decode("utf-8")
    return texts


def test_no_file_names_a_package_registry():
    named = [
        f"{name}: {host}"
        for name, text in tracked_texts().items()
        for host in REGISTRY_HOSTS
        if host in text
    ]
    assert named == []


def test_no_source_names_a_place_on_somebodys_machine():
    found = [
        f"{name}: {match.group()}"
        for name, text in tracked_texts().items()
        if not name.startswith("tests/")
        for match in MACHINE_PATH.finditer(text)
    ]
    assert found == []


def test_no_weights_are_committed():
    weights = (".gguf", ".safetensors", ".bin", ".onnx", ".pt")
    assert [name for name in tracked_names() if name.endswith(weights)] == []


def test_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)
    coming = re.findall(r"release will be (\d+\.\d+\.\d+)", changelog)
    assert (released or coming)[0] == moelauncher.__version__


def test_every_constraint_is_one_exact_version():
    lines = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


def test_every_direct_dependency_is_pinned():
    lines = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normal(line.partition("==")[0]) for line in lines if "==" in line}
    project = PROJECT["project"]
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {normal(re.match(r"[\w.-]+", requirement).group()) for requirement in wanted}
    assert names - pinned == set()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "packaging/PACKAGES.md", "packaging/WINDOWS.md"]
)
def test_links_lead_to_files(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_ci_calls_the_command_of_the_readme():
    assert "python3 packaging/dev.py test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "packaging/dev.py test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
