"""Slips that the source of a failing answer shows come before hints about ideas."""

import pytest

import minflow as flow
from minflow import nn
from minflow.exercises.answer_source import find_source
from minflow.exercises.card import card_text, make_card
from minflow.exercises.judge import judge
from minflow.exercises.slips import certain_slip
from tests.cases import Cases
from tests.exercises.answers import exercise_of, typed

HEAD = "def scaled(x, factor):\n    "


def scaled(x, factor):
    return x.exp() * factor**2


def shown(body, solution=scaled, inputs=((1.0, 2.0), (2.0, 3.0), (0.5, 4.0))):
    pairs = [(flow.tensor([x, x + 1]), factor) for x, factor in inputs]
    verdict = judge(exercise_of(solution, pairs), typed(HEAD + body.replace("\n", "\n    "), "scaled", flow=flow))
    assert not verdict.ok
    return " ".join(card_text(make_card(verdict)).split())


def test_slips():
    with Cases() as case:
        for body, text in {
            "x = x.exp() * factor\nx.exp_\nreturn x": "Line 3: `x.exp_` is not called: its parentheses are missing.",
            "y = x\ny == x.exp()\nreturn y * factor": "Line 3: `y == x.exp()` compares and changes nothing",
            "y = x.exp()\ny * factor**2": "Line 3: `y * factor ** 2` is computed, but not returned.",
            "x.shape\nreturn x * factor": "Line 2: the result of `x.shape` is not used.",
            "return x.exp() * factor ^ 2": "Line 2: `^` combines bits. A power is `**`.",
            "return x.exp * factor**2": "Are the parentheses of `.exp` missing?",
            "return x.exp() * x.shape()": "`x.shape` is a value, not a method: no parentheses.",
            "return exp(x) * factor": "`exp` is called as `flow.exp`.",
            "return random.random() * x": "Write `import random` in your cell.",
            "return x if true else factor": "In Python it is `True`.",
            "return x.tolist().sort()": "Line 2: `x.tolist().sort` changes its object and returns None.",
            "if factor == 2:\n    return x.exp() * factor**2": "does each way through your code end with a return?",
            "return x.exp()": "Your code never uses `factor`.",
            "return -x.exp() * factor**2": "Only the sign is wrong.",
            "x *= 1.5\nreturn (x / 1.5).exp() * factor**2": "Your code changes its argument `x`: compute with a copy.",
        }.items():
            with case(body):
                assert text in shown(body)
        with case("a number that only one case has"):
            text = shown("return x.exp() * factor * 3", inputs=((1.0, 3.0), (2.0, 2.0), (0.5, 4.0)))
            assert "Line 2 has the number 3: does it fit this case as well?" in text


def test_no_slip():
    """Statements with an effect, and patterns that only one case has, are not named."""
    with Cases() as case:
        for body in (
            '"""Doc."""\nx.exp()\nreturn x * factor',
            "...\nreturn x * factor * 1",
            "return x.exp() * factor**2 * (1.5 if factor > 2 else -1)",
        ):
            with case(body):
                text = shown(body)
                assert "Line" not in text and "sign" not in text and "times the right" not in text


def test_slip_in_a_class():
    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

    mine = typed("class Twice(nn.Module):\n    def forward(self, x):\n        2 * x\n", "Twice", nn=nn)
    assert certain_slip(find_source(mine), find_source(Twice)) == "Line 3: `2 * x` is computed, but not returned."


@pytest.mark.parametrize("body", ["return x ^ factor", "x ^= factor\nreturn x"])
def test_bits_of_the_solution_are_no_slip(body):
    def mixed(x, factor):
        return x ^ factor

    one = exercise_of(mixed, [(1, 2), (5, 4)])
    answer = typed(f"def mixed(x, factor):\n    {body.replace(chr(10), chr(10) + '    ')} + 1", "mixed")
    assert "combines bits" not in card_text(make_card(judge(one, answer)))
