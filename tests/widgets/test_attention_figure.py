"""Attention figures: the given weights, masked cells, the largest weight in words."""

import warnings

import numpy as np
import pytest
from minflow_widgets.figures import attention, attention_text, drawing
from minflow_widgets.figures.attention import AttentionTable

import minflow as flow
from minflow.core.base.errors import ShapeError
from tests.widgets.plotting import HOSTILE, drawn

pytestmark = pytest.mark.usefixtures("agg")

SHARES = np.array([[1.0, 0, 0], [0.25, 0.75, 0], [0.1, 0.85, 0.05]])


def causal(n, heads=1):
    scores = np.random.default_rng(0).normal(size=(heads, n, n)) - 1e9 * np.triu(np.ones((n, n)), 1)
    shares = np.exp(scores - scores.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True)


def test_drawn_weights_are_the_given_ones():
    ax = drawn(attention(SHARES, "a+b"))
    (image,) = ax.images
    assert np.array_equal(np.ma.getmaskarray(image.get_array()), np.triu(np.ones((3, 3), bool), 1))
    assert np.allclose(np.ma.filled(image.get_array(), 0), SHARES)
    assert [t.get_text() for t in ax.texts] == ["1.00", ".25", ".75", ".10", ".85", ".05"]
    assert all([t.get_text() for t in axis.get_ticklabels()] == ["a", "+", "b"] for axis in (ax.xaxis, ax.yaxis))
    assert len(ax.collections) == 1 and len(ax.collections[0].get_paths()) == 3 and ax.collections[0].get_hatch()
    assert ax.get_xlabel() == "attended position\nhatched: masked"
    assert ax.get_title() == "b (position 2) attends to + (position 1) with 85%, more than any other"
    from matplotlib.figure import Figure

    given = Figure().subplots()
    assert attention(SHARES, ax=given) is given


def test_text_is_a_table_and_a_sentence():
    assert attention_text(flow.tensor(SHARES), "a b").splitlines() == [
        "   attends to     a   ' '     b",
        "-------------------------------",
        "0  a           1.00     x     x",
        "1  ' '         0.25  0.75     x",
        "2  b           0.10  0.85  0.05",
        "Attention between 3 positions: each may attend to itself and those before it; "
        "b (position 2) attends to ' ' (position 1) with 85%, more than any other.",
    ]
    bundle = attention(SHARES, "a b").figure._repr_mimebundle_()
    assert bundle["text/plain"] == attention_text(SHARES, "a b")
    assert '<img alt="Attention between 3 positions: each may attend to itself' in bundle["text/html"]


def test_text_of_a_large_matrix_names_the_largest_weights():
    weights = causal(40)[0]
    text = attention_text(weights)
    assert text.splitlines()[2] == "0   0    0 (position 0) 1.00"
    best = np.argsort(-weights[39])[:3]
    assert text.splitlines()[41].split("39   ")[1] == ", ".join(
        f"{j} (position {j}) {weights[39, j]:.2f}" for j in best
    )
    assert not drawn(attention(weights)).texts


def test_heads():
    weights = causal(5, heads=3)
    assert np.allclose(AttentionTable(weights, None, None, None).shares, weights.mean(axis=0))
    assert np.allclose(AttentionTable(weights[None], None, 2, None).shares, weights[2])
    assert "mean of 3 heads" in attention_text(weights) and "head 1:" in attention_text(weights, head=1)


def test_unusual_weights_are_reported():
    broken = np.array([[0.5, 0.5], [0.6, 0.6]])
    text = attention_text(broken, mask=[[False, True], [False, False]])
    assert "1 of 2 rows do not sum to 1; 1 masked positions are attended to." in text and "1 of 4 pairs" not in text
    title = drawn(attention(broken, mask=[[False, True], [False, False]])).get_title()
    assert title.endswith("1 of 2 rows do not sum to 1\n1 masked positions are attended to")
    assert "each may attend to all" in attention_text(broken)
    assert "1 of 4 pairs are masked" in attention_text(broken, mask=[[0, 0], [1, 0]])
    assert "2 of 2 rows do not sum to 1" in attention_text(np.full((2, 2), np.nan))
    drawn(attention(np.full((2, 2), np.nan)))
    assert "no position has a choice" in attention_text([[1.0]])
    drawn(attention([[1.0]]))


def test_letters_missing_in_the_default_font(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", DeprecationWarning)
        drawn(attention(SHARES, "床前é"))
        monkeypatch.setattr(drawing, "covering_families", lambda letters, usual: ())
        ax = drawn(attention(SHARES, "床前明"))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "1", "2"] and "床" in ax.figure.said[1]


def test_names_are_escaped():
    bundle = attention(SHARES, [HOSTILE, "_b", "\n"]).figure._repr_mimebundle_()
    assert "\x1b" not in bundle["text/plain"] and "'\\n'" in bundle["text/plain"]
    assert "<script" not in bundle["text/html"] and "<script" not in bundle["image/svg+xml"]


@pytest.mark.parametrize("arguments, said", [
    ((SHARES[:2],), ["weights", "[2, 3]", "head=0"]),
    ((np.zeros((0, 0)),), ["[0, 0]"]),
    ((np.zeros((200, 200)),), ["at most 128", "[200, 200]"]),
    ((SHARES, "ab"), ["symbols", "2 of them", "[3, 3]"]),
    ((SHARES, 3), ["symbols", "int 3"]),
])  # fmt: skip
def test_mistakes(arguments, said):
    with pytest.raises(ShapeError) as error:
        attention(*arguments)
    assert all(word in str(error.value) for word in said), str(error.value)
    for head in (3, -1, True, "0"):
        with pytest.raises(ShapeError, match="head=0 to 2"):
            attention(causal(3, heads=3), head=head)
    with pytest.raises(ShapeError, match="(?s)mask.*\\[2, 2\\]"):
        attention(SHARES, mask=[[0, 1], [0, 0]])
