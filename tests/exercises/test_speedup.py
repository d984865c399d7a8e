"""Words about measured ratios follow from the ratios and their spread."""

import re

import pytest

from minflow.exercises import Speedup, least


@pytest.mark.parametrize(
    "slow, quick, begins",
    [
        ([2.0, 2.1, 1.9, 2.0, 9.0], [1.0] * 5, "a is 2.00 times as fast as b"),  # one hiccup does not decide
        ([1.0] * 5, [2.0, 2.1, 1.9, 2.0, 9.0], "a is slower: b is 2.00 times as fast"),
        ([0.9, 1.1, 0.8, 1.2, 0.9], [1.0] * 5, "no difference beyond the noise between a and b: 0.90"),
        ([1.011, 1.012, 1.013], [1.0] * 3, "no difference beyond the noise between a and b: 1.01"),
        ([3.0], [2.0], "a is 1.50 times as fast as b"),
    ],
)
def test_sentence_follows_from_the_numbers(slow, quick, begins):
    said = Speedup(slow, quick).sentence("a", "b")
    assert said.startswith(begins), said
    assert f"of {len(slow)} rounds" in said


def test_range_of_a_slower_one_is_that_of_its_factor():
    said = Speedup([1.0] * 3, [2.0, 2.2, 2.4]).sentence("a", "b")
    assert "2.20 times as fast (2.10 to 2.30 " in said


def test_words_in_chinese(monkeypatch):
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    faster, alike = Speedup([3.0, 3.2, 3.1], [2.0] * 3), Speedup([1.0] * 3, [1.0] * 3)
    for said in (
        str(faster),
        faster.sentence("甲", "乙"),
        alike.sentence("甲", "乙"),
        least({"甲": alike, "乙": alike}),
    ):
        assert not re.search("[a-z]", said), said


def test_rounds_without_a_partner_are_left_out():
    assert Speedup([2.0, 2.0, 50.0], [1.0, 1.0]).median == 2.0


def test_least_names_all_that_the_noise_cannot_tell_apart():
    a, b, c = [Speedup(times, [1.0] * 3) for times in ([1.5, 1.6, 1.7], [1.0, 1.1, 1.2], [1.1, 1.2, 1.3])]
    assert least({"a": a, "b": b}) == "b"
    assert least({"a": a, "b": b, "c": c}) == "b or c (no difference beyond the noise)"
