"""Names of unfinished downloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.library.catalog import scan
from moelauncher.core.library.partial_files import finished_name


@pytest.mark.parametrize(
    "name",
    [
        "m.gguf.part",
        "m.gguf.PARTIAL",
        "m.gguf.crdownload",
        "m.gguf.opdownload",
        "m.gguf.incomplete",
        "m.gguf.0123456789abcdef.incomplete",
        "m.gguf.tmp",
        "m.gguf.!qB",
        "m.gguf.downloadInProgress",
    ],
)
def test_unfinished_names_say_what_they_will_be(name: str) -> None:
    assert finished_name(name) == "m.gguf"


@pytest.mark.parametrize("name", ["m.gguf", "m.part", ".gguf.part", "m.gguf.part.txt"])
def test_other_names_are_none(name: str) -> None:
    assert finished_name(name) is None


def test_an_unfinished_download_is_a_row_but_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.gguf.part").write_bytes(b"GGUF")
    (entry,) = scan([tmp_path])
    assert (entry.name, entry.role, entry.size_bytes) == ("m", "download", 4)
    assert entry.problem == "This download is not finished."
    assert not entry.offered
