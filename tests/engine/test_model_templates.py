"""Templates of real model families: turns, thinking, and what can be switched."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.reasoning import begun_reply, splitter_for
from moelauncher.core.engine_protocol import ChatMessage, GenerationStats
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.engine.chat_template import ChatTemplate
from moelauncher.engine.find_switches import find_switches

FOLDER = Path(__file__).with_name("templates")
SYSTEM = ChatMessage("system", "Be brief.")
FIRST = ChatMessage("user", "2+2?")
ANSWER = ChatMessage("assistant", "It is 4.", "an easy sum")
SECOND = ChatMessage("user", "3+3?")

# family: what begins a chat with a system prompt, a user's turn, a reply, the reply to come
TURNS = {
    "qwen3": (
        "<|im_start|>system\nBe brief.<|im_end|>\n",
        "<|im_start|>user\n{}<|im_end|>\n",
        "<|im_start|>assistant\n{}<|im_end|>\n",
        "<|im_start|>assistant\n",
    ),
    "qwen3.5": (
        "<|im_start|>system\nBe brief.<|im_end|>\n",
        "<|im_start|>user\n{}<|im_end|>\n",
        "<|im_start|>assistant\n{}<|im_end|>\n",
        "<|im_start|>assistant\n<think>\n",
    ),
    "glm-4.6": (
        "[gMASK]<sop><|system|>\nBe brief.",
        "<|user|>\n{}",
        "<|assistant|>\n<think></think>\n{}",
        "<|assistant|>",
    ),
    "deepseek-v3.1": (
        "<s>Be brief.",
        "<｜User｜>{}",
        "<｜Assistant｜><think></think>{}<｜end▁of▁sentence｜>",
        "<｜Assistant｜><think></think>",
    ),
    "granite-3.3": (
        "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n",
        "<|start_of_role|>user<|end_of_role|>{}<|end_of_text|>\n",
        "<|start_of_role|>assistant<|end_of_role|>{}<|end_of_text|>\n",
        "<|start_of_role|>assistant<|end_of_role|>",
    ),
    "ministral-3-reasoning": (
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT]",
        "[INST]{}[/INST]",
        "{}</s>",
        "",
    ),
    "gemma-4": (
        "<s><|turn>system\nBe brief.<turn|>\n",
        "<|turn>user\n{}<turn|>\n",
        "<|turn>model\n{}<turn|>\n",
        "<|turn>model\n<|channel>thought\n<channel|>",
    ),
}

SWITCHES = {
    "qwen3": TemplateSwitch("enable_thinking", (False, True), True),
    "qwen3.5": TemplateSwitch("enable_thinking", (False, True), True),
    "smollm3": TemplateSwitch("enable_thinking", (False, True), True),
    "glm-4.6": TemplateSwitch("enable_thinking", (False, True), True),
    "gemma-4": TemplateSwitch("enable_thinking", (False, True), False),
    "deepseek-v3.1": TemplateSwitch("enable_thinking", (False, True), False),
    "granite-3.3": TemplateSwitch("thinking", (False, True), False),
    "gpt-oss": TemplateSwitch("reasoning_effort", ("low", "medium", "high"), "medium"),
    "ministral-3-reasoning": None,
}


# family, thinking on or off: what then differs from TURNS
THINKING: dict[tuple[str, bool], dict[int, str]] = {
    ("qwen3", True): {},
    ("qwen3", False): {3: "<|im_start|>assistant\n<think>\n\n</think>\n\n"},
    ("qwen3.5", True): {},
    ("qwen3.5", False): {3: "<|im_start|>assistant\n<think>\n\n</think>\n\n"},
    ("glm-4.6", True): {},
    ("glm-4.6", False): {1: "<|user|>\n{}/nothink", 3: "<|assistant|>\n<think></think>"},
    ("deepseek-v3.1", True): {3: "<｜Assistant｜><think>"},
    ("deepseek-v3.1", False): {},
    ("granite-3.3", False): {},
    ("gemma-4", True): {
        0: "<s><|turn>system\n<|think|>\nBe brief.<turn|>\n",
        3: "<|turn>model\n",
    },
    ("gemma-4", False): {},
}


def template(family: str) -> ChatTemplate:
    text = (FOLDER / f"{family}.jinja").read_text(encoding="utf-8")
    return ChatTemplate(text, "<s>", "</s>")


@pytest.mark.parametrize("family", sorted(TURNS))
def test_turns_are_rendered_as_the_family_wants_them(family: str) -> None:
    system, user, reply, opening = TURNS[family]
    rendered = template(family).render((SYSTEM, FIRST, ANSWER, SECOND), {})
    parts = (system, user.format("2+2?"), reply.format("It is 4."), user.format("3+3?"), opening)
    assert rendered == "".join(parts)


@pytest.mark.parametrize(("family", "thinks"), sorted(THINKING))
def test_thinking_is_asked_for_as_the_family_wants_it(family: str, thinks: bool) -> None:
    switch = SWITCHES[family]
    assert switch is not None
    parts = list(TURNS[family])
    for number, text in THINKING[family, thinks].items():
        parts[number] = text
    system, user, reply, opening = parts
    rendered = template(family).render((SYSTEM, FIRST, ANSWER, SECOND), {switch.name: thinks})
    turns = (user.format("2+2?"), reply.format("It is 4."), user.format("3+3?"))
    assert rendered == "".join((system, *turns, opening))


def test_gpt_oss_speaks_in_channels() -> None:
    rendered = template("gpt-oss").render((SYSTEM, FIRST, ANSWER, SECOND), {})
    assert "Reasoning: medium" in rendered
    assert "<|start|>developer<|message|># Instructions\n\nBe brief." in rendered
    assert rendered.endswith(
        "<|start|>user<|message|>2+2?<|end|>"
        "<|start|>assistant<|channel|>final<|message|>It is 4.<|end|>"
        "<|start|>user<|message|>3+3?<|end|><|start|>assistant"
    )
    high = template("gpt-oss").render((FIRST,), {"reasoning_effort": "high"})
    assert "Reasoning: high" in high


@pytest.mark.parametrize("family", sorted(SWITCHES))
def test_what_can_be_switched_is_found_by_trial(family: str) -> None:
    wanted = SWITCHES[family]
    assert find_switches(template(family)) == (() if wanted is None else (wanted,))


@pytest.mark.parametrize("family", sorted(SWITCHES))
@pytest.mark.parametrize("values", [{}, {"enable_thinking": True}, {"thinking": True}])
def test_thinking_of_earlier_turns_is_not_read_again(
    family: str, values: dict[str, object]
) -> None:
    rendered = template(family).render((SYSTEM, FIRST, ANSWER, SECOND), values)
    assert "an easy sum" not in rendered
    assert "It is 4." in rendered


def test_thinking_of_earlier_turns_is_read_again_where_the_template_wants_it() -> None:
    ling = template("ling-3.0-flash")
    chat = Conversation("Be brief.").ask("2+2?").begin_reply("m").append("It is 4.", "an easy sum")
    chat = chat.finish(GenerationStats("stop", 9, 0, 5, None, None, None, 0.1, 14)).ask("3+3?")
    rendered = ling.render(chat.messages(), {})
    assert rendered.startswith(
        "<role>SYSTEM</role>Be brief.\ndetailed thinking on<|role_end|>"
        "<role>HUMAN</role>2+2?<|role_end|>"
        "<role>ASSISTANT</role>\n<think>an easy sum</think>It is 4.<|role_end|>"
        "<role>HUMAN</role>3+3?<|role_end|><role>ASSISTANT</role>"
    )
    assert "thinking off" in ling.render(chat.messages(), {"enable_thinking": False})


THINKERS = sorted(set(SWITCHES) - {"granite-3.3"})


def written(family: str, thought: str, answer: str, values: dict[str, object]) -> tuple[str, str]:
    """A prompt, and a reply as a model of the family writes it behind that prompt."""
    prompt = template(family).render((FIRST,), values)
    if family == "gpt-oss":
        reply = f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant"
        return prompt, f"{reply}<|channel|>final<|message|>{answer}"
    marks = {
        "gemma-4": ("<|channel>thought\n", "<channel|>"),
        "ministral-3-reasoning": ("[THINK]", "[/THINK]"),
    }.get(family, ("<think>\n", "</think>\n\n"))
    opening = "" if prompt.rstrip().endswith("<think>") else marks[0]
    return prompt, f"{opening}{thought}\n{marks[1]}{answer}"


@pytest.mark.parametrize("family", THINKERS)
def test_replies_are_split_with_marks_cut_anywhere(family: str) -> None:
    one = template(family)
    prompt, reply = written(family, "2, twice", "It is 4.", {"enable_thinking": True})
    for size in (1, 2, 3, 7, len(reply)):
        splitter = splitter_for(one.text, prompt)
        pairs = [splitter.feed(reply[at : at + size]) for at in range(0, len(reply), size)]
        pairs.append(splitter.flush())
        assert "".join(pair[0] for pair in pairs) == "It is 4."
        assert "".join(pair[1] for pair in pairs) == "2, twice"


@pytest.mark.parametrize("family", THINKERS)
@pytest.mark.parametrize("cut", ["thought", "answer"])
def test_a_reply_that_was_cut_is_gone_on_with(family: str, cut: str) -> None:
    one = template(family)
    values: dict[str, object] = {"enable_thinking": True}
    prompt, whole = written(family, "2, twice", "It is 4.", values)
    text = "" if cut == "thought" else "It i"
    reasoning = "2, tw" if cut == "thought" else "2, twice"
    begun, splitter = begun_reply(one.text, prompt, reasoning, text)
    assert begun.endswith(text or reasoning)
    # What is put there is how the model itself would have begun.
    assert "".join(whole.split()).startswith("".join(begun.split()))
    rest = whole[whole.index("ice") if cut == "thought" else whole.index("s 4.") :]
    answer, thought = splitter.feed(rest)
    more, thought_more = splitter.flush()
    assert text + answer + more == "It is 4."
    assert reasoning + thought + thought_more == "2, twice"


def test_without_thinking_a_reply_goes_on_as_plain_text() -> None:
    one = template("qwen3")
    prompt = one.render((FIRST,), {"enable_thinking": False})
    assert begun_reply(one.text, prompt, "", "It i")[0] == "It i"


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{{ enable_thinking }}"
        "{% endfor %}{% endfor %}",
        "{{ raise_exception('no') }}{{ enable_thinking }}",
        "{% if enable_thinking",
        "enable_thinking is only mentioned here",
        "{{ '' }}" * 120_000 + "{{ enable_thinking }}",
    ],
)
def test_templates_that_fail_or_never_end_have_no_switch(text: str) -> None:
    ticks = iter(range(1_000_000))
    found = find_switches(ChatTemplate(text, "", ""), clock=lambda: next(ticks) / 100)
    assert found in ((), (TemplateSwitch("enable_thinking", (False, True), None),))
