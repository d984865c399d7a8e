"""Static pictures are readable in light and dark themes."""

from itertools import product

import pytest

from minflow.views.draw import theme


@pytest.mark.parametrize("line, ground", list(product(theme.LINE_COLORS, theme.PAGE_BACKGROUNDS)))
def test_lines_are_visible_on_every_page(line, ground):
    assert theme.contrast(line, ground) >= 3


@pytest.mark.parametrize("ink, fill", list(product(theme.TEXT_COLORS, theme.FILL_COLORS)))
def test_inks_are_readable_on_every_fill(ink, fill):
    assert theme.contrast(ink, fill) >= 4.5


def test_contrast_follows_wcag():
    assert theme.contrast("#ffffff", "#000000") == pytest.approx(21)
    assert theme.contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
