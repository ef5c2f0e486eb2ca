"""The next release's headers are found through the machine's own package sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from dev_vulkan import VulkanSdk, headers_version, next_release_source

DEB822 = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""

OTHERS = "deb https://tools.example/apt tools-bookworm main\n"
ONE_LINE = (
    "# a comment\ndeb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main\n"
)


def test_source_list_in_the_new_format():
    assert next_release_source([OTHERS, DEB822], "bookworm", "trixie") == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian.gpg\n"
    )


def test_source_list_in_the_old_format():
    assert next_release_source([ONE_LINE], "bookworm", "trixie") == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n"
        "Signed-By: /k.gpg\n"
    )


def test_no_list_for_this_release_gives_none():
    assert next_release_source([OTHERS, ""], "bookworm", "trixie") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "#define VK_HEADER_VERSION 309\n"
            "#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 4, VK_HEADER_VERSION)\n",
            (1, 4, 309),
        ),
        ("#define VK_HEADER_VERSION 309\n", None),
        ("", None),
    ],
)
def test_version_is_read_from_the_header(text, version):
    assert headers_version(text) == version


def test_cmake_is_told_only_what_it_would_not_find():
    assert VulkanSdk().cmake_flags == ()
    sdk = VulkanSdk(include=Path("include"), loader=Path("libvulkan.so.1"))
    assert sdk.cmake_flags == ("-DVulkan_INCLUDE_DIR=include", "-DVulkan_LIBRARY=libvulkan.so.1")
