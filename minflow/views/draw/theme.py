"""The colours of still pictures, which do not know the theme of the page that they stand on.

An `<img>` is the same on a white page and on a dark one. So a picture has no page of its own: its lines are of middle
colours, seen on both (contrast >= 3 on #ffffff, #1e1e1e and #111111, the grounds of Jupyter and VS Code), and every
text stands in a box or on a small plate, both light, in an ink that is read there (contrast >= 4.5; WCAG 2.2, 1.4.3
and 1.4.11). Read next: `svg_writer.py`.
"""

from __future__ import annotations

GROUNDS = ("#ffffff", "#1e1e1e", "#111111")  # pages of light and dark themes
# Lines, arrows, rims and marks: what stands on the page itself.
LINE, BLUE, GREEN, RED, AMBER, VIOLET, TEAL = (
    "#7d8590",
    "#3f86d2",
    "#2f9e5b",
    "#dc4a3c",
    "#b07c12",
    "#8f6fd6",
    "#1f9a94",
)
LINES = (LINE, BLUE, GREEN, RED, AMBER, VIOLET, TEAL)
# Fills of boxes and plates, all light.
PLATE, PLAIN, PALE_BLUE, PALE_GREEN, PALE_RED, PALE_AMBER, PALE_VIOLET = (
    "#f3f5f8",
    "#ffffff",
    "#e2efff",
    "#e6f5ea",
    "#fff0ee",
    "#fff8e5",
    "#ece7fa",
)
FILLS = (PLATE, PLAIN, PALE_BLUE, PALE_GREEN, PALE_RED, PALE_AMBER, PALE_VIOLET)
# Text in a box or on a plate.
INK, SOFT, RED_INK, AMBER_INK = "#24292f", "#57606a", "#8f1d14", "#7a5600"
INKS = (INK, SOFT, RED_INK, AMBER_INK)


def ink_on(color: str) -> str:
    """Black or white, whichever is read on that colour: one of them has a contrast of 4.5 on any."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, color))


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", 0 to 1 (WCAG 2.2, relative luminance)."""
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """1 to 21 (WCAG 2.2, contrast ratio)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
