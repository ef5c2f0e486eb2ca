"""Where tests keep things: a private home for each, one cache for what is costly to make."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def build_cache(environ: Mapping[str, str]) -> Path:
    """The folder of ``packaging/dev.py``'s compiled wheels; the same rule as there."""
    if chosen := environ.get("MOELAUNCHER_BUILD_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / (
            "moelauncher-build"
        )
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moelauncher-build"


def private_environment(home: Path) -> dict[str, str]:
    """Variables that move every per-user folder of any platform under ``home``."""
    folders = {
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": home / "AppData" / "Roaming",
        "LOCALAPPDATA": home / "AppData" / "Local",
        # Windows itself would name the real ones, whatever the variables say.
        "WIN_PD_OVERRIDE_APPDATA": home / "AppData" / "Roaming",
        "WIN_PD_OVERRIDE_LOCAL_APPDATA": home / "AppData" / "Local",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
        "HF_HOME": home / ".cache" / "huggingface",
        "HF_HUB_CACHE": home / ".cache" / "huggingface" / "hub",
    }
    return {name: str(folder) for name, folder in folders.items()}
