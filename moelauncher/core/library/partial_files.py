"""Files that another program is still downloading, known by their names.

In: a file name. Out: the name it will have, or None. Pure; any thread.
"""

from __future__ import annotations

import re

#: What browsers and downloaders hang on a name until it is whole.
_UNFINISHED = re.compile(
    r"^(?P<name>.+\.gguf)"
    r"(?:\.(?:[0-9a-f]{8,64}\.)?(?:part|partial|crdownload|opdownload|download|incomplete|tmp|!qb|!ut)"
    r"|\.downloadInProgress)$",
    re.IGNORECASE,
)


def finished_name(file_name: str) -> str | None:
    """The GGUF file that ``file_name`` will be; None where it is no unfinished download."""
    match = _UNFINISHED.match(file_name)
    return None if match is None else match["name"]
