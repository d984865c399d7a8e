"""What is left of widgets that have ended: after a day of training the kernel and the page hold no more than after an hour."""

import gc
import weakref

import IPython.display
import pytest

pytest.importorskip("anywidget")
from ipywidgets.widgets import widget as ipywidgets

from minflow_widgets import LossCurve, frontends, watch_timeline


class Handle:
    def update(self, what, raw=False):
        pass


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setenv("MINFLOW_LIVE", "1")
    monkeypatch.setattr(frontends, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda *what, **how: Handle())


def curve():
    with LossCurve() as curve:
        curve.add(loss=1.0)
    return weakref.ref(curve)


def timeline():
    with watch_timeline() as live:
        pass
    return weakref.ref(live)


@pytest.mark.parametrize("made", [curve, timeline])
def test_models_of_widgets_that_have_ended_are_closed(page, made):
    ended = [made() for _ in range(12)]  # more than live on for pages that are loaded again
    before = len(ipywidgets._instances)
    ended += [made() for _ in range(10)]
    assert len(ipywidgets._instances) == before
    gc.collect()
    assert not [ref for ref in ended if ref() is not None]
