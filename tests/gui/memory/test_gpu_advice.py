"""What the first screen says about a GPU that is there and not used."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.program.doctor_facts import VULKAN_MISSING, VulkanSurvey
from moelauncher.gui.memory.gpu_advice import GpuAdvice
from tests.helpers.doctor_values import CPU, SIGHTINGS, SNAPSHOT

Said = tuple[GpuAdvice, list[str]]


@pytest.fixture
def said(qtbot: QtBot) -> Said:
    advice = GpuAdvice()
    texts: list[str] = []
    advice.advice.connect(texts.append)
    return advice, texts


def test_a_card_that_is_not_used_is_said_once_with_its_remedy(said: Said) -> None:
    advice, texts = said
    snapshot = replace(SNAPSHOT, gpus=())
    advice.on_snapshot(snapshot)
    assert texts == []
    advice.set_sightings(replace(SIGHTINGS, devices=(CPU,), vulkan=VulkanSurvey(VULKAN_MISSING)))
    for _ in range(2):
        advice.on_snapshot(snapshot)
    (text,) = texts
    assert text.startswith("GeForce RTX 4070: The Vulkan loader is missing")
    assert "libvulkan1" in text


def test_a_module_that_was_left_out_is_said(said: Said) -> None:
    advice, texts = said
    note = "The module “vulkan” is not used: its driver is missing."
    build = replace(SIGHTINGS.build, notes=(note,))
    advice.set_sightings(replace(SIGHTINGS, devices=(CPU,), bus=(), build=build))
    advice.on_snapshot(replace(SNAPSHOT, gpus=()))
    assert texts == [note]


def test_a_card_in_use_is_no_news_but_shown(said: Said) -> None:
    advice, texts = said
    seen: list[tuple[object, object]] = []
    advice.seen.connect(lambda snapshot, sightings: seen.append((snapshot, sightings)))
    advice.set_sightings(SIGHTINGS)
    advice.on_snapshot(SNAPSHOT)
    assert texts == []
    assert seen == [(SNAPSHOT, SIGHTINGS)]
