"""What the tests of figures with matplotlib share. A test that draws has the fixture `agg`."""

HOSTILE = "<script>$\\frac{_\x1b[31m"  # a title that HTML, mathematics and a terminal would each read in its way


def drawn(ax):
    """The Axes after everything was really drawn."""
    ax.figure.canvas.draw()
    return ax
