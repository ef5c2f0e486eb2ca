"""What the commands are run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command_line import write_model_folder


@pytest.fixture(scope="package")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds, some of them broken."""
    return write_model_folder(tmp_path_factory.mktemp("models"))


@pytest.fixture
def sample_base(session_cache: Path) -> Path:
    """A --basedir in which the sample model is kept from run to run."""
    return session_cache / "command-line"
