"""Helpers for tests of matplotlib figures. A test that draws uses the fixture `agg`."""

HOSTILE = "<script>$\\frac{_\x1b[31m"  # a title that HTML, mathematics and a terminal would each interpret


def drawn(ax):
    """Render the figure and return its Axes."""
    ax.figure.canvas.draw()
    return ax
