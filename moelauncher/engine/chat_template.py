"""Turns into the prompt text that the model was trained on.

In: the model's own Jinja template (untrusted text from a file) and the turns. Out: the
prompt. Templates run in Jinja's sandbox, with bounded output (:mod:`.template_guard`). Any
thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.engine_protocol import ChatMessage
from moelauncher.core.errors import Cancelled, TemplateRefused
from moelauncher.core.translate import tr

#: Real templates have up to about 30 kB; a longer one is damage or an attack.
LONGEST_TEMPLATE = 200_000


class ChatTemplate:
    """A template, compiled at the first use: a broken one fails the reply, not the load."""

    def __init__(self, text: str | None, bos_text: str, eos_text: str) -> None:
        """``text`` is the model's template; None, an empty or an absurdly long one gives ChatML."""
        own = text if text and len(text) <= LONGEST_TEMPLATE else None
        self.source = "model" if own else "chatml"
        self.too_long = bool(text) and own is None
        self.text = own or CHATML
        self._special = {"bos_token": bos_text, "eos_token": eos_text}
        self._compiled: Any = None

    def render(
        self,
        messages: Sequence[ChatMessage],
        values: Mapping[str, object],
        *,
        open_reply: bool = True,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> str:
        """The prompt for ``messages``; ``open_reply`` adds the beginning of the reply.

        Raises TemplateRefused with the template's own message, Cancelled when ``cancelled()``.
        """
        import jinja2

        from moelauncher.engine.template_guard import LONGEST_TEXT, watched

        variables = {
            **self._special,
            # The day where the user is.
            "strftime_now": lambda pattern: datetime.now().strftime(pattern),  # noqa: DTZ005
            "raise_exception": _raise_template_error,
            "tools": None,
            **values,
            "messages": [_as_mapping(message) for message in messages],
            "add_generation_prompt": open_reply,
        }
        parts: list[str] = []
        length = 0
        try:
            if self._compiled is None:
                self._compiled = _environment().from_string(self.text)
            with watched(cancelled):
                for part in self._compiled.generate(variables):
                    parts.append(part)
                    length += len(part)
                    if cancelled():
                        raise Cancelled
                    if length > LONGEST_TEXT:
                        raise jinja2.TemplateError(tr("its output has no end"))
        except Cancelled:
            raise
        except Exception as error:  # a template is a program of a stranger: any may come
            raise TemplateRefused(
                tr("The model's chat template refused this conversation: {reason}").format(
                    reason=str(error) or type(error).__name__
                ),
                tr("Try it without a system prompt, or with the template ChatML."),
                f"{type(error).__name__}: {error}",
            ) from error
        return "".join(parts)


def _as_mapping(message: ChatMessage) -> dict[str, str]:
    mapping = {"role": message.role, "content": message.content}
    if message.reasoning:
        # Both names are in use: most templates read the first, gpt-oss the second.
        mapping["reasoning_content"] = mapping["thinking"] = message.reasoning
    return mapping


def _environment() -> Any:
    from moelauncher.engine.template_guard import GuardedEnvironment

    return GuardedEnvironment({"tojson": _to_json})


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes for HTML, which models were not trained on.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_template_error(reason: str) -> None:
    import jinja2

    raise jinja2.TemplateError(reason)
