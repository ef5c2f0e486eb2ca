"""Which folders lie on another machine: they are looked at last, so that they hold up nothing.

In: paths. Out: the same paths, those on network file systems behind the others. Asks the mount
table only, on Windows the list of drives that are connected again at each sign-in; never the
folders themselves, since that is what may hang. Never raises; any thread.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path, PurePath

from moelauncher.core.windows_registry import network_drives

_MOUNTS = Path("/proc/self/mounts")
_NETWORK_KINDS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "davfs", "lustre")
_FUSE_KINDS = ("sshfs", "rclone", "glusterfs", "s3fs", "davfs2", "gvfsd-fuse", "curlftpfs")
_NETWORK = frozenset(_NETWORK_KINDS) | {f"fuse.{kind}" for kind in _FUSE_KINDS}
_ESCAPE = re.compile(r"\\([0-7]{3})")


def network_places(mounts: str) -> tuple[str, ...]:
    """Mount points of network file systems in the text of a mount table."""
    found = []
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) >= 3 and fields[2] in _NETWORK:
            found.append(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[1]))
    return tuple(found)


def is_remote(path: PurePath, places: Collection[str]) -> bool:
    """Whether ``path`` lies on another machine: a UNC path, or below one of ``places``.

    A place is a mount point, or a drive as in "Z:".
    """
    text = str(path)
    if text.startswith(("\\\\", "//")) or (path.drive and path.drive.upper() in places):
        return True
    return any(text == place or text.startswith(place.rstrip("/") + "/") for place in places)


def slow_last(paths: Iterable[Path]) -> list[Path]:
    """The paths, those on other machines last; the order else is kept."""
    places: tuple[str, ...] = ()
    if sys.platform == "linux":
        try:
            places = network_places(_MOUNTS.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            places = ()
    elif sys.platform == "win32":
        places = network_drives()
    return sorted(paths, key=lambda path: is_remote(path, places))
