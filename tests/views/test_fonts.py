"""Text is measured in the widest font that may display it."""

import pytest

from minflow.views.draw.fonts import EM_WIDTHS, WIDTH_MARGIN, text_width, truncated, wrap_to_width


@pytest.mark.parametrize("file, bold", [("DejaVuSans.ttf", False), ("DejaVuSans-Bold.ttf", True)])
def test_no_letter_is_wider_than_in_the_table(file, bold):
    """matplotlib ships DejaVu Sans."""
    matplotlib, ttf = pytest.importorskip("matplotlib"), pytest.importorskip("fontTools.ttLib")
    font = ttf.TTFont(f"{matplotlib.get_data_path()}/fonts/ttf/{file}")
    glyphs, advances, em = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
    listed = {c: width for c, width in EM_WIDTHS[bold].items() if ord(c) in glyphs}
    assert len(listed) > 250
    assert not {c for c, width in listed.items() if advances[glyphs[ord(c)]][0] / em > width}


@pytest.mark.parametrize("text, ems", [
    ("", 0), ("ab", 0.62 + 0.64), ("名前", 2), ("é", 0.62), ("e\u0301", 0.62), ("한국어", 3), ("\U0001f600", 1.4),
    ("ый", 0.79 + 0.65), ("\u0937", 1.1), ("θ", 0.62),
])  # fmt: skip
def test_widths_in_ems(text, ems):
    assert text_width(text, 10) == pytest.approx(WIDTH_MARGIN * 10 * ems)


def test_bold_and_large_texts_are_wider():
    assert text_width("weight", bold=True) > text_width("weight") and text_width("weight", 22) == pytest.approx(
        2 * text_width("weight", 11)
    )
    assert len(truncated("weight of a layer", 60, bold=True)) < len(truncated("weight of a layer", 60))
    assert text_width(truncated("名前" * 30, 60)) <= 60


@pytest.mark.parametrize("text", ["some words, one averyveryverylongwordwithoutanyspace", "训练在第二十步结束" * 9, ""])
def test_wrapping_loses_no_text(text):
    lines = wrap_to_width(text, 90)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "") and len(lines) >= len(text) / 30
    assert all(text_width(line) <= 90 and line == line.strip() for line in lines)
    assert wrap_to_width("ab", 1) == ["a", "b"] and wrap_to_width("two words", 500) == ["two words"]
