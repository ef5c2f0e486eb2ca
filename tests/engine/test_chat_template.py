"""Templates of strangers, rendered in a sandbox."""

from __future__ import annotations

import threading

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


def test_a_template_of_a_megabyte_is_none() -> None:
    template = ChatTemplate("{{ messages[0].content }}" * 40_000, "<s>", "</s>")
    assert template.too_long and template.source == "chatml"
    assert template.render(TURNS, {}).startswith("<|im_start|>user\n")


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
        ("{{ '{} {:>3}'.format(1234567, 7) }}", "1234567   7"),
        ("{{ '%s of %5.1f' | format(1234567, 7) }}", "1234567 of   7.0"),
        ("{{ 1234567 | string ~ 'x' * 3 }}{{ [1, 2] + [3] }}", "1234567xxx[1, 2, 3]"),
        ("{{ 'a-b' | replace('-', '+') }}{{ 'a b'.replace(' ', '') }}", "a+bab"),
        ("{{ ['a', 'b'] | join(', ') }}{{ ', '.join(['c', 'd']) }}", "a, bc, d"),
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
        ("{{ 'x' * 10 ** 9 }}", "no end"),
        ("{{ 9 ** (9 ** 9) }}", "too large"),
        ("{{ '%9999999999d' % 1 }}", "no end"),
        ("{{ '{:9999999999}'.format(1) }}", "no end"),
        ("{{ '{:{}}'.format(1, 10 ** 9) }}", "no end"),
        ("{{ '%*d' % (10 ** 9, 1) }}", "no end"),
        ("{{ 'x' | center(10 ** 9) }}", "no end"),
        ("{{ 'x'.ljust(10 ** 9) }}", "no end"),
        ("{{ [1] | tojson(indent=10 ** 9) }}", "no end"),
        (
            "{% set n = namespace(s='x' * 99) %}{% for i in range(99) %}"
            "{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
            "no end",
        ),
        (
            "{% set n = namespace(s='x' * 99) %}{% for i in range(99) %}"
            "{% set n.s = n.s + n.s %}{% endfor %}{{ n.s }}",
            "no end",
        ),
        (
            "{% set n = namespace(s='x' * 99) %}{% for i in range(99) %}"
            "{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}{{ n.s }}",
            "no end",
        ),
        (
            "{% set n = namespace(s='x' * 99) %}{% for i in range(99) %}"
            "{% set n.s = n.s | replace('x', 'xxxx') %}{% endfor %}{{ n.s }}",
            "no end",
        ),
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


NEVER_ENDS = {
    "with output": "{% for i in range(90000) %}{{ i }}{% endfor %}",
    "without output": "{% for i in range(90000) %}{% for j in range(90000) %}"
    "{% for k in range(90000) %}{% endfor %}{% endfor %}{% endfor %}",
    "in a block that is kept": "{% set x %}{% for i in range(90000) %}{% for j in range(90000) %}"
    "{% if i > 99999 %}{{ i }}{% endif %}{% endfor %}{% endfor %}{% endset %}",
    "in a macro": "{% macro m(n) %}{% if n %}{% set a = m(n - 1) %}{% set b = m(n - 1) %}"
    "{% endif %}{% endmacro %}{{ m(60) }}",
    "with the watch's own name": "{% macro step() %}{% endmacro %}{% set step = 1 %}"
    "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
}


@pytest.mark.parametrize("kind", NEVER_ENDS)
def test_what_never_ends_can_be_cancelled(kind: str) -> None:
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    with pytest.raises(Cancelled):
        ChatTemplate(NEVER_ENDS[kind], "", "").render(TURNS, {}, cancelled=cancelled)
    assert asked == 21


def test_one_template_is_rendered_by_several_threads() -> None:
    template = ChatTemplate("{% for i in range(2000) %}{% endfor %}done", "", "")
    ends: list[str] = []

    def render(stop: bool) -> None:
        try:
            ends.append(template.render(TURNS, {}, cancelled=lambda: stop))
        except Cancelled:
            ends.append("cancelled")

    threads = [threading.Thread(target=render, args=(n % 2 == 0,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["cancelled"] * 4 + ["done"] * 4
