"""Replies of a real model: text, ends, stops, reuse of what was evaluated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.engine_protocol import (
    ChatMessage,
    GenerateFailed,
    GenerateRequest,
    NativeLog,
    PromptProgress,
    Sampling,
    TokenEvent,
)
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import GREEDY, ask, run, wait_for_all
from tests.helpers.turns import Turns, stopped_at

FRANCE = "What is the capital of France?"


def raw(prompt: str, max_tokens: int = 16, **fields: object) -> GenerateRequest:
    return GenerateRequest(raw_prompt=prompt, sampling=GREEDY, max_tokens=max_tokens, **fields)  # type: ignore[arg-type]


def test_answers_and_ends_by_itself(smollm2: LlamaEngine) -> None:
    outcome = run(smollm2, ask(FRANCE))
    assert "Paris" in outcome.text
    assert "<|im_end|>" not in outcome.text
    assert outcome.reasoning == ""
    stats = outcome.stats
    assert stats.finish_reason == "stop"
    assert stats.completion_tokens == len(outcome.all(TokenEvent))
    assert stats.prompt_tok_s and stats.tok_s and stats.ttft_s
    # The token that ended the reply is not in the context.
    assert stats.context_used == stats.prompt_tokens + stats.completion_tokens


def test_tokens_come_one_by_one_with_a_rising_count(smollm2: LlamaEngine) -> None:
    tokens = run(smollm2, ask(FRANCE, max_tokens=5)).all(TokenEvent)
    assert [token.n_tokens for token in tokens][:5] == [1, 2, 3, 4, 5]
    times = [token.time_s for token in tokens]
    assert times == sorted(times)


def test_max_tokens_is_kept(smollm2: LlamaEngine) -> None:
    stats = run(smollm2, ask(FRANCE, max_tokens=3)).stats
    assert (stats.finish_reason, stats.completion_tokens) == ("length", 3)


def test_stop_string_ends_the_reply_and_is_not_shown(smollm2: LlamaEngine) -> None:
    whole = run(smollm2, ask(FRANCE)).text
    before, word, _ = whole.partition(" Paris")
    assert word
    outcome = run(smollm2, ask(FRANCE, stop=("of France is Par\t", "is Paris")))
    assert outcome.text == before.removesuffix("is")
    assert outcome.stats.finish_reason == "stop"


def test_same_seed_same_text_other_seed_other_text(smollm2: LlamaEngine) -> None:
    def told(seed: int) -> str:
        sampling = Sampling(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
        return run(smollm2, ask("Tell me a story.", sampling=sampling)).text

    first = told(7)
    assert told(7) == first
    assert told(8) != first


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 0.0}, {"min_p": 1.0}])
def test_each_filter_alone_can_leave_only_the_likeliest(
    smollm2: LlamaEngine, narrow: dict[str, float]
) -> None:
    greedy = run(smollm2, ask("Tell me a story.")).text
    wide = Sampling(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
    assert run(smollm2, ask("Tell me a story.", sampling=replace(wide, **narrow))).text == greedy


def test_repeat_penalty_changes_a_repeating_text(smollm2: LlamaEngine) -> None:
    prompt = "one two one two one two one two"
    plain = run(smollm2, raw(prompt, 8)).text
    assert plain.count("two") >= 2
    request = replace(raw(prompt, 8), sampling=replace(GREEDY, repeat_penalty=5.0))
    # The words of the prompt are penalised as well, not only those of the reply.
    assert " two" not in run(smollm2, request).text


def test_raw_prompt_is_continued_without_a_template(smollm2: LlamaEngine) -> None:
    outcome = run(smollm2, raw("The capital of France is", 4))
    assert outcome.text.startswith(" Paris")
    assert outcome.stats.prompt_tokens == 5


def test_benchmarks_can_ignore_the_end(smollm2: LlamaEngine) -> None:
    request = replace(ask(FRANCE, max_tokens=40), ignore_end_of_generation=True)
    stats = run(smollm2, request).stats
    assert (stats.finish_reason, stats.completion_tokens) == ("length", 40)


def test_next_turn_evaluates_only_what_is_new(smollm2: LlamaEngine) -> None:
    first = run(smollm2, ask(FRANCE))
    more = (ChatMessage("assistant", first.text), ChatMessage("user", "And of Italy?"))
    second = run(smollm2, ask(FRANCE, *more))
    assert second.stats.cached_tokens == first.stats.context_used
    assert second.evaluated == second.stats.prompt_tokens - first.stats.context_used
    assert second.evaluated < 20
    # The same turns without anything to reuse give the same answer.
    run(smollm2, raw("Something else"))
    assert run(smollm2, ask(FRANCE, *more)).text == second.text


def test_same_question_again_evaluates_one_token(smollm2: LlamaEngine) -> None:
    first = run(smollm2, ask(FRANCE))
    again = run(smollm2, ask(FRANCE))
    assert again.evaluated == 1
    assert again.text == first.text


def test_stop_while_the_prompt_is_evaluated(smollm2: LlamaEngine) -> None:
    outcome = stopped_at(smollm2, raw("All work and no play. " * 120), PromptProgress)
    assert outcome.stats.finish_reason == "cancelled"
    assert outcome.stats.completion_tokens == 0
    assert outcome.stats.ttft_s is None
    assert outcome.stats.context_used < outcome.stats.prompt_tokens
    # What is left in the context is sound: the next reply is the one of a fresh context.
    assert "Paris" in run(smollm2, ask(FRANCE)).text


def test_stop_while_tokens_come_keeps_what_there_is(smollm2: LlamaEngine) -> None:
    request = replace(ask("Tell me a story.", max_tokens=400), ignore_end_of_generation=True)
    outcome = stopped_at(smollm2, request, TokenEvent)
    assert outcome.stats.finish_reason == "cancelled"
    assert 1 <= outcome.stats.completion_tokens < 400
    assert outcome.text
    assert not [log for log in outcome.all(NativeLog) if log.level in ("warning", "error")]
    assert "Paris" in run(smollm2, ask(FRANCE)).text


def test_stop_ends_requests_that_wait_but_not_later_ones(smollm2: LlamaEngine) -> None:
    with Turns(smollm2):
        first = smollm2.generate(raw("All work and no play. " * 120))
        second = smollm2.generate(ask(FRANCE))
        smollm2.stop()
        third = smollm2.generate(ask(FRANCE))
    outcomes = wait_for_all(smollm2, first, second, third)
    reasons = [outcome.stats.finish_reason for outcome in outcomes]
    assert reasons == ["cancelled", "cancelled", "stop"]
    assert "Paris" in outcomes[2].text


def test_prompt_longer_than_the_context_names_both_numbers(smollm2: LlamaEngine) -> None:
    outcome = run(smollm2, raw("word " * 3000))
    assert isinstance(outcome.end, GenerateFailed)
    sentence = outcome.end.error.sentence
    n_tokens = smollm2.count_tokens("word " * 3000)
    assert str(n_tokens) in sentence
    assert "1024" in sentence


def test_full_context_ends_the_reply_with_what_it_has(smollm2: LlamaEngine) -> None:
    n_prompt = 1000
    prompt = "word" + " word" * (n_prompt - 1)
    assert smollm2.count_tokens(prompt) == n_prompt
    request = replace(raw(prompt, 500), ignore_end_of_generation=True)
    stats = run(smollm2, request).stats
    assert stats.finish_reason == "context_full"
    assert stats.context_used == 1024
    assert stats.completion_tokens == 1024 - n_prompt + 1


def test_characters_cut_by_tokens_arrive_whole(smollm2: LlamaEngine) -> None:
    llamas = "🦙" * 12
    n_tokens = smollm2.count_tokens("🦙")
    assert n_tokens is not None and n_tokens > 1
    outcome = run(smollm2, raw(llamas, 4 * n_tokens))
    tokens = outcome.all(TokenEvent)
    assert "🦙" in outcome.text
    assert "\ufffd" not in outcome.text
    assert any(token.text == "" for token in tokens)


def test_user_text_comes_back_through_the_tokens(smollm2: LlamaEngine) -> None:
    running = smollm2._resident.running
    assert running is not None
    vocabulary = running.model.vocabulary
    text = "日本語の文章 🦙 naïve Ω — «ok»\n\tend"
    pieces = [vocabulary.piece(token) for token in vocabulary.tokenise(text)]
    assert b"".join(piece or b"" for piece in pieces).decode("utf-8") == text


def test_nothing_to_answer_is_said(smollm2: LlamaEngine) -> None:
    outcome = run(smollm2, raw(""))
    assert isinstance(outcome.end, GenerateFailed)
    assert outcome.end.error.hint


def test_no_model_is_said(engine: LlamaEngine) -> None:
    outcome = run(engine, ask(FRANCE))
    assert isinstance(outcome.end, GenerateFailed)
    assert "No model" in outcome.end.error.message


def test_template_that_refuses_tells_its_reason(smollm2: LlamaEngine) -> None:
    running = smollm2._resident.running
    assert running is not None
    template = running.model.template
    template._compiled = None
    template.text = "{{ raise_exception('turns must alternate') }}"
    outcome = run(smollm2, ask(FRANCE))
    assert isinstance(outcome.end, GenerateFailed)
    assert "turns must alternate" in outcome.end.error.message
