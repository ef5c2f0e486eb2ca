"""Runs a check of answers: each setting in a child process of its own.

In: :class:`AnswersJob`. Out: progress, at last :class:`SameAnswers`. Blocks; not for the
window's thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.same_answers import (
    AnswerSetting,
    AnswersJob,
    AnswersProgress,
    Comparison,
    PromptAnswer,
    SameAnswers,
)
from moelauncher.core.translate import tr
from moelauncher.engine.child import Child
from moelauncher.engine.placement_json import load_request_to_json

#: A load, or one prompt's answers, may take this long.
_LIMIT_S = 900.0


def run_answers(
    job: AnswersJob,
    *,
    make_child: Callable[[], Child] = Child,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[AnswersProgress | SameAnswers]:
    """The reference, the noise, then the change. Raises LauncherError, Cancelled."""
    settings = [("reference", job.reference), ("noise", job.noise), ("change", job.change)]
    steps = [(step, setting) for step, setting in settings if setting is not None]
    n_all = len(steps) * (len(job.prompts) + 1)  # a load counts as a prompt
    n_done = 0
    reference: list[dict[str, Any]] = []
    found: dict[str, Comparison] = {}
    with tempfile.TemporaryDirectory(prefix="moelauncher-") as scratch:
        file = Path(scratch) / "distributions"
        for step, setting in steps:
            yield AnswersProgress(step, n_done / n_all)
            child = make_child()
            answers: list[PromptAnswer] = []
            try:
                _ask(child, "answers_open", _opening(setting), cancelled)
                n_done += 1
                for number, prompt in enumerate(job.prompts):
                    yield AnswersProgress(step, n_done / n_all)
                    known = reference[number] if step != "reference" else None
                    asking = {
                        "prompt": prompt,
                        "n_tokens": job.n_tokens,
                        "file": str(file),
                        "start": sum(len(one["tokens"]) for one in reference[:number]),
                        "tokens": None if known is None else known["tokens"],
                    }
                    answer = _ask(child, "answers_ask", asking, cancelled)
                    n_done += 1
                    if known is None:
                        reference.append(answer)
                    else:
                        answers.append(_answer(prompt, known, answer))
            finally:
                child.close()
            if step != "reference":
                found[step] = Comparison(tuple(answers))
    yield SameAnswers(found.get("noise"), found["change"])


def _opening(setting: AnswerSetting) -> dict[str, Any]:
    return load_request_to_json(setting.request) | {"flash_attention": setting.flash_attention}


def _answer(prompt: str, known: dict[str, Any], answer: dict[str, Any]) -> PromptAnswer:
    return PromptAnswer(
        prompt,
        tuple(known["pieces"]),
        tuple(answer["pieces"]),
        answer["parted_at"],
        tuple(answer["divergences"]),
    )


def _ask(
    child: Child, operation: str, parameters: dict[str, Any], cancelled: Callable[[], bool]
) -> dict[str, Any]:
    try:
        answer = child.request(operation, parameters, cancelled=cancelled, timeout_s=_LIMIT_S)
    except LauncherError as error:
        # What runs here was accepted before: a crash says nothing against the file.
        refused = tr("llama.cpp refused this file: {reason}").format(reason="")
        hint = error.hint
        if error.message.startswith(refused):
            hint = tr("It may need more memory than there is, or a driver may be at fault.")
        raise LauncherError(
            tr("The answers could not be compared: {reason}").format(
                reason=error.message.removeprefix(refused)
            ),
            hint,
            error.details,
        ) from error
    if not isinstance(answer, dict):
        raise LauncherError(tr("The helper process gave no numbers."))
    return answer
