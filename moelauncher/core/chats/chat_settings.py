"""What is set for one chat alone, over the settings of the program.

In: what the user typed, or what a chat kept. Out: JSON values by name, and the sampling that
follows. A name that is missing means: as usual. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from moelauncher.core.engine_protocol import Sampling
from moelauncher.core.errors import LauncherError
from moelauncher.core.program import settings as keys
from moelauncher.core.program.setting import Setting, or_none, whole
from moelauncher.core.translate import tr

_SEED: Setting[int | None] = Setting(
    "chat.seed",
    None,
    "Seed",
    "The same seed and the same prompt give the same reply. Empty: another one each time.",
    or_none(whole(0, 2**32 - 2)),
)
#: Numbers that a chat may set for itself: name in the chat, setting, whether it is whole.
NUMBERS = cast(
    "tuple[tuple[str, Setting[object], bool], ...]",
    (
        ("temperature", keys.TEMPERATURE, False),
        ("top_k", keys.TOP_K, True),
        ("top_p", keys.TOP_P, False),
        ("min_p", keys.MIN_P, False),
        ("repeat_penalty", keys.REPEAT_PENALTY, False),
        ("seed", _SEED, True),
        ("max_tokens", keys.MAX_TOKENS, True),
    ),
)
MOST_STOPS = 16


@dataclass(frozen=True)
class ReplySettings:
    """How a reply is drawn, and where it ends."""

    sampling: Sampling
    max_tokens: int | None
    stop: tuple[str, ...] = ()


def reply_settings(
    sampling: Sampling, max_tokens: int | None, chat: Mapping[str, object]
) -> ReplySettings:
    """The program's settings with a chat's own laid over them; nonsense is passed over."""
    own = known_numbers(chat)
    longest = own.pop("max_tokens", max_tokens)
    stop = chat.get("stop")
    stops = [s for s in stop if isinstance(s, str) and s] if isinstance(stop, list) else []
    return ReplySettings(
        replace(sampling, **cast(Any, own)),
        longest if isinstance(longest, int) else None,
        tuple(stops[:MOST_STOPS]),
    )


def read_typed(texts: Mapping[str, str], stop: str) -> dict[str, object]:
    """What was typed for a chat, a text a number. Raises LauncherError naming the wrong one."""
    found: dict[str, object] = {}
    for name, setting, is_whole in NUMBERS:
        text = texts.get(name, "").strip().replace(",", ".")
        if not text:
            continue
        try:
            found[name] = setting.parse(int(text) if is_whole else float(text))
        except ValueError as error:
            raise LauncherError(
                tr("{label}: “{text}” cannot be used.").format(label=tr(setting.label), text=text),
                tr("Leave it empty to have it as usual."),
                str(error),
            ) from error
    # A line break can be a stop string too, written as \n.
    stops = [line.replace("\\n", "\n") for line in stop.split("\n") if line]
    if stops:
        found["stop"] = stops[:MOST_STOPS]
    return found


def known_numbers(chat: Mapping[str, object]) -> dict[str, object]:
    """The numbers that a chat sets for itself and that make sense."""
    own: dict[str, object] = {}
    for name, setting, _ in NUMBERS:
        if chat.get(name) is not None:
            try:
                own[name] = setting.parse(chat[name])
            except ValueError:
                continue
    return own
