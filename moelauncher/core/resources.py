"""Files that belong to the program: icons, the bench text, the desktop entry.

They live in ``resources/`` at the top of a checkout. The wheel carries the same tree as
``moelauncher/_resources``, and so does a PyInstaller bundle that collects it there. Every
reader goes through :func:`resource_path`; nobody else knows where the tree is.
"""

from __future__ import annotations

from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

_PACKAGE = Path(__file__).resolve().parent.parent


def resource_path(name: str) -> Path:
    """The file or folder ``name`` (``icons/moelauncher.svg``), as a path that exists.

    Raises :class:`LauncherError` when it is missing, which means a damaged installation.
    Any thread.
    """
    for root in (_PACKAGE / "_resources", _PACKAGE.parent / "resources"):
        path = root / name
        if path.exists():
            return path
    raise LauncherError(
        tr("A file of the program is missing: {name}.").format(name=name),
        tr("Install MoE Launcher again."),
        f"looked in {_PACKAGE / '_resources'} and {_PACKAGE.parent / 'resources'}",
    )


def read_text_resource(name: str) -> str:
    """The text of the UTF-8 file ``name``. Raises as :func:`resource_path`. Any thread."""
    return resource_path(name).read_text(encoding="utf-8")
