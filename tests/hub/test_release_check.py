"""Asking a release site: one of this machine, with every way to fail."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.program.releases import Release
from moelauncher.hub.release_check import newest_release


class _Site(http.server.BaseHTTPRequestHandler):
    answer: tuple[int, bytes] = (200, b"")
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        self.seen.append(dict(self.headers))
        status, body = self.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Not on the terminal."""


Serve = Callable[[int, bytes], tuple[str, list[dict[str, str]]]]


@pytest.fixture
def site() -> Iterator[Serve]:
    servers = []

    def serve(status: int, body: bytes) -> tuple[str, list[dict[str, str]]]:
        seen: list[dict[str, str]] = []
        handler = type("Site", (_Site,), {"answer": (status, body), "seen": seen})
        server = http.server.HTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/newest.json", seen

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def test_release_is_read_and_nothing_of_the_machine_is_told(site: Serve) -> None:
    url, seen = site(200, b'{"version": "9.1", "page": "https://example.org"}')
    assert newest_release(url) == Release("9.1", "https://example.org")
    assert seen[0]["User-Agent"] == "MoE-Launcher"
    assert set(seen[0]) <= {"Accept-Encoding", "Host", "User-Agent", "Connection"}


def test_failures_are_sentences(site: Serve) -> None:
    with pytest.raises(LauncherError, match="404"):
        newest_release(site(404, b"")[0])
    with pytest.raises(LauncherError, match="understood"):
        newest_release(site(200, b"\xff\xfe<html>")[0])
    with pytest.raises(LauncherError, match="does not know where"):
        newest_release("")
    with pytest.raises(LauncherError, match="no web address"):
        newest_release("file:///etc/hostname")


def test_site_that_is_not_there(unused_port: int) -> None:
    with pytest.raises(LauncherError, match="could not be reached"):
        newest_release(f"http://127.0.0.1:{unused_port}/")


@pytest.fixture
def unused_port() -> int:
    with http.server.HTTPServer(("127.0.0.1", 0), _Site) as server:
        return server.server_port
