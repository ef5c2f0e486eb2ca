"""One row of the model list, and its two written forms: ``list --json`` and the cache.

In: :class:`ModelFacts`. Out: :class:`CatalogEntry`, light enough to keep by the thousand.
Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class CatalogEntry:
    """One row of the list. Numbers that could not be read are None; 0 means none of it.

    ``role`` is that of :class:`ModelFacts`, "unknown" for a file that could not be read that
    far, "download" for a file that is still being fetched, or "folder" for a folder that could
    not be read. ``problem`` is one sentence, "" where
    nothing speaks against loading; ``hint`` says what to do about it.
    """

    path: Path  # the first shard
    files: tuple[Path, ...]
    name: str  # fit to be shown on one line
    arch: str = ""
    quant: str = ""
    size_bytes: int | None = None
    n_params: int | None = None
    n_active_params: int | None = None
    n_layer: int | None = None
    n_moe_layers: int | None = None
    n_expert: int | None = None
    n_expert_used: int | None = None
    ctx_train: int | None = None
    mmproj: Path | None = None
    role: str = "unknown"
    problem: str = ""
    hint: str = ""
    n_embd: int | None = None
    has_chat_template: bool = False

    @property
    def offered(self) -> bool:
        """Whether a chat with it can be started."""
        return self.role == "chat" and not self.problem

    @property
    def description(self) -> str:
        """One line of facts for the row: architecture, storage, experts."""
        parts = [self.arch, self.quant]
        if self.n_expert:
            used = "?" if self.n_expert_used is None else self.n_expert_used
            parts.append(tr("MoE {n}/{used}").format(n=self.n_expert, used=used))
        elif self.role == "chat" and not self.problem:
            parts.append(tr("dense"))
        if self.role not in ("chat", "unknown", "folder", "download"):
            parts.append(self.role)
        return "  ".join(part for part in parts if part)


def entry_as_json(entry: CatalogEntry) -> dict[str, object]:
    """The entry as ``list --json`` prints it; unknown numbers are None."""
    return {
        "path": str(entry.path),
        "files": [str(file) for file in entry.files],
        "name": entry.name,
        "arch": entry.arch,
        "quant": entry.quant,
        "size_bytes": entry.size_bytes,
        "n_params": entry.n_params,
        "n_active_params": entry.n_active_params,
        "n_layer": entry.n_layer,
        "n_moe_layers": entry.n_moe_layers,
        "n_expert": entry.n_expert,
        "n_expert_used": entry.n_expert_used,
        "ctx_train": entry.ctx_train,
        "mmproj": None if entry.mmproj is None else str(entry.mmproj),
        "role": entry.role,
        "problem": entry.problem or None,
    }


def entry_of_facts(facts: ModelFacts) -> CatalogEntry:
    """The light entry of a model whose facts are known (its projector is not looked for)."""
    n_embd = facts.n_embd
    if facts.role == "mmproj":
        stated = facts.metadata.get("clip.vision.projection_dim")
        n_embd = stated if isinstance(stated, int) else None
    has_layers = facts.n_layer_all > 0
    return CatalogEntry(
        path=facts.path,
        files=facts.files,
        name=display_name(facts.name) or display_name(facts.path.stem),
        arch=display_name(facts.arch),
        quant=facts.quant,
        size_bytes=facts.size_bytes,
        n_params=facts.n_params,
        n_active_params=facts.n_active_params,
        n_layer=facts.n_layer if has_layers else None,
        n_moe_layers=len(facts.expert_layers) if has_layers else None,
        n_expert=facts.n_expert if has_layers else None,
        # A file with experts that does not say how many are used: not known, never none.
        n_expert_used=(facts.n_expert_used or _none_if(facts.n_expert)) if has_layers else None,
        ctx_train=facts.ctx_train,
        role=facts.role,
        n_embd=n_embd,
        has_chat_template=facts.has_chat_template,
    )


def _none_if(n_expert: int) -> int | None:
    return None if n_expert else 0


def to_stored(entry: CatalogEntry) -> dict[str, object]:
    """The values that the header cache keeps; what depends on other files is left out."""
    return {name: getattr(entry, name) for name in _STORED}


_TEXTS = frozenset({"name", "arch", "quant", "role"})
_NUMBERS = frozenset(
    {
        "size_bytes",
        "n_params",
        "n_active_params",
        "n_layer",
        "n_moe_layers",
        "n_expert",
        "n_expert_used",
        "ctx_train",
        "n_embd",
    }
)


_STORED = (*sorted(_TEXTS | _NUMBERS), "has_chat_template")
_STORED_NAMES = frozenset(_STORED)


def from_stored(
    files: tuple[Path, ...], stored: Mapping[str, object], **more: Any
) -> CatalogEntry | None:
    """The entry that was stored; None where the values are not what this program stores.

    ``more`` are further fields; ``path`` is the first file unless given.
    """
    if stored.keys() != _STORED_NAMES:
        return None
    for key, value in stored.items():
        if key in _TEXTS and not isinstance(value, str):
            return None
        if key in _NUMBERS and not (value is None or type(value) is int):
            return None
    if not isinstance(stored["has_chat_template"], bool):
        return None
    return CatalogEntry(**{"path": files[0] if files else None, "files": files, **stored, **more})
