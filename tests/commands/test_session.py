"""What RAM cannot hold: refused with the way past it, and loaded all the same where asked."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.commands import chat
from moelauncher.commands.session import Session
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from tests.helpers.gguf_files import write_tiny_model


def _session(tmp_path: Path, *more: str) -> Session:
    model = write_tiny_model(tmp_path / "moe.gguf", "moe")
    parser = argparse.ArgumentParser()
    chat.add_arguments(parser)
    options = parser.parse_args([str(model), "-p", "Hi", *more])
    options.basedir = tmp_path / "base"
    return Session(options, facts_of([read_header(model)]))


@pytest.mark.parametrize("anyway", [False, True])
def test_caches_that_ram_cannot_hold(tmp_path: Path, anyway: bool) -> None:
    session = _session(tmp_path, *(["--anyway"] if anyway else []))
    try:
        session.machine = replace(session.machine, ram_free_bytes=1000)
        plan = session.plan("all")
        if anyway:
            assert session.load_request(plan).path.name == "moe.gguf"
        else:
            with pytest.raises(LauncherError, match=r"of RAM beside the weights.*--anyway"):
                session.load_request(plan)
    finally:
        session.close()
