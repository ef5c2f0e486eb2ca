"""Which release is newer, and what a site may say."""

from __future__ import annotations

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.program.releases import Release, is_newer, read_release, releases_url


@pytest.mark.parametrize(
    ("theirs", "ours", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.1.10", "0.1.9", True),
        ("0.1", "0.1.0", False),
        ("1.0.0", "1.0.0rc1", True),
        ("1.0.0rc1", "1.0.0", False),
        ("0.1.0", "0.2.0", False),
        ("0.1.0", "0.1.0", False),
        ("1.0.0", "what", False),
        ("1.0.0+build7", "1.0.0", False),
    ],
)
def test_versions_are_compared_by_their_numbers(theirs: str, ours: str, newer: bool) -> None:
    assert is_newer(Release(theirs), ours) is newer


def test_answer_is_a_version_and_a_page() -> None:
    text = '{"version": "v0.2.0", "page": "https://example.org/r", "more": [1]}'
    assert read_release(text) == Release("0.2.0", "https://example.org/r")


@pytest.mark.parametrize("page", ["file:///etc/passwd", "javascript:1", 7, None])
def test_only_a_web_page_is_ever_opened(page: object) -> None:
    import json

    assert read_release(json.dumps({"version": "1.0", "page": page})).page == ""


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "{}", '{"version": 1}', '{"version": "soon"}', '"0.2"', "[" * 9999]
)
def test_any_other_answer_is_said_to_be_none(text: str) -> None:
    with pytest.raises(LauncherError, match="understood"):
        read_release(text)


def test_the_package_may_know_the_site() -> None:
    assert releases_url({"releases_url": "https://example.org/r.json"}).endswith("r.json")
    assert releases_url({"releases_url": None}) == releases_url({})
