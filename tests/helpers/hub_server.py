"""A server on loopback that speaks Hugging Face's protocol, and can fail in every known way."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import unquote, urlsplit


@dataclass
class ServedFile:
    """One file; ``told_sha256`` "" means its real checksum."""

    data: bytes
    told_sha256: str = ""

    @property
    def sha256(self) -> str:
        """What the server says its checksum is."""
        return self.told_sha256 or hashlib.sha256(self.data).hexdigest()


@dataclass
class HubServer:
    """Serve with ``with``. The fields are looked at for each request."""

    repos: dict[str, dict[str, ServedFile]] = field(default_factory=dict)
    #: Break the connection after so many bytes of a file, so many times.
    cut_after_bytes: int = 0
    cuts_left: int = 0
    ignores_ranges: bool = False
    #: Status to answer every request with, 0: none.
    status: int = 0
    #: Refuse files only, not the listing (a gated repository).
    file_status: int = 0
    #: Send more than was announced.
    extra_bytes: int = 0
    wrong_range: bool = False
    #: Send files by a redirect to another address, as a CDN.
    redirects: bool = False
    #: (path, Range, Authorization) of each request.
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    endpoint: str = ""

    def __enter__(self) -> HubServer:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False
        self._server.block_on_close = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def sent(self, name: str) -> list[str]:
        """The ranges asked of the files that are called ``name``."""
        return [wanted for path, wanted, _ in self.requests if path.endswith("/" + name)]


class _Handler(BaseHTTPRequestHandler):
    hub: ClassVar[HubServer]
    protocol_version = "HTTP/1.0"  # one request a connection: no thread waits for a second one

    def do_GET(self) -> None:
        hub = self.hub
        path = unquote(urlsplit(self.path).path)
        wanted = self.headers.get("Range", "")
        hub.requests.append((path, wanted, self.headers.get("Authorization", "")))
        if hub.status:
            self._refuse(hub.status)
            return
        listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)/?", path)
        if listing is not None:
            self._list(listing[1])
            return
        found = re.fullmatch(r"/(?:cdn/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        file = hub.repos.get(found[1], {}).get(found[3]) if found else None
        if file is None:
            self._refuse(404)
        elif hub.file_status:
            self._refuse(hub.file_status)
        elif hub.redirects and not path.startswith("/cdn/"):
            self.send_response(302)
            port = hub.endpoint.rpartition(":")[2]
            self.send_header("Location", f"http://localhost:{port}/cdn{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._send(file.data, wanted)

    do_HEAD = do_GET

    def _list(self, repo: str) -> None:
        if repo not in self.hub.repos:
            self._refuse(404)
            return
        items = [
            {
                "type": "file",
                "path": name,
                "size": len(file.data),
                "oid": "0" * 40,
                "lfs": {"oid": file.sha256, "size": len(file.data), "pointerSize": 135},
            }
            for name, file in self.hub.repos[repo].items()
        ]
        self._answer(200, json.dumps(items).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status: int) -> None:
        self._answer(status, b"{}", {"Content-Type": "application/json"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _send(self, data: bytes, wanted: str) -> None:
        hub = self.hub
        start, end = 0, len(data) - 1
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
        if match is not None and not hub.ignores_ranges:
            start = int(match[1])
            end = min(int(match[2]), end) if match[2] else end
            if start > end:
                self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            self.send_response(206)
            told = start + 1 if hub.wrong_range else start
            self.send_header("Content-Range", f"bytes {told}-{end}/{len(data)}")
        else:
            self.send_response(200)
        body = data[start : end + 1] + b"x" * hub.extra_bytes
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if hub.cuts_left and hub.cut_after_bytes < len(body):
            hub.cuts_left -= 1
            body = body[: hub.cut_after_bytes]
        # The client may have seen enough.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""
