"""Column widths and lines of text, in which a Chinese character is as wide as two letters."""

import itertools

import pytest
from hypothesis import given, strategies as st

from minflow.exercises.card import Card, card_text, markdown_to_html, strip_emphasis
from minflow.exercises.i18n.width import NOT_FIRST, NOT_LAST, padded, width, wrapped


@pytest.mark.parametrize("text, columns", [("", 0), ("slope", 5), ("斜率", 4), ("（a）", 5), ("é", 1), ("e\u0301", 1)])
def test_width(text, columns):
    assert width(text) == columns and width(padded(text, 9)) == 9


@pytest.mark.parametrize(
    "text, columns, lines",
    [
        ("From x to x + h", 6, ["From x", "to x +", "h"]),
        ("从这里走到那里。", 8, ["从这里走", "到那里。"]),
        ("从这里走到那里。", 15, ["从这里走到那", "里。"]),
        ("看（这里）吧", 4, ["看", "（这", "里）", "吧"]),
        ("调用 slope(f, x) 三次", 10, ["调用", "slope(f,", "x) 三次"]),
        ("    y = f(x) + 1", 9, ["    y =", "    f(x)", "    + 1"]),
        ("a_word_that_is_long b", 5, ["a_word_that_is_long", "b"]),
        ("", 5, [""]),
    ],
)
def test_lines(text, columns, lines):
    assert wrapped(text, columns) == lines


@given(st.text(st.sampled_from("ab 中文，。（）“”(f), 1")), st.integers(2, 20))
def test_wrapped_lines_are_short_and_complete(text, columns):
    lines = wrapped(text, columns)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line, after in itertools.pairwise(lines):
        assert line[-1] not in NOT_LAST and after.lstrip()[0] not in NOT_FIRST


def test_chinese_card_has_aligned_columns():
    card = Card(
        "wrong",
        "slope",
        "还不对",
        rows=[("用例 3", "f = x**2"), ("你的", "1.0")],
        paragraphs=["斜率是*每*单位的量。" * 9],
    )
    text = card_text(card).splitlines()
    assert [width(line.partition("  f = ")[0].partition("  1.0")[0]) for line in text[1:3]] == [8, 8]
    assert max(map(width, text)) <= 80 and "*" not in "".join(text[3:])


def test_stress_in_chinese():
    assert markdown_to_html("也就是*每*米，2*x 和 3*y") == "也就是<em>每</em>米，2*x 和 3*y"
    assert strip_emphasis("也就是*每*米的**量**，h*h") == "也就是每米的量，h*h"
