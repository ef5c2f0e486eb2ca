"""Thinking and answer kept apart, however the text is cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.chats.reasoning import (
    NoSplitter,
    ReasoningSplitter,
    begun_reply,
    splitter_for,
)

THINK = "{{ '<think>' }}{{ '</think>' }}"
HARMONY = "<|channel|>analysis<|message|><|start|>"
ANALYSIS = "<|channel|>analysis<|message|>"
GRANITE = "between <think></think> and write your response between <response></response>"
SOLAR = "<|begin|>assistant<|think|>"
K3 = "macro '<|open|>' + tag + '<|sep|>' macro '<|close|>' + tag + '<|sep|>' open_tag('think')"
K3_END = "<|close|>response<|sep|><|close|>message<|sep|>"
MUSE = "'<|start|>assistant to=self<|message|>' + message['reasoning_content'] + '<|eom|>'"
COHERE = "<|START_THINKING|><|END_THINKING|><|START_TEXT|><|END_TEXT|>"
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"

CASES = [
    # template, end of the prompt, reply, answer, reasoning
    (THINK, "<|im_start|>assistant\n", "<think>\nhm, 2\n</think>\n\nIt is 2.", "It is 2.", "hm, 2"),
    (THINK, "assistant\n<think>\n", "hm, 2\n</think>\n\nIt is 2.", "It is 2.", "hm, 2"),
    (THINK, "assistant\n", "It is 2.", "It is 2.", ""),
    # Thinking was switched off: the prompt holds an empty block.
    (THINK, "assistant\n<think>\n\n</think>\n\n", "It is 2.", "It is 2.", ""),
    # An answer about the mark is an answer.
    (THINK, "assistant\n", "Use <think> and </think>.", "Use <think> and </think>.", ""),
    (THINK, "assistant\n", "<thin ice", "<thin ice", ""),
    (THINK, "assistant\n", "<think>a < b </thin> ok</think>yes", "yes", "a < b </thin> ok"),
    # Ended by max_tokens while thinking.
    (THINK, "assistant\n", "<think>on and </th", "", "on and </th"),
    ("", "assistant\n", "<think>x</think>y", "y", "x"),
    ("[THINK][/THINK]", "[/INST]", "[THINK]x[/THINK]y", "y", "x"),
    ("<|channel>thought<channel|>", "model\n", "<|channel>thought\nx<channel|>y", "y", "x"),
    ("<mm:think></mm:think>", "assistant\n<mm:think>", "x</mm:think>\n\ny", "y", "x"),
    ("<mm:think></mm:think>", "assistant\n", "<mm:think>x</mm:think>y", "y", "x"),
    ("'<think{}>'.format(a)", "<think:opensource>", "x</think:opensource>y", "y", "x"),
    ("<|inner_prefix|><|inner_suffix|>", "", "<|inner_prefix|>x<|inner_suffix|>y", "y", "x"),
    (
        "[BEGIN FINAL RESPONSE]",
        "<|begin_assistant|>\nHere are my reasoning steps:\n",
        "x\n[BEGIN FINAL RESPONSE]\ny",
        "y",
        "x",
    ),
    (GRANITE, "assistant", "<think>x</think>\n<response>\ny\n</response>\n", "y", "x"),
    (GRANITE, "assistant", "<think>x</think><response>y </resp", "y </resp", "x"),
    (GRANITE, "assistant", "<think>x</think>y </response>", "y </response>", "x"),
    (GRANITE, "assistant", "<response>a </response> b</response>", "a </response> b", ""),
    (GRANITE, "assistant", "plain <response>", "plain <response>", ""),
    ("</think><answer></answer>", "", "<think>\nx\n</think>\n<answer>\ny\n</answer>", "y", "x"),
    (SOLAR, "<|begin|>assistant", "<|think|>x<|end|><|begin|>assistanty<|end|>", "y", "x"),
    (SOLAR, "<|begin|>assistant", "y<|end|>", "y", ""),
    ("◁think▷◁/think▷", "assistant", "◁think▷x◁/think▷y", "y", "x"),
    (
        K3,
        '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
        f"x<|close|>think<|sep|><|open|>response<|sep|>y{K3_END}",
        "y",
        "x",
    ),
    (K3, "", "<|open|>think<|sep|>x<|close|>think<|sep|><|open|>response<|sep|>y", "y", "x"),
    # Thinking was switched off.
    (K3, "<|open|>response<|sep|>", f"<think> y{K3_END}", "<think> y", ""),
    (K3, "<|open|>think<|sep|>", "x<|close|>think<|sep|>y <|close|>", "y <|close|>", "x"),
    (COHERE, "<|START_THINKING|>", "x<|END_THINKING|><|START_TEXT|>y<|END_TEXT|>", "y", "x"),
    # The marks around the answer are no text to begin with.
    (COHERE, "<|START_THINKING|>", "x<|END_THINKING|>y", "y", "x"),
    (
        MUSE,
        "<|start|>assistant",
        " to=self<|message|>x <| y<|eom|><|start|>assistant to=user<|message|>z<|eot|>",
        "z",
        "x <| y",
    ),
    (MUSE, "<|start|>assistant", " to=user<|message|>y", "y", ""),
    (MUSE, "<|start|>assistant", " to=self<|message|>x<|eom|><|start|>assist", "", "x"),
    (MUSE, "<|start|>assistant", "Yes.", "Yes.", ""),
    (MUSE, "<|start|>assistant", " to be", " to be", ""),
    (HARMONY, "<|start|>assistant", f"{ANALYSIS}hm, 2{FINAL}It is 2.", "It is 2.", "hm, 2"),
    (HARMONY, "<|start|>assistant", "<|channel|>final<|message|>It is 2.", "It is 2.", ""),
    (HARMONY, "<|start|>assistant<|channel|>", f"analysis<|message|>a{FINAL}b", "b", "a"),
    (HARMONY, "<|start|>assistant", f"{ANALYSIS}a <| b", "", "a <| b"),
    (HARMONY, "<|start|>assistant", f"{ANALYSIS}a<|end|><|start|>assist", "", "a"),
    # A model that forgets the header: nothing of a whole answer is lost.
    (
        HARMONY,
        "<|start|>assistant",
        f"{ANALYSIS}a<|end|>" + "word " * 40,
        ("word " * 40).strip(),
        "a",
    ),
]


def split(splitter: ReasoningSplitter, parts: list[str]) -> tuple[str, str]:
    pairs = [splitter.feed(part) for part in parts] + [splitter.flush()]
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)


@pytest.mark.parametrize(("template", "prompt", "reply", "answer", "reasoning"), CASES)
def test_known_formats(template: str, prompt: str, reply: str, answer: str, reasoning: str) -> None:
    assert split(splitter_for(template, prompt), [reply]) == (answer, reasoning)
    assert split(splitter_for(template, prompt), list(reply)) == (answer, reasoning)


@given(st.sampled_from(CASES), st.lists(st.integers(0, 100)))
def test_any_cut_gives_the_same(case: tuple[str, str, str, str, str], cuts: list[int]) -> None:
    template, prompt, reply, answer, reasoning = case
    edges = [0, *sorted(at % (len(reply) + 1) for at in cuts), len(reply)]
    parts = [reply[a:b] for a, b in itertools.pairwise(edges)]
    assert split(splitter_for(template, prompt), parts) == (answer, reasoning)


@given(st.text())
def test_plain_answers_pass_unchanged(text: str) -> None:
    if not text.lstrip().startswith("<think>"):
        assert split(splitter_for(THINK, "assistant\n"), [text]) == (text, "")
    assert split(NoSplitter(), [text]) == (text, "")


def test_thinking_streams_and_does_not_wait_for_its_end() -> None:
    splitter = splitter_for(THINK, "assistant\n<think>\n")
    assert splitter.feed("first, ") == ("", "first,")
    assert splitter.feed("then") == ("", " then")


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_wrapped_answer_is_gone_on_with_inside_its_marks(wrapped: bool) -> None:
    template = GRANITE if wrapped else THINK
    said, splitter = begun_reply(template, "assistant", "x", "one")
    assert said.endswith("<response>one" if wrapped else "</think>\n\none")
    assert split(splitter, [" two", "\n</resp", "onse>"] if wrapped else [" two"]) == (" two", "")


@pytest.mark.parametrize(
    ("template", "prompt", "thought", "whole", "rest"),
    [
        (
            K3,
            "<|open|>think<|sep|>",
            "hm",
            "hm<|close|>think<|sep|><|open|>response<|sep|>It i",
            f"s.{K3_END}",
        ),
        (K3, "<|open|>response<|sep|>", "", "It i", f"s.{K3_END}"),
        (
            COHERE,
            "<|START_THINKING|>",
            "hm",
            "hm<|END_THINKING|><|START_TEXT|>It i",
            "s.<|END_TEXT|>",
        ),
        (
            MUSE,
            "<|start|>assistant",
            "hm",
            " to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>It i",
            "s.<|eot|>",
        ),
    ],
)
def test_what_was_cut_is_written_as_its_family_writes(
    template: str, prompt: str, thought: str, whole: str, rest: str
) -> None:
    said, splitter = begun_reply(template, prompt, thought, "It i")
    assert said == whole
    assert split(splitter, list(rest)) == ("s.", "")
    if thought:
        said, splitter = begun_reply(template, prompt, thought, "")
        assert whole.startswith(said)
        assert split(splitter, list(whole[len(said) :] + rest)) == ("It is.", "")
