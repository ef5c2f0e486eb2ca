"""Which Python runs this program's helper processes where it is not a package. Any thread."""

from __future__ import annotations

import sys
from pathlib import Path


def helper_python() -> str:
    """The Python of this process, for a helper that speaks through its pipes only.

    On Windows the one without a console, as a package's own program is: the host of a console
    would start beside each helper, and under Wine it may outlive it and hold its pipes open.
    """
    if sys.platform == "win32":
        windowed = Path(sys.executable).with_name("pythonw.exe")
        if windowed.is_file():
            return str(windowed)
    return sys.executable
