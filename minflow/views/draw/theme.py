"""Colors of static pictures, which are readable on light and on dark pages.

An `<img>` looks the same on both. So a picture has no background: its lines have medium colors that are visible on
both (contrast >= 3 on #ffffff, #1e1e1e and #111111, the backgrounds of Jupyter and VS Code), and every text is in a
light box or on a light plate, in a color that is readable there (contrast >= 4.5; WCAG 2.2, 1.4.3 and 1.4.11).
Read next: `svg_writer.py`.
"""

from __future__ import annotations

PAGE_BACKGROUNDS = ("#ffffff", "#1e1e1e", "#111111")  # page backgrounds of light and dark themes
# Lines, arrows, rims and marks: drawn on the page itself.
LINE, BLUE, GREEN, RED, AMBER, VIOLET, TEAL = (
    "#7d8590",
    "#3f86d2",
    "#2f9e5b",
    "#dc4a3c",
    "#b07c12",
    "#8f6fd6",
    "#1f9a94",
)
LINE_COLORS = (LINE, BLUE, GREEN, RED, AMBER, VIOLET, TEAL)
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
TEXT_PLATE = PLAIN  # behind words on the page itself: invisible on a light page
FILL_COLORS = (PLATE, PLAIN, PALE_BLUE, PALE_GREEN, PALE_RED, PALE_AMBER, PALE_VIOLET)
# Boxes of global tensors, (fill, rim) by their sbp. The fills differ for readers with any color blindness, the most
# similar two by 13 (CIE76); their text is TEXT_COLOR.
SBP_COLORS = {
    "B": (PLATE, LINE),
    "S(0)": ("#c8e0ff", BLUE),
    "S(1)": ("#ffe89a", AMBER),
    "S": (PALE_GREEN, GREEN),  # along a later dim
    "P": ("#ffc9c2", RED),
}
# Text in a box or on a plate.
TEXT_COLOR, MUTED, RED_TEXT, AMBER_TEXT = "#24292f", "#57606a", "#8f1d14", "#7a5600"
TEXT_COLORS = (TEXT_COLOR, MUTED, RED_TEXT, AMBER_TEXT)


def text_color_on(color: str) -> str:
    """Black or white, whichever has more contrast on that color: at least 4.5 on any."""
    return max("#000000", "#ffffff", key=lambda text_color: contrast(text_color, color))


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", 0 to 1 (WCAG 2.2, relative luminance)."""
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.2, contrast ratio)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
