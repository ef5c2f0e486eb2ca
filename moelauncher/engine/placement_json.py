"""Load requests, placements and context settings on the way to the child process and back.

In and out: the frozen values of ``core``, and plain dicts that JSON can carry. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement, PlacementDevice


def placement_to_json(placement: Placement) -> dict[str, Any]:
    """All of ``placement`` as dicts, lists, strings and numbers."""
    return asdict(placement)


def placement_from_json(values: Mapping[str, Any]) -> Placement:
    """The value that :func:`placement_to_json` was given."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, (list, tuple)) else value
        for name, value in values.items()
    }
    fields["devices"] = tuple(PlacementDevice(**device) for device in values["devices"])
    return Placement(**fields)


def context_to_json(context: ContextSettings) -> dict[str, Any]:
    """All of ``context`` as a dict of strings and numbers."""
    return asdict(context)


def context_from_json(values: Mapping[str, Any]) -> ContextSettings:
    """The value that :func:`context_to_json` was given."""
    return ContextSettings(**values)


def load_request_to_json(request: LoadRequest) -> dict[str, Any]:
    """``request`` as a dict of its own parts; a conversation is never carried to a child."""
    return {
        "path": str(request.path),
        "placement": placement_to_json(request.placement),
        "context": context_to_json(request.context),
        "use_mmap": request.use_mmap,
        "weights_fit_ram": request.weights_fit_ram,
        "expected_gpu_weights": dict(request.expected_gpu_weights),
    }


def load_request_from_json(values: Mapping[str, Any]) -> LoadRequest:
    """The value that :func:`load_request_to_json` was given; other entries are passed over."""
    return LoadRequest(
        Path(values["path"]),
        placement_from_json(values["placement"]),
        context_from_json(values["context"]),
        use_mmap=bool(values["use_mmap"]),
        weights_fit_ram=bool(values["weights_fit_ram"]),
        expected_gpu_weights=dict(values["expected_gpu_weights"]),
    )
