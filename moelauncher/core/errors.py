"""The one error root. What is raised for the user carries a ready sentence."""

from __future__ import annotations


class LauncherError(Exception):
    """Something that the user should be told.

    ``message`` says what happened, ``hint`` what to do about it (may be empty), and
    ``details`` what an expert needs (native log lines, numbers; may be empty). All plain
    text: it is never rendered as HTML.
    """

    def __init__(self, message: str, hint: str = "", details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def sentence(self) -> str:
        """Message and hint in one line, as the status line and stderr show it."""
        return f"{self.message} {self.hint}".strip()

    def __str__(self) -> str:
        return self.sentence


class WrongArguments(LauncherError):  # noqa: N818 - named for what the user gave
    """Arguments of the command line that cannot be meant: exit status 2."""


class SettingsRefused(LauncherError):  # noqa: N818 - named for what happened
    """llama.cpp takes the file, but not with this context, KV type or batch."""


class HelperCrashed(LauncherError):  # noqa: N818 - named for what happened
    """The helper process ended over a request; ``reason``: its last words alone, a sentence."""

    def __init__(
        self, message: str, hint: str = "", details: str = "", *, reason: str = ""
    ) -> None:
        super().__init__(message, hint, details)
        self.reason = reason


class TemplateRefused(LauncherError):  # noqa: N818 - named for what happened
    """The model's chat template raised: another one, ChatML, may do."""


class Cancelled(Exception):  # noqa: N818 - a cancel is not an error
    """The user asked for the work to end. Never shown as an error."""
