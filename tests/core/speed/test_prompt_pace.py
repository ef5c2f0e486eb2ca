"""How far a prompt is read, and how long it may still take."""

from __future__ import annotations

from moelauncher.core.speed.prompt_pace import PromptPace, PromptReading


def test_nothing_is_said_where_no_prompt_is_read() -> None:
    pace = PromptPace()
    assert pace.reading(10.0) is None
    pace.told(0, 1000, 0.0, 10.0)
    pace.stop()
    assert pace.reading(11.0) is None


def test_the_time_left_runs_on_between_two_pieces() -> None:
    pace = PromptPace()
    pace.told(250, 1000, 5.0, 100.0)
    assert pace.reading(100.0) == PromptReading(250, 1000, 50.0, 15.0, 5.0)
    assert pace.reading(104.0) == PromptReading(250, 1000, 50.0, 11.0, 9.0)
    assert pace.reading(200.0) == PromptReading(250, 1000, 50.0, 0.0, 105.0)
    pace.told(500, 1000, 12.5, 107.5)
    assert pace.reading(107.5) == PromptReading(500, 1000, 40.0, 12.5, 12.5)


def test_within_the_first_piece_only_the_last_prompt_can_tell() -> None:
    pace = PromptPace()
    pace.told(0, 1000, 0.0, 0.0)
    assert pace.reading(3.0) == PromptReading(0, 1000, None, None, 3.0)
    pace.learn(1000, 100.0)
    pace.told(0, 2000, 0.0, 50.0)
    assert pace.reading(53.0) == PromptReading(0, 2000, None, 17.0, 3.0)
    pace.told(400, 2000, 2.0, 54.0)
    found = pace.reading(54.0)
    assert found is not None and found.tok_s == 200.0 and found.left_s == 8.0


def test_a_short_prompt_or_another_placement_tells_nothing() -> None:
    pace = PromptPace()
    pace.learn(63, 10.0)
    pace.learn(500, None)
    pace.told(0, 1000, 0.0, 0.0)
    assert pace.reading(1.0) == PromptReading(0, 1000, None, None, 1.0)
    pace.learn(64, 10.0)
    pace.forget()
    assert pace.reading(1.0) == PromptReading(0, 1000, None, None, 1.0)


def test_the_share_is_of_what_is_to_be_read() -> None:
    assert PromptReading(1, 4).share == 0.25
    assert PromptReading(0, 0).share is None
