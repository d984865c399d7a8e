"""Markdown is split into pieces, which join to the original text."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from minflow.exercises.translate import markdown

TOP = Path(__file__).parents[2]
NOTEBOOKS = sorted((TOP / "notebooks").rglob("*.ipynb"))

part = st.sampled_from(
    [
        "\n",
        "\n\n",
        " ",
        "a word",
        "more words here",
        "# Title\n",
        "## `code` and $x^2$\n",
        "- item\n",
        "  1. two words\n",
        "12) x\n",
        "> quoted text\n",
        ">\n",
        "> - deep item\n",
        "| word | meaning |\n",
        "|---|:-:|\n",
        "| a\\|b | |\n",
        "|",
        "```python\n",
        "```\n",
        "~~~\n",
        "$$\n",
        "$$x + y$$\n",
        "$a$",
        "`code|x`",
        "``",
        "<details>\n",
        "<!-- note\n",
        "-->",
        "<summary>An answer</summary>\n",
        "</details>",
        "**bold**",
        "*",
        "---\n",
        "[link](03_tape.ipynb)",
        "张量。",
        "\t",
        "\\",
        "    indented\n",
        "\r\n",
        "\x0b",
        "\u2028",
        "<b>",
        "!",
        "1.5 s",
        "   > odd quote\n",
        "* * *\n",
    ]
)
sources = st.lists(part, max_size=14).map("".join) | st.text(max_size=40)


@given(sources)
def test_pieces_join_to_the_text(source):
    assert markdown.rebuild(source, lambda text: text) == source


@given(sources)
def test_pieces_have_words_and_no_empty_line(source):
    for text in markdown.translatable_texts(source):
        assert markdown.has_words(text) and text == text.rstrip() and "\n\n" not in text


@given(sources)
def test_translated_pieces_keep_their_positions(source):
    built = markdown.rebuild(source, lambda text: "译文")
    assert [piece.raw for piece in markdown.split(built)] == [piece.raw for piece in markdown.split(source)]


@pytest.mark.parametrize(
    "source, pieces",
    [
        ("# 02 - Downhill\n\nWalk to\nthe valley.\n", ["02 - Downhill", "Walk to\nthe valley."]),
        ("1. first `x`\n2. second\n   goes on\n- [ ] `only_code`", ["first `x`", "second\n   goes on"]),
        (
            "| word | meaning |\n|---|---|\n| **loss** | how *wrong* |\n| `x` | $x^2$ |",
            ["word", "meaning", "**loss**", "how *wrong*"],
        ),
        ("Look:\n```python\nprint('a word')\n\nmore = 1\n```\nAnd on.", ["Look:", "And on."]),
        ("$$\n\\text{two words}\n$$\nso it falls", ["so it falls"]),
        ("$$a = b$$\nso", ["so"]),
        ("<details><summary>An answer</summary>\n\nIt is 3.\n</details>", ["An answer", "It is 3."]),
        ("> It says\n> two lines.\n>\n> - and an item", ["It says\ntwo lines.", "and an item"]),
        (
            "Title\n\n---\n\n<!-- note to\n\nmyself -->\n![a valley, seen from above](x.png)",
            ["Title", "![a valley, seen from above](x.png)"],
        ),
        ("`loss.backward()`\n\n$x$ 3.5 y\n\nhttps://example.org/a_page", []),
    ],
)
def test_pieces(source, pieces):
    assert markdown.translatable_texts(source) == pieces


def test_quotations_keep_their_marks():
    assert markdown.rebuild("> It says\n> so.", lambda text: "它\n说。") == "> 它\n> 说。"


@pytest.mark.parametrize(
    "text, code, math",
    [
        ("`a` and ``b`c`` and `d", ["`a`", "``b`c``"], []),
        ("of $x^2$, $$y$$ and \\$5 or 3 $", [], ["$x^2$", "$$y$$"]),
        ("$a$`$b$`", ["`$b$`"], ["$a$"]),
    ],
)
def test_code_and_formulas_are_found(text, code, math):
    assert [found.group() for found in markdown.CODE.finditer(text)] == code
    assert [found.group() for found in markdown.MATH.finditer(markdown.CODE.sub(" ", text))] == math
