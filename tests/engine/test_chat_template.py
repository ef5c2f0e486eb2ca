"""Templates of strangers, rendered in a sandbox."""

from __future__ import annotations

import pytest

from moelauncher.core.engine_protocol import ChatMessage
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.engine.chat_template import ChatTemplate

TURNS = (ChatMessage("user", "Hi <b>you</b>"), ChatMessage("assistant", "Yes?", "they greet"))


def rendered(text: str, **values: object) -> str:
    return ChatTemplate(text, "<s>", "</s>").render(TURNS, values)


def test_model_without_a_template_gets_chatml() -> None:
    template = ChatTemplate(None, "<s>", "</s>")
    assert template.source == "chatml"
    turns = "<|im_start|>user\nHi <b>you</b><|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n"
    assert template.render(TURNS, {}) == turns + "<|im_start|>assistant\n"
    assert template.render(TURNS, {}, open_reply=False) == turns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}", "<s>Hi <b>you</b></s>"),
        ("{{ messages[1].reasoning_content }}/{{ messages[1].thinking }}", "they greet/they greet"),
        ("{{ messages[0].reasoning_content is defined }}", "False"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}x{% endfor %}", "x"),
        ("{% generation %}inside{% endgeneration %}", "inside"),
        ("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}'),
        ("{{ strftime_now('%Y') | length }}", "4"),
        ("{% if tools %}tools{% else %}none{% endif %}", "none"),
        ("  {% if true %}\n  yes\n  {% endif %}\n", "  yes\n"),
    ],
)
def test_what_real_templates_use(text: str, expected: str) -> None:
    assert rendered(text) == expected


def test_values_reach_the_template() -> None:
    text = "{{ enable_thinking }} {{ reasoning_effort }}"
    assert rendered(text, enable_thinking=False, reasoning_effort="low") == "False low"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% if %}", "expected"),
        ("{{ messages[0].nothing.at_all }}", "nothing"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{% for i in range(10**9) %}x{% endfor %}", "range"),
    ],
)
def test_template_that_fails_says_why(text: str, reason: str) -> None:
    with pytest.raises(LauncherError) as caught:
        rendered(text)
    assert reason.lower() in caught.value.message.lower()
    assert caught.value.hint


def test_output_without_an_end_is_refused() -> None:
    loops = "{% for i in range(90000) %}{% for j in range(90000) %}{{ 'x' * 9000 }}"
    with pytest.raises(LauncherError) as caught:
        rendered(loops + "{% endfor %}{% endfor %}")
    assert "no end" in caught.value.message


def test_long_rendering_can_be_cancelled() -> None:
    template = ChatTemplate("{% for i in range(90000) %}{{ i }}{% endfor %}", "", "")
    with pytest.raises(Cancelled):
        template.render(TURNS, {}, cancelled=lambda: True)
