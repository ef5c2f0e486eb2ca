"""Fetching from a server that speaks the same protocol, and from one that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.hub_files import (
    DownloadProgress,
    HubChoice,
    HubFile,
    HubLink,
    parse_link,
)
from moelauncher.core.library.model_files import load_facts
from moelauncher.hub import download as downloads
from moelauncher.hub.repository import Repositories
from tests.helpers.gguf_files import write_mmproj, write_tiny_model
from tests.helpers.hub_server import HubServer, ServedFile

REPO = "org/Tiny-MoE-GGUF"


def _never() -> bool:
    return False


def _ignore(_: DownloadProgress) -> None:
    return None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServedFile]:
    folder = tmp_path_factory.mktemp("served")
    write_tiny_model(folder / "Tiny-Q8_0.gguf", "moe", n_ff_exp=64)
    write_tiny_model(folder / "Tiny-Q4_K_M.gguf", "moe")
    write_tiny_model(folder / "BF16" / "Tiny-BF16.gguf", "moe", split_max_tensors=20, n_ff_exp=96)
    write_mmproj(folder / "mmproj-F16.gguf", n_embd=64)
    (folder / "README.md").write_text("hello", encoding="utf-8")
    return {
        file.relative_to(folder).as_posix(): ServedFile(file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.fixture
def server(served: dict[str, ServedFile]) -> Iterator[HubServer]:
    with HubServer(repos={REPO: dict(served)}) as hub:
        yield hub


@pytest.fixture
def hub(server: HubServer) -> Repositories:
    return Repositories(server.endpoint, wait=lambda seconds: None)


def choice(hub: Repositories, label: str) -> HubChoice:
    (found,) = hub.choices(parse_link(f"{REPO}:{label}"))
    return found


def models_below(folder: Path) -> list[str]:
    """What a scan of the download folder would list as models."""
    return [entry.path.name for entry in scan([folder]) if entry.offered]


def files_below(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_the_quantisations_of_a_repository(hub: Repositories) -> None:
    choices = hub.choices(HubLink(REPO))
    assert [(c.label, len(c.files)) for c in choices] == [("Q4_K_M", 1), ("Q8_0", 1), ("BF16", 3)]
    assert [c.size_bytes for c in choices] == sorted(c.size_bytes for c in choices)
    assert all(file.sha256 for c in choices for file in c.files)


def test_what_a_choice_is_before_it_is_fetched(
    hub: Repositories, server: HubServer, served: dict[str, ServedFile], tmp_path: Path
) -> None:
    facts = hub.facts(choice(hub, "BF16"), _never)
    assert (facts.arch, len(facts.expert_layers), facts.n_expert) == ("qwen3moe", 4, 8)
    assert facts.size_bytes == sum(f.size_bytes for f in choice(hub, "BF16").files)
    # The same as from the whole file.
    (tmp_path / "w.gguf").write_bytes(served["Tiny-Q8_0.gguf"].data)
    whole = load_facts(tmp_path / "w.gguf")
    assert hub.facts(choice(hub, "Q8_0"), _never).layers == whole.layers
    assert all(wanted.startswith("bytes=") for wanted in server.sent("Tiny-Q8_0.gguf"))


def test_a_header_can_be_had_from_a_server_that_ignores_ranges(
    hub: Repositories, server: HubServer
) -> None:
    server.ignores_ranges = True
    assert hub.facts(choice(hub, "Q8_0"), _never).n_expert == 8


def test_a_download_is_whole_and_checked(hub: Repositories, tmp_path: Path) -> None:
    told: list[DownloadProgress] = []
    path = hub.download(choice(hub, "Q8_0"), tmp_path, told.append, _never)
    assert path == tmp_path / "org" / "Tiny-MoE-GGUF" / "Tiny-Q8_0.gguf"
    assert files_below(tmp_path) == ["org/Tiny-MoE-GGUF/Tiny-Q8_0.gguf"]
    assert load_facts(path).n_expert == 8
    assert told[-1].n_bytes == told[-1].total_bytes == path.stat().st_size
    assert any(progress.checking for progress in told)


def test_all_parts_of_a_split_model_are_fetched(hub: Repositories, tmp_path: Path) -> None:
    path = hub.download(choice(hub, "BF16"), tmp_path, _ignore, _never)
    assert path.name.endswith("-00001-of-00003.gguf")
    assert len(load_facts(path).files) == 3
    assert not [name for name in files_below(tmp_path) if ".part" in name]


def test_a_second_download_fetches_nothing(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    n_requests = len(server.sent("Tiny-Q8_0.gguf"))
    hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    assert len(server.sent("Tiny-Q8_0.gguf")) == n_requests


def test_a_cut_connection_goes_on_where_it_broke(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "Q8_0")
    server.cut_after_bytes, server.cuts_left = wanted.size_bytes // 4, 3
    path = hub.download(wanted, tmp_path, _ignore, _never)
    assert load_facts(path).n_expert == 8
    ranges = server.sent("Tiny-Q8_0.gguf")
    assert ranges[0] == ""
    starts = [int(text.removeprefix("bytes=").removesuffix("-")) for text in ranges[1:]]
    assert starts == sorted(starts) and starts[0] > 0 and len(starts) == 3


def test_a_connection_that_stays_away_leaves_no_model(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "Q8_0")
    server.cut_after_bytes, server.cuts_left = 0, 1000
    with pytest.raises(LauncherError) as caught:
        hub.download(wanted, tmp_path, _ignore, _never)
    assert "goes on where it stopped" in caught.value.hint
    assert models_below(tmp_path) == []
    server.cuts_left = 0
    assert load_facts(hub.download(wanted, tmp_path, _ignore, _never)).n_expert == 8


def test_a_pause_keeps_what_was_fetched(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "BF16")
    seen: list[DownloadProgress] = []

    def paused() -> bool:
        # After the first of the three files.
        return len(list(tmp_path.rglob("*.part"))) > 1

    with pytest.raises(Cancelled):
        hub.download(wanted, tmp_path, seen.append, paused)
    assert models_below(tmp_path) == []
    assert [entry.role for entry in scan([tmp_path])] == ["download"] * len(
        list(tmp_path.rglob("*.part"))
    )
    first = wanted.files[0].name.rpartition("/")[2]
    n_requests = len(server.sent(first))
    hub.download(wanted, tmp_path, _ignore, _never)
    assert len(server.sent(first)) == n_requests, "the first file was whole"
    assert len(models_below(tmp_path)) == 1


def test_a_server_that_ignores_ranges_sends_it_all_again(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "Q8_0")
    server.ignores_ranges = True
    server.cut_after_bytes, server.cuts_left = wanted.size_bytes // 2, 1
    assert load_facts(hub.download(wanted, tmp_path, _ignore, _never)).n_expert == 8


def test_a_server_that_answers_with_another_range_is_not_believed(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "Q8_0")
    server.wrong_range = True
    server.cut_after_bytes, server.cuts_left = wanted.size_bytes // 2, 1
    assert load_facts(hub.download(wanted, tmp_path, _ignore, _never)).n_expert == 8


def test_a_wrong_checksum_leaves_nothing(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    server.repos[REPO]["Tiny-Q8_0.gguf"].told_sha256 = "ab" * 32
    try:
        with pytest.raises(LauncherError, match="its checksum is wrong"):
            hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    finally:
        server.repos[REPO]["Tiny-Q8_0.gguf"].told_sha256 = ""
    assert files_below(tmp_path) == []


def test_more_than_was_announced_is_not_kept(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    server.extra_bytes = 1000
    with pytest.raises(LauncherError, match="sends more than it announced"):
        hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    assert models_below(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "sentence", "hint"),
    [
        (401, "needs a login", "HF_TOKEN"),
        (403, "licence accepted", "accept the terms"),
        (404, "no such repository or file", "Check the name"),
    ],
)
def test_refusals_are_said_in_words(
    hub: Repositories, server: HubServer, tmp_path: Path, status: int, sentence: str, hint: str
) -> None:
    wanted = choice(hub, "Q8_0")
    server.file_status = status
    for ask in (
        lambda: hub.download(wanted, tmp_path, _ignore, _never),
        lambda: hub.facts(wanted, _never),
    ):
        with pytest.raises(LauncherError) as caught:
            ask()
        assert sentence in caught.value.message
        assert hint in caught.value.hint
    server.status = status
    with pytest.raises(LauncherError) as caught:
        hub.choices(HubLink(REPO))
    assert sentence in caught.value.message
    assert files_below(tmp_path) == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    nobody = Repositories("http://127.0.0.1:9", wait=lambda seconds: None)
    with pytest.raises(LauncherError, match=r"The connection to 127\.0\.0\.1 failed"):
        nobody.download(
            HubChoice(REPO, "main", "Q8_0", (HubFile("a.gguf", 10),)), tmp_path, _ignore, _never
        )


def test_a_full_disk_is_told_before_anything_is_written(
    hub: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = choice(hub, "Q8_0")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        downloads.shutil, "disk_usage", lambda _: usage._replace(free=downloads.SPARE_BYTES)
    )
    with pytest.raises(LauncherError, match="The disk has 256 MiB free"):
        hub.download(wanted, tmp_path, _ignore, _never)
    assert files_below(tmp_path) == []


def test_a_disk_that_fills_up_meanwhile_keeps_what_is_there(
    hub: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = choice(hub, "Q8_0")

    def full(_: DownloadProgress) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(LauncherError, match="The disk is full"):
        hub.download(wanted, tmp_path, full, _never)
    assert models_below(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    ["../evil-Q8_0.gguf", "a/../../evil-Q8_0.gguf", "/etc/evil-Q8_0.gguf", "C:\\evil-Q8_0.gguf",
     "a\\..\\evil-Q8_0.gguf", "CON.gguf", "a/nul.Q8_0.gguf", "evil-Q8_0.gguf\n.gguf"],
)  # fmt: skip
def test_a_name_that_tries_to_leave_the_folder_is_refused(
    hub: Repositories, server: HubServer, tmp_path: Path, name: str
) -> None:
    server.repos["org/Evil"] = {name: ServedFile(b"GGUF")}
    with pytest.raises(LauncherError, match="cannot be stored"):
        hub.choices(HubLink("org/Evil"))
    evil = HubChoice("org/Evil", "main", "Q8_0", (HubFile(name, 4),))
    with pytest.raises(LauncherError, match="cannot be stored"):
        hub.download(evil, tmp_path / "models", _ignore, _never)
    assert files_below(tmp_path) == []


def test_another_file_under_the_same_name_begins_anew(
    hub: Repositories, server: HubServer, tmp_path: Path
) -> None:
    wanted = choice(hub, "Q8_0")
    with pytest.raises(Cancelled):
        hub.download(wanted, tmp_path, _ignore, lambda: any(tmp_path.rglob("*.part")))
    server.repos[REPO]["Tiny-Q8_0.gguf"] = server.repos[REPO]["Tiny-Q4_K_M.gguf"]
    path = hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    assert path.read_bytes() == server.repos[REPO]["Tiny-Q4_K_M.gguf"].data


def test_forgotten_downloads_leave_nothing(hub: Repositories, tmp_path: Path) -> None:
    wanted = choice(hub, "BF16")
    with pytest.raises(Cancelled):
        hub.download(wanted, tmp_path, _ignore, lambda: any(tmp_path.rglob("*.part")))
    assert files_below(tmp_path)
    hub.forget(wanted, tmp_path)
    assert files_below(tmp_path) == []


def test_a_token_goes_to_the_server_and_not_on_to_others(server: HubServer, tmp_path: Path) -> None:
    server.redirects = True
    hub = Repositories(server.endpoint, token="hf_secret")
    hub.download(choice(hub, "Q8_0"), tmp_path, _ignore, _never)
    asked = {path.startswith("/cdn/"): token for path, _, token in server.requests}
    assert asked == {False: "Bearer hf_secret", True: ""}


def test_a_mirror_and_a_token_from_their_usual_places_are_used(
    server: HubServer, tmp_path: Path
) -> None:
    """HF_ENDPOINT is read when huggingface_hub is imported, so in a process of its own."""
    program = (
        "from moelauncher.hub.repository import Repositories\n"
        "from moelauncher.core.library.hub_files import HubLink\n"
        f"print(len(Repositories().choices(HubLink({REPO!r}))))\n"
    )
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text("hf_from_file", encoding="utf-8")
    environ = {**os.environ, "HF_ENDPOINT": server.endpoint, "HF_HOME": str(tmp_path / "hf")}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=240
    )
    assert ran.stdout.strip() == "3", ran.stderr
    # One request, and nothing told beside it.
    assert [(path, token) for path, _, token in server.requests] == [
        (f"/api/models/{REPO}/tree/main", "Bearer hf_from_file")
    ]
