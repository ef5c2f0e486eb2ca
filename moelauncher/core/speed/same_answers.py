"""Do two settings answer alike? What is asked, what the answers tell, and the verdict.

In: for a few fixed prompts, the greedy text under each setting, and at every token how far the
next-token distributions lie apart (KL divergence, both behind the same text). Out: a
:class:`Verdict`. Pure; any thread.

Another placement computes with other kernels, in another order: that alone changes numbers a
little, and so it may change a text. This difference is the noise. A change of the KV cache's
type or of flash attention is held against it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement, same_place
from moelauncher.core.translate import tr

#: English, code, numbers, another language, a format: where answers of a damaged model part
#: first. Sent to the model as a chat, never translated, so that results can be compared.
PROMPTS = (
    "Explain in three sentences why the sky is blue.",
    "Write a Python function that returns the n-th Fibonacci number without recursion.",
    "A train leaves at 14:35 and arrives at 17:10. How long does it take? Think step by step.",
    "Translate into German: The weather will be fine tomorrow, so we are going to the lake.",
    "List the planets of the solar system as JSON, with their number of moons.",
)
N_TOKENS = 48

#: Distributions this close are the same: less than what rounding of one sum makes.
_NOTHING = 1e-6
#: A mean KL below this is not seen in any text, however small the noise was.
_UNSEEN = 2e-4
#: A change of so many times the noise is more than noise: noise differs by run and prompt.
_MORE = 2.0
#: A mean KL that other kernels make at most; what is beyond it computes something else.
_MOST_ROUNDING = 0.05
#: Weights in Q6_K instead of F16 make as much (see :func:`scale_text`).
_SLIGHT = 0.0055


@dataclass(frozen=True)
class AnswerSetting:
    """How one of the two is run. ``flash_attention`` None: as llama.cpp chooses."""

    request: LoadRequest
    flash_attention: bool | None = None

    @property
    def placement(self) -> Placement:
        """Where its layers lie."""
        return self.request.placement


@dataclass(frozen=True)
class PromptAnswer:
    """One prompt under the reference and under another setting.

    ``tokens`` are pieces of the reference's text, ``other`` those of the other's, equal up to
    ``parted_at`` (None: to the end). ``divergences`` holds the KL divergence of the other's
    distribution from the reference's at each of the reference's tokens.
    """

    prompt: str
    tokens: tuple[str, ...]
    other: tuple[str, ...]
    parted_at: int | None
    divergences: tuple[float, ...]

    @property
    def same(self) -> bool:
        """Whether both texts are equal, token for token."""
        return self.parted_at is None

    @property
    def mean(self) -> float:
        """The mean divergence over the reference's text."""
        return statistics.fmean(self.divergences) if self.divergences else 0.0


@dataclass(frozen=True)
class Comparison:
    """All prompts under the reference and one other setting."""

    answers: tuple[PromptAnswer, ...]

    @property
    def n_same(self) -> int:
        """How many texts are the same."""
        return sum(answer.same for answer in self.answers)

    @property
    def mean(self) -> float:
        """The mean divergence of all tokens."""
        every = [one for answer in self.answers for one in answer.divergences]
        return statistics.fmean(every) if every else 0.0

    @property
    def worst(self) -> float:
        """The largest divergence at any token."""
        return max((one for answer in self.answers for one in answer.divergences), default=0.0)


@dataclass(frozen=True)
class AnswersJob:
    """What is compared. ``noise`` is :func:`noise_setting`'s answer."""

    reference: AnswerSetting
    change: AnswerSetting
    noise: AnswerSetting | None
    prompts: tuple[str, ...] = PROMPTS
    n_tokens: int = N_TOKENS


@dataclass(frozen=True)
class AnswersProgress:
    """``step``: "reference" | "noise" | "change", which runs now; ``fraction`` of all is done."""

    step: str
    fraction: float


#: Runs a check: the job, "was it cancelled?". Ends with SameAnswers. Blocks.
AnswersRunner = Callable[
    [AnswersJob, Callable[[], bool]], "Iterator[AnswersProgress | SameAnswers]"
]


@dataclass(frozen=True)
class Verdict:
    """``level``: "same" | "noise" | "slight" (less than Q6_K weights make) | "differs"."""

    level: str
    text: str


@dataclass(frozen=True)
class SameAnswers:
    """What a check found. ``noise`` is another placement alone, None where there is none."""

    noise: Comparison | None
    change: Comparison

    @property
    def ratio(self) -> float | None:
        """The change as so many times the noise; None where the noise is nothing."""
        if self.noise is None or self.noise.mean <= _NOTHING:
            return None
        return self.change.mean / self.noise.mean


def verdict(found: SameAnswers, *, order_only: bool) -> Verdict:
    """The sentence. ``order_only``: the two settings compute the same sums, in another order
    (placement, threads, batch): what they differ by is itself the noise."""
    change, noise = found.change, found.noise
    n = len(change.answers)
    quiet = noise.mean if noise is not None else 0.0
    if change.n_same == n and change.mean <= max(_UNSEEN, quiet):
        return Verdict("same", tr("The answers are the same, token for token."))
    texts = tr("{n} of {all} answers part").format(n=n - change.n_same, all=n)
    if change.n_same == n:
        texts = tr("The texts are the same")
    kl = format_kl(change.mean)
    if order_only and change.mean <= _MOST_ROUNDING:
        text = tr("{texts}, by rounding alone: the same sums in another order (mean KL {kl}).")
        return Verdict("noise", text.format(texts=texts, kl=kl))
    if order_only:
        text = tr(
            "{texts}, and by more than rounding explains (mean KL {kl}): a driver or a kernel may "
            "compute wrongly here."
        )
        return Verdict("differs", text.format(texts=texts, kl=kl))
    if change.mean <= max(_UNSEEN, _MORE * quiet):
        text = tr(
            "{texts}, but no further than another placement alone moves them (mean KL {kl} "
            "against {noise})."
        )
        return Verdict("noise", text.format(texts=texts, kl=kl, noise=format_kl(quiet)))
    level = "slight" if change.mean <= _SLIGHT else "differs"
    if found.ratio is None:
        text = tr("{texts}: mean KL {kl}, where another placement alone would change nothing.")
        return Verdict(level, text.format(texts=texts, kl=kl))
    text = tr(
        "{texts}: the change moves the model {times} times as far as another placement does (mean "
        "KL {kl} against {noise})."
    )
    times = f"{found.ratio:.0f}" if found.ratio >= 10 else f"{found.ratio:.1f}"
    return Verdict(level, text.format(texts=texts, times=times, kl=kl, noise=format_kl(quiet)))


def scale_text() -> str:
    """What a mean KL of some size means, by llama.cpp's own table for Llama 3 8B."""
    return tr(
        "For scale: weights in Q8_0 instead of F16 move a model by 0.0014, Q6_K by 0.0055, Q4_K_M "
        "by 0.031."
    )


def noise_setting(
    reference: AnswerSetting, change: AnswerSetting, other_place: Placement | None
) -> AnswerSetting | None:
    """The reference with another order of its sums, and nothing else changed.

    The change's own placement where it has another one, else ``other_place``; on a machine
    where all places are one, other kernels, threads and batches. None where the change itself
    is no more than that: then it is the noise.
    """
    if only_order_differs(reference, change):
        return None
    request = reference.request
    for place in (change.placement, other_place):
        if place is not None and not same_place(place, request.placement):
            return replace(reference, request=replace(request, placement=place))
    context = request.context
    n_ubatch = max(1, context.n_ubatch // 8)
    n_threads = 2 if context.n_threads == 1 else 1
    order = replace(context, n_ubatch=n_ubatch, n_threads=n_threads)
    # Without copies of the weights in the CPU's own order other kernels compute them.
    return replace(
        reference,
        request=replace(request, context=order, weights_fit_ram=not request.weights_fit_ram),
    )


def only_order_differs(reference: AnswerSetting, change: AnswerSetting) -> bool:
    """Whether both compute the same sums, if in another order."""
    one, other = reference.request.context, change.request.context
    return one.kv_type == other.kv_type and reference.flash_attention == change.flash_attention


def context_for(context: ContextSettings, n_ctx: int = 1024) -> ContextSettings:
    """``context`` as short as the check needs: it must fit beside nothing else, and quickly."""
    return replace(context, n_ctx=min(context.n_ctx, n_ctx))


def joined(pieces: Sequence[str]) -> str:
    """The text of some tokens."""
    return "".join(pieces)


def format_kl(value: float) -> str:
    """ "0.0012": two figures; "0" for what is nothing but the rounding of this very sum."""
    return f"{value:.2g}" if value > _NOTHING else "0"
