"""Ollama's blobs by their manifests, and manifests that lead nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.library.catalog import scan
from moelauncher.core.library.ollama_store import ollama_models
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.model_tree import write_ollama_model

BLOB = "ab" * 32


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    write_tiny_model(folder / "blobs" / f"sha256-{BLOB}", "moe")
    write_ollama_model(folder, "tiny:latest", BLOB)
    return folder


def test_a_tag_leads_to_its_blob(store: Path) -> None:
    (model,) = ollama_models(store)
    assert model.name == "tiny:latest"
    assert model.path == store / "blobs" / f"sha256-{BLOB}"
    (entry,) = scan([store])
    assert (entry.name, entry.arch, entry.offered) == ("tiny:latest", "qwen3moe", True)


def test_a_user_s_own_namespace_stays_in_the_name(store: Path) -> None:
    library = store / "manifests" / "registry.ollama.ai" / "library"
    library.rename(library.with_name("somebody"))
    assert [model.name for model in ollama_models(store)] == ["somebody/tiny:latest"]


def test_a_missing_blob_is_a_row_with_a_reason(store: Path) -> None:
    (store / "blobs" / f"sha256-{BLOB}").unlink()
    (entry,) = scan([store])
    assert entry.name == "tiny:latest"
    assert entry.problem == "The file is not there any more."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"layers": 5}',
        '{"layers": [5, {"mediaType": "application/vnd.ollama.image.model"}]}',
        json.dumps(
            {
                "layers": [
                    {
                        "mediaType": "application/vnd.ollama.image.model",
                        "digest": "sha256:../../../../etc/passwd",
                    }
                ]
            }
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_leads_nowhere(store: Path, text: str) -> None:
    manifest = store / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "latest"
    manifest.write_text(text, encoding="utf-8")
    assert list(ollama_models(store)) == []
    assert list(scan([store])) == []


def test_stray_files_and_deep_folders_are_passed_over(store: Path) -> None:
    (store / "manifests" / "notes.txt").write_text("x", encoding="utf-8")
    deep = store / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "latest.d" / "x" / "y"
    deep.mkdir(parents=True)
    (deep / "z").write_text("{}", encoding="utf-8")
    assert len(list(ollama_models(store))) == 1


def test_a_projector_whose_blob_is_missing_is_not_paired(store: Path) -> None:
    write_ollama_model(store, "tiny:latest", BLOB, "cd" * 32)
    paired, missing = scan([store])
    assert (paired.name, paired.mmproj, paired.problem) == ("tiny:latest", None, "")
    assert missing.problem == "The file is not there any more."
