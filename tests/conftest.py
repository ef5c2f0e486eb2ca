"""What every test gets without asking: a home of its own, and a check that it leaves nothing.

- HOME and the platform's config, data and cache folders point into a fresh folder, so no test
  reads or writes the developer's own settings, chats or models.
- A thread, QThread, pool job or QTimer that outlives its test fails that test, by name.
- A test that uses ``qapp`` or ``qtbot`` is marked ``gui``; Qt runs without a screen, and what is
  waited for has time enough on a busy machine.

Qt's own warnings fail a test through pytest-qt (``qt_log_level_fail`` in pyproject.toml).
Big files that are costly to make (sample models) go under ``session_cache``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.helpers.leaks import ThreadWatch
from tests.helpers.places import build_cache, private_environment

if TYPE_CHECKING:
    from tests.helpers.patient_qtbot import PatientQtBot

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
if sys.platform == "win32":
    # Without a screen Qt reads fonts from files, and looks for them beside itself.
    windows = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"))
    os.environ.setdefault("QT_QPA_FONTDIR", str(windows / "Fonts"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl+C, and so would every program that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD_CACHE = build_cache(os.environ)
"""Read before any test moves HOME."""

# No limit of time: a busy machine is not a defect. The same examples each time, and no database: a
# run depends on the sources alone. "--hypothesis-profile=search" draws new ones.
_PATIENT = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
hypothesis_settings.register_profile("search", derandomize=False, **_PATIENT)
hypothesis_settings.register_profile("moelauncher", derandomize=True, **_PATIENT)
hypothesis_settings.load_profile("moelauncher")

_QT_FIXTURES = {"qapp", "qtbot", "qtmodeltester"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _QT_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("gui")


@pytest.fixture(scope="session")
def session_cache() -> Path:
    """A folder that outlives the run, for files that are costly to make: sample models."""
    folder = BUILD_CACHE / "test-models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def qtbot(qapp: object, request: pytest.FixtureRequest) -> PatientQtBot:
    """pytest-qt's own, but patient."""
    from tests.helpers.patient_qtbot import PatientQtBot

    return PatientQtBot(request)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own, empty home folder; every folder variable of the platform points into it."""
    home = tmp_path_factory.mktemp("home")
    for name, value in private_environment(home).items():
        monkeypatch.setenv(name, value)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "MOELAUNCHER_BASEDIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, own_home: Path) -> Iterator[None]:
    """Fails a test whose threads go on, or whose window left a timer or a worker running."""
    threads = ThreadWatch()
    # Qt is looked at only where a test loaded it: the core's tests must not import it.
    if request.node.get_closest_marker("gui") and "PySide6" in sys.modules:
        from tests.helpers.qt_leaks import QtWatch

        qt = QtWatch()
        yield
        left = qt.left_behind() + threads.left_behind()
    else:
        yield
        left = threads.left_behind()
    if left:
        pytest.fail("left behind by this test:\n" + "\n".join(left), pytrace=False)
