"""The first non-finite value of a run: its op, the learning rate, a suggestion. Reported once."""

import numpy as np
import pytest
from minflow_widgets import LossCurve, watch
from minflow_widgets.curve.legend import series_warnings

import minflow as flow
from tests.graph_models import Step
from tests.widgets.watching import X, eager_step, header, legend, model_and_optimizer

pytestmark = pytest.mark.usefixtures("front")

INF, NAN = float("inf"), float("nan")


def test_rate_of_that_step_is_too_large():
    with LossCurve() as curve:
        for step, (loss, lr) in enumerate([(1.0, 0.5), (40.0, 0.4), (INF, 0.3), (NAN, 0.2)], 1):
            curve.add(step, **{"loss": loss, "lr": lr, "gradient norm": loss})
    words = "inf from step 3: lower the learning rate (0.3)"
    assert words in curve.text() and curve.text().count("lower") == 1 and words in curve.line()
    assert curve.svg().count(">lower the learning rate (0.3)<") == 1
    rows = dict(zip(header(curve)["panels"], [[row[0] for row in legend(curve, i)] for i in range(3)]))
    assert rows["loss"][1:] == ["inf from step 3", "lower the learning rate (0.3)"]
    assert rows["norm"][1:] == ["inf from step 3"]


def test_gradient_that_overflows_first_is_reported():
    with LossCurve() as curve:
        curve.add(5, **{"loss": 1.0, "gradient norm": 2.0})
        curve.add(6, **{"loss": 1.0, "gradient norm": INF})
        curve.add(7, **{"loss": INF, "gradient norm": INF})
    assert "gradient norm inf (inf from step 6: lower the learning rate)" in curve.text()
    assert "(inf from step 7)" in curve.text()


def test_objects_in_one_curve_are_reported_separately():
    with LossCurve() as curve:
        for step in (1, 2, 3):
            curve.add(step, **{"fast loss": NAN if step == 3 else 1.0, "fast group 0 lr": 0.5, "fast group 1 lr": 0.1})
            curve.add(step, **{"slow loss": NAN if step == 2 else 1.0, "slow lr": 0.25, "slow accuracy": NAN})
    every = list(curve._series.values())
    said = {s.name: series_warnings(every, s) for s in every if s.first_nonfinite}
    assert said == {
        "fast loss": ["NaN from step 3", "lower the learning rate (0.5)"],
        "slow loss": ["NaN first at step 2", "lower the learning rate (0.25)"],
        "slow accuracy": ["NaN from step 1"],
    }


def test_before_any_update_the_rate_is_not_blamed():
    with LossCurve() as curve:
        curve.add(1, loss=NAN, lr=0.1)
    assert "NaN from step 1: before any update: look at the data" in curve.text() and "lower" not in curve.text()
    with LossCurve() as later:  # a resumed run: there were updates before
        later.add(41, loss=NAN, lr=0.1)
    assert "lower the learning rate (0.1)" in later.text()


@pytest.mark.parametrize("way", ["graph", "eager"])
def test_diverging_run_warns_once_and_is_marked(way):
    """The notice is a warning that names the op; the picture shows step and rate and prints nothing."""
    model, optimizer = model_and_optimizer(lr=1e30)
    train = Step(model, optimizer) if way == "graph" else None
    flow.notices()  # as in a process in which nothing has diverged yet
    with pytest.warns(flow.MinflowWarning) as caught, watch(train) if train else watch(model, optimizer) as curve:
        for _ in range(4):
            with np.errstate(all="ignore"):
                if train:
                    train(flow.from_numpy(X))
                else:
                    eager_step(model, optimizer)
    assert len([w for w in caught if "finite" in str(w.message)]) == 1
    at = int(curve._series["loss"].first_nonfinite[0])
    assert f"step {at}: lower the learning rate (1e+30)" in curve.text() and curve.text().count("lower") == 1
