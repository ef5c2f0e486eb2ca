"""What the doctor writes down, and what he keeps to himself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.program.doctor_facts import (
    VULKAN_ANSWERS,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
    VulkanSurvey,
)
from moelauncher.core.program.doctor_report import (
    fact_rows,
    hide_home,
    report_document,
    report_text,
)
from moelauncher.core.program.machine_check import check_machine
from tests.helpers.doctor_values import CPU, FACTS, facts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/anna/models/a.gguf", "~/models/a.gguf"),
        ("/home/anna", "~"),
        ("in /home/anna, and /home/anna.", "in ~, and ~."),
        ("/home/annabel/x", "/home/annabel/x"),
        ("/srv/home/anna2", "/srv/home/anna2"),
        ("“/home/anna”: gone", "“~”: gone"),
    ],
)
def test_the_home_folder_is_a_tilde_wherever_it_stands(text: str, shown: str) -> None:
    assert hide_home(text, Path("/home/anna")) == shown


def test_windows_home_in_either_spelling() -> None:
    class Home:
        def __str__(self) -> str:
            return "C:\\Users\\Änna"

    home = Home()
    assert hide_home("c:\\users\\änna\\models", home) == "~\\models"  # type: ignore[arg-type]
    assert hide_home("C:/Users/Änna/models", home) == "~/models"  # type: ignore[arg-type]


def test_nothing_personal_in_a_root_without_home() -> None:
    assert hide_home("/models/a.gguf", Path("/")) == "/models/a.gguf"


def test_report_has_every_fact_and_verdict_and_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", staticmethod(lambda: Path("/home/anna")))
    mine = facts(
        library_folder="/home/anna/.venv/lib",
        folders={"data": "/home/anna/.local/share/moelauncher"},
        notes=("The module in /home/anna/x is not used.",),
    )
    verdicts = check_machine(mine)
    text = report_text(mine, verdicts)
    document = json.dumps(report_document(mine, verdicts))
    assert "anna" not in text and "anna" not in document
    for label, value in fact_rows(mine):
        assert label in text and value in text
    assert all(verdict.subject in text for verdict in verdicts)
    assert "RTX 4070" in text and "570.86" in text and "Vulkan 1.4.303" in text


@pytest.mark.parametrize(
    ("state", "problem", "row"),
    [
        (VULKAN_MISSING, "libvulkan.so.1: not found", "its loader is missing: libvulkan.so.1: not"),
        (VULKAN_REFUSES, "it finds no driver", "it does not start: it finds no driver"),
        (VULKAN_CRASHES, "it crashed (SIGABRT).", "its driver ends the program that asks: it cra"),
        (VULKAN_ANSWERS, "", "it lists no GPU"),
    ],
)
def test_vulkan_without_gpus_is_said_in_words(state: str, problem: str, row: str) -> None:
    rows = dict(fact_rows(facts(vulkan=VulkanSurvey(state, problem=problem))))
    assert rows["Vulkan"].startswith(row)


def test_processor_is_shown_without_llama_cpps_notation() -> None:
    features = "CPU : SSE3 = 1 | AVX512 = 0 | AVX2 = 1 | REPACK = 1 | "
    rows = dict(fact_rows(facts(features=features, devices=(CPU,))))
    assert rows["features"] == "SSE3, AVX2, REPACK"
    assert "free" not in rows["llama.cpp's device"]


def test_document_says_all_of_it_in_values() -> None:
    document = report_document(FACTS, check_machine(FACTS))
    assert document["verdict"] == "good"
    assert document["ram_bytes_per_s"] == 61e9
    assert document["bus_gpus"][0]["driver"] == "nvidia"  # type: ignore[index]
    assert document["vulkan"]["gpus"][0]["api_version"] == "1.4.303"  # type: ignore[index]
    assert json.loads(json.dumps(document))["devices"][0]["name"] == "Vulkan0"
