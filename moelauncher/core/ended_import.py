"""An import of a large package that ends early when the program is told to end meanwhile.

A package of a hundred modules takes a second and more on a busy machine, and its thread does
nothing else by then. In: the package's name, and a question that is asked before each of its
modules. Out: nothing, or :class:`~moelauncher.core.errors.Cancelled` where Python looks for the
next module, which leaves the modules before it whole. Any thread, but one at a time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from moelauncher.core.errors import Cancelled


class _Asker(MetaPathFinder):
    """Finds nothing: it only asks, and leaves the finding to those behind it."""

    def __init__(self, package: str, ended: Callable[[], bool]) -> None:
        self._package = package
        self._ended = ended
        self._thread = threading.get_ident()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        # Other threads go on, and so do modules of C, which may not survive a missing part.
        mine = threading.get_ident() == self._thread
        if mine and fullname.partition(".")[0] == self._package and self._ended():
            raise Cancelled
        return None


@contextmanager
def import_until(package: str, ended: Callable[[], bool]) -> Iterator[None]:
    """Within the block, imports of ``package`` end with Cancelled once ``ended()`` is true."""
    asker = _Asker(package, ended)
    sys.meta_path.insert(0, asker)
    try:
        yield
    finally:
        # Another list: a thread that goes through the old one shall miss none of it.
        sys.meta_path = [finder for finder in sys.meta_path if finder is not asker]
