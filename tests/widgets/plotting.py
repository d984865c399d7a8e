"""What tests of figures with matplotlib share: `from tests.widgets.plotting import HOSTILE, agg, drawn`, and
`pytestmark = pytest.mark.usefixtures("agg")`."""

import pytest

HOSTILE = "<script>$\\frac{_\x1b[31m"  # a title that HTML, mathematics and a terminal would each read in its way


@pytest.fixture
def agg():
    """Figures are drawn into memory, and gone after the test."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def drawn(ax):
    """The Axes after everything was really drawn."""
    ax.figure.canvas.draw()
    return ax
