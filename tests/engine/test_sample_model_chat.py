"""The sample model is a real Mixture of Experts, and talks sense."""

import pytest

from moelauncher.core.engine_protocol import ChatMessage, GenerateRequest
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.sample_model import build_sample_model
from tests.helpers.engines import GREEDY, load_request, run


@pytest.fixture(scope="module")
def sample(session_cache):
    return build_sample_model(session_cache)


def test_the_slider_has_30_stops_above_zero(sample):
    facts = facts_of([read_header(sample)])
    assert facts.expert_layers == tuple(range(30))
    assert (facts.arch, facts.n_expert, facts.n_expert_used) == ("llama", 8, 8)
    assert facts.name == "SmolLM2 135M MoE sample"
    assert facts.role == "chat"
    assert facts.has_chat_template


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of France?", "Paris"),
        ("What is the capital of Italy?", "Rome"),
        ("Why is the sky blue?", "light"),
    ],
)
def test_it_answers(engine, sample, question, answer):
    report = run(engine, load_request(sample)).report
    assert (report.template_source, report.mismatches) == ("model", ())
    message = ChatMessage("user", question)
    reply = run(engine, GenerateRequest((message,), sampling=GREEDY, max_tokens=40))
    assert answer in reply.text
