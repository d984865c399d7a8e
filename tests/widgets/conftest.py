"""Fixtures of widget tests: a recording front end, a notebook, and matplotlib without a window."""

import IPython.display
import pytest
from minflow_widgets import frontends

import minflow as flow
from tests.clocks import until
from tests.widgets.watching import no_update_thread


class Front:
    """A front end that displays nothing: the sizes of updates, the final bundles, the number of displays."""

    def __init__(self):
        self.sent, self.left, self.places = [], [], 0

    def choose(self, *kinds):
        self.show(self)
        return self

    def show(self, shown):
        self.places += 1

    def update(self, shown):
        self.sent.append(shown.encode())

    def finish(self, shown):
        self.left.append(shown._repr_mimebundle_())


@pytest.fixture
def front(monkeypatch):
    """The front end of all widgets; afterwards nothing is watched."""
    front = Front()
    monkeypatch.setattr(frontends, "choose_frontend", front.choose)
    flow.clear_default_session()
    yield front
    flow.clear_default_session()
    until(no_update_thread)


class Notebook:
    """Outputs of a notebook: as first displayed, as they are now, all updates, and the running cell."""

    def __init__(self):
        self.shown, self.now, self.updates, self.cell = [], [], [], ("cell", "1")

    def display(self, what, raw=False, display_id=None):
        self.shown.append(what)
        self.now.append(what)
        return Handle(self, len(self.now) - 1) if display_id else None


class Handle:
    def __init__(self, notebook, index):
        self.notebook, self.index = notebook, index

    def update(self, what, raw=False):
        self.notebook.now[self.index] = what
        self.notebook.updates.append(what)


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setenv("MINFLOW_LIVE", "1")
    notebook = Notebook()
    monkeypatch.setattr("minflow.diagnosis.notebook.in_notebook", lambda: True)
    monkeypatch.setattr("minflow.diagnosis.notebook.running_cell", lambda: notebook.cell)
    monkeypatch.setattr(IPython.display, "display", notebook.display)
    return notebook


@pytest.fixture
def agg():
    """Draw figures into memory, and close them after the test."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")
