"""What users paste into the box, and what a repository's file names tell."""

from __future__ import annotations

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.hub_files import (
    HubFile,
    HubLink,
    checked_parts,
    choices_of,
    label_of,
    parse_link,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("org/name", HubLink("org/name")),
        ("  org/name-GGUF ", HubLink("org/name-GGUF")),
        ("org/name:Q4_K_M", HubLink("org/name", quant="Q4_K_M")),
        ("org/name:UD-Q4_K_XL", HubLink("org/name", quant="UD-Q4_K_XL")),
        ("https://huggingface.co/org/name", HubLink("org/name")),
        ("huggingface.co/org/name/", HubLink("org/name")),
        ("hf.co/org/name:Q8_0", HubLink("org/name", quant="Q8_0")),
        ("hf://org/name", HubLink("org/name")),
        ("https://huggingface.co/org/name/tree/main", HubLink("org/name")),
        ("https://huggingface.co/org/name/tree/v2/sub", HubLink("org/name", "v2")),
        (
            "https://huggingface.co/org/name/blob/main/a/m-Q4_0.gguf?download=true",
            HubLink("org/name", file="a/m-Q4_0.gguf"),
        ),
        (
            "https://hf-mirror.com/org/name/resolve/abc/m%20x.gguf",
            HubLink("org/name", "abc", "m x.gguf"),
        ),
        ("org/name/m.gguf", HubLink("org/name", file="m.gguf")),
    ],
)
def test_links(text: str, link: HubLink) -> None:
    assert parse_link(text) == link


@pytest.mark.parametrize(
    "text",
    ["", "name", "org/", "/name", "org/na me", "../../etc", "ftp://x/y", "org/name:<b>", "a/b:c d"],
)
def test_what_names_no_repository(text: str) -> None:
    with pytest.raises(LauncherError, match="names no repository"):
        parse_link(text)


def test_a_file_that_is_no_gguf() -> None:
    with pytest.raises(LauncherError, match=r"model\.safetensors is no GGUF file"):
        parse_link("https://huggingface.co/org/name/blob/main/model.safetensors")


FILES = [
    HubFile("README.md", 10),
    HubFile("m-Q8_0.gguf", 8 * GIB),
    HubFile("m-Q4_K_M.gguf", 4 * GIB),
    HubFile("UD/m-UD-Q4_K_XL.gguf", 5 * GIB),
    HubFile("BF16/m-BF16-00002-of-00002.gguf", 7 * GIB),
    HubFile("BF16/m-BF16-00001-of-00002.gguf", 9 * GIB),
    HubFile("half/m-F16-00001-of-00002.gguf", 9 * GIB),
    HubFile("mmproj-F16.gguf", GIB),
    HubFile("imatrix_unsloth.gguf", GIB),
]


def test_choices_are_whole_models_the_smallest_first() -> None:
    choices = choices_of(HubLink("o/n"), FILES)
    assert [(c.label, len(c.files), c.size_bytes // GIB) for c in choices] == [
        ("Q4_K_M", 1, 4),
        ("UD-Q4_K_XL", 1, 5),
        ("Q8_0", 1, 8),
        ("BF16", 2, 16),
    ]
    assert choices[-1].files[0].name.endswith("00001-of-00002.gguf")


def test_one_quantisation_or_one_file() -> None:
    assert [c.label for c in choices_of(HubLink("o/n", quant="q8_0"), FILES)] == ["Q8_0"]
    assert [c.label for c in choices_of(HubLink("o/n", quant="Q4_K_XL"), FILES)] == ["UD-Q4_K_XL"]
    by_file = HubLink("o/n", file="BF16/m-BF16-00002-of-00002.gguf")
    assert [len(c.files) for c in choices_of(by_file, FILES)] == [2]


def test_what_a_repository_does_not_have() -> None:
    with pytest.raises(LauncherError, match="o/n has no Q2_K") as caught:
        choices_of(HubLink("o/n", quant="Q2_K"), FILES)
    assert caught.value.hint == "It has: BF16, Q4_K_M, Q8_0, UD-Q4_K_XL."
    with pytest.raises(LauncherError, match="holds no GGUF model"):
        choices_of(HubLink("o/n"), FILES[:1])


def test_labels() -> None:
    assert label_of("Qwen3-30B-A3B-UD-IQ2_XXS.gguf") == "UD-IQ2_XXS"
    assert label_of("gpt-oss-20b-mxfp4.gguf") == "MXFP4"
    assert label_of("sub/model.gguf") == "model"


@pytest.mark.parametrize(
    "name",
    ["..", "a/../b", "/a", "a//b", "a\\b", "c:a", "con", "LPT1.gguf", "a.", "a ", "\0", "x" * 300],
)
def test_names_that_cannot_be_stored(name: str) -> None:
    with pytest.raises(LauncherError, match="cannot be stored"):
        checked_parts(name)


def test_names_that_can() -> None:
    assert checked_parts("a/b-c_d.gguf") == ("a", "b-c_d.gguf")
    assert checked_parts("größe 日本.gguf") == ("größe 日本.gguf",)
