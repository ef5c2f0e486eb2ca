"""A file of chats that is not there yet, and a store on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.chats.chat_store import ChatStore
from tests.helpers.kept_chats import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[ChatStore]:
    opened = ChatStore.open(path, now=Clock())
    yield opened
    opened.close()
