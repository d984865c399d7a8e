"""Figures by matplotlib: drawn values are the measured ones, names are escaped, models are unchanged."""

import builtins
import re
import sys

import numpy as np
import pytest
from minflow_widgets import LossCurve, figures
from minflow_widgets.figures import (
    History,
    activations,
    activations_text,
    confusion_counts,
    confusion_matrix,
    confusion_text,
    filters,
)
from minflow_widgets.figures.activations import outputs_of
from minflow_widgets.figures.drawing import mosaic
from minflow_widgets.figures.history import smooth

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError, MissingDependencyError, ShapeError
from minflow.views.draw import theme
from tests.widgets.plotting import drawn

pytestmark = pytest.mark.usefixtures("agg")

HOSTILE = ["<script>alert(1)</script>", "$x_", "$\\frac{", "_hidden", "a\nb\x1b[31m", "%0A", "\\", "a_b^c$"]


def model():
    flow.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10), nn.Dropout()
    )


# ---- history ---------------------------------------------------------------------------------------------------------


def test_history_of_a_curve_draws_its_values(monkeypatch):
    curve = LossCurve()
    front = type("Front", (), {"update": print, "finish": lambda *_: None})()
    monkeypatch.setattr("minflow_widgets.frontends.choose_frontend", lambda *kinds: front)
    for step in range(10):
        curve.add(step * 2, loss=1 / (step + 1), accuracy=step / 10)
    curve.finish()
    ax = drawn(History(curve).plot())
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_xdata(), np.arange(10) * 2.0) and np.allclose(line.get_ydata(), 1 / np.arange(1, 11))
    twin = next(a for a in ax.figure.axes if a is not ax)
    assert twin.get_ylabel() == "accuracy" and ax.get_ylabel() == "loss" and ax.get_xlabel() == "step"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["loss", "accuracy"]


def test_series_of_one_quantity_share_an_axis():
    from matplotlib.figure import Figure

    given = Figure().subplots()
    history = History(
        {"loss": [3.0, 2.0, 1.0], "val_loss": ([0, 2], [3.5, 1.5]), "lr": [0.1, 0.1, 0.01], "accuracy": [0, 0.5, 1]}
    )
    assert history.plot("loss", "val_loss", ax=given) is given and len(given.figure.axes) == 1
    assert len(given.get_lines()) == 2
    assert len(drawn(history.plot()).figure.axes) == 3
    assert history.plot("loss", log=True).get_yscale() == "log"
    with pytest.raises(DTypeError, match="no series 'acc'"):
        history.plot("acc")


def test_long_series_is_faint_under_its_mean_and_nan_is_marked():
    values = np.linspace(1, 0, 400)
    values[300:] = np.nan
    ax = drawn(History({"loss": values}).plot())
    raw, mean, mark = ax.get_lines()
    assert raw.get_alpha() == 0.4 and mean.get_label() == "loss, mean of 10"
    assert mark.get_label() == "loss is NaN from step 300"
    assert list(mark.get_xdata()) == [300, 300]
    at, means = smooth(np.arange(100.0), np.arange(100.0), 10)
    assert np.allclose(at, means) and len(at) == 91  # step and value are means over the same window


def test_few_values_have_no_mean():
    short, long = (drawn(History({"loss": np.linspace(1, 0, n)}).plot()) for n in (199, 200))
    assert [line.get_label() for line in short.get_lines()] == ["loss"] and short.get_lines()[0].get_alpha() is None
    assert long.get_lines()[1].get_label() == "loss, mean of 5"


def test_manual_history_and_text():
    history = History()
    assert repr(history) == "no values"
    history.add(loss=flow.tensor(2.0))
    history.add(loss=1.0, accuracy=0.5)
    history.add(step=10, loss=float("inf"))
    assert history.text().splitlines() == [
        "loss █▁× inf  min 1 at 1, max 2 at 0, inf from step 10 (1 not finite)",
        "accuracy ▁ 0.5  min 0.5 at 1, max 0.5 at 1",
    ]
    drawn(history.plot())
    drawn(History().plot())
    with pytest.raises(ShapeError, match=r"\[3\] and steps of shape \[2\]"):
        History({"loss": ([0, 1], [1, 2, 3])})
    with pytest.raises(DTypeError, match="a int has no series"):
        History(3)


# ---- confusion matrix ------------------------------------------------------------------------------------------------


def test_counts_match_a_loop():
    rng = np.random.default_rng(0)
    true, guess = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    expected = np.zeros((4, 4), int)
    for i, j in zip(true, guess, strict=True):
        expected[i, j] += 1
    assert np.array_equal(confusion_counts(true, flow.tensor(guess)), expected)
    scores = np.eye(4)[guess]
    assert np.array_equal(confusion_counts(flow.tensor(true), flow.tensor(scores)), expected)
    assert confusion_counts([0, 1], [1, 1], 5).shape == (5, 5)


def test_confusion_matrix_as_figure_and_text():
    ax = drawn(confusion_matrix([0, 0, 1, 2], [0, 1, 1, 2], names=["cat", "dog", "$cow_"]))
    right, wrong = [np.ma.filled(image.get_array(), 0.0) for image in ax.images]
    assert np.allclose(right, np.diag([0.5, 1, 1])) and np.allclose(wrong, [[0, 0.5, 0], [0, 0, 0], [0, 0, 0]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["cat", "dog", "$cow_"]
    assert {t.get_text() for t in ax.texts} == {"1"} and len(ax.texts) == 4 and ax.get_title() == "3 of 4 right (75.0%)"
    assert {t.get_text() for t in confusion_matrix([0, 0, 1], [0, 1, 1], normalize=True).texts} == {"0.50", "1.00"}
    assert confusion_text([0, 0, 1], [0, 1, 1]).splitlines() == [
        "true \\ predicted  0  1",
        "----------------------",
        "0                 1  1",
        "1                 .  1",
        "2 of 3 right",
    ]
    drawn(confusion_matrix(np.arange(100) % 60, np.arange(100) % 60))


def test_one_mistake_in_a_thousand_is_visible():
    ax = drawn(confusion_matrix([0] * 1000 + [1], [0] * 999 + [1, 1]))
    wrong = ax.images[1]
    seen = wrong.cmap(wrong.norm(wrong.get_array()))[0, 1, :3]
    assert np.abs(seen - 1).max() > 0.3, "nearly white"


@pytest.mark.parametrize(("args", "kind", "match"), [
    (([0, 1], [0]), ShapeError, "2 targets and 1 predictions"), (([0, -1], [0, 0]), DTypeError, "got -1"),
    (([0, 2], [0, 0], ["a", "b"]), ShapeError, "2 names for 3 classes"), (([], []), DTypeError, "no targets"),
])  # fmt: skip
def test_invalid_confusion_matrices(args, kind, match):
    with pytest.raises(kind, match=match):
        confusion_matrix(*args)


# ---- filters and activations -----------------------------------------------------------------------------------------


def test_filters_are_in_order():
    sheet = mosaic(np.arange(12.0).reshape(3, 2, 2), 2)
    assert sheet.shape == (5, 5) and np.array_equal(sheet[:2, :2], [[0, 1], [2, 3]])
    assert np.array_equal(sheet[3:, :2], [[8, 9], [10, 11]])
    assert np.isnan(sheet[2]).all() and np.isnan(sheet[3:, 3:]).all()
    layer = nn.Conv2d(8, 16, 3)
    ax = drawn(filters(layer))
    picture = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert np.allclose(picture[4:7, 8:11], layer.weight.detach().numpy()[1, 2])
    assert "16 filters (rows) of 8 channels" in ax.get_title()
    assert drawn(filters(nn.Conv2d(3, 200, 5))).get_title() == (
        "weights: 200 filters of 3 x 5 x 5, the first 64; its three channels as colors"
    )
    assert "10 filters of 1 x 8 x 8" in drawn(filters(nn.Linear(64, 10), shape=(8, 8))).get_title()
    weights = np.ones((4, 1, 3, 3))
    weights[0, 0, 0, 0] = np.nan
    assert "1 elements are NaN" in drawn(filters(weights)).get_title()


@pytest.mark.parametrize(
    "wrong", [lambda: filters(nn.Linear(64, 10)), lambda: filters(nn.Linear(64, 10), shape=(7, 8))]
)
def test_layers_without_filters(wrong):
    with pytest.raises(ShapeError, match=r"\[10, 64\]|\[7, 8\]"):
        wrong()


def test_activations_are_the_models_and_leave_it_unchanged():
    net, x = model(), flow.randn(16, 1, 8, 8)
    net[5].eval()
    before = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    state = flow.get_rng_state()
    ax = drawn(activations(net, x))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "1", "2", "3", "4", "5"]
    assert any("% zeros" in t.get_text() for t in ax.texts)
    assert all(np.array_equal(before[k], v.numpy()) for k, v in net.state_dict().items())
    assert np.array_equal(state, flow.get_rng_state()) and net.training and net[0].training and not net[5].training
    assert not any(m._module_hooks and m._module_hooks.after for m in net.modules() if m._module_hooks)
    net.eval()
    with flow.no_grad():
        assert np.allclose(outputs_of(net, x)["2"][0], net[2](net[1](net[0](x))).numpy())


def test_channels_of_a_layer():
    net, x = model(), flow.randn(16, 1, 8, 8)
    relu = outputs_of(net, x)["2"][0]
    ax = drawn(activations(net, x, "2"))
    assert np.allclose(np.ma.filled(ax.images[0].get_array(), np.nan)[:6, 7:13], relu[0, 1])
    assert "8 channels of 6 x 6" in ax.get_title()
    assert "16 samples (rows) x 10 features" in drawn(activations(net, x, "4")).get_title()
    with pytest.raises(DTypeError, match="no layer 'conv9'"):
        activations(net, x, "conv9")


def test_activations_as_text():
    net, x = model(), flow.randn(16, 1, 8, 8)
    lines = activations_text(net, x).splitlines()
    assert len(lines) == 8 and lines[0].split() == ["layer", "5", "%", "25", "%", "median", "75", "%", "95", "%"]
    assert "% zeros" in lines[4]
    net[4].bias.data[0] = float("nan")
    assert "NaN or inf" in activations_text(net, x)


# ---- all figures -----------------------------------------------------------------------------------------------------


def test_names_are_not_formulas():
    """matplotlib would raise an error for a text that it takes for a formula."""
    for name in HOSTILE:
        ax = drawn(History({name: [1.0, 2.0], name + "_b": [1.0, float("nan")]}).plot())
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(texts) == 3 and "\x1b" not in "".join(texts), name
    drawn(confusion_matrix([0, 1], [0, 1], names=HOSTILE))
    net = nn.Sequential()
    for name in HOSTILE:
        net.add_module(name, nn.Linear(4, 4))
    drawn(activations(net, flow.randn(3, 4)))
    for name in HOSTILE[1:4]:
        drawn(activations(net, flow.randn(3, 4), name))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: History({"a": [1.0]}).plot(),
        lambda: confusion_matrix([0], [0]),
        lambda: filters(np.ones((2, 1, 3, 3))),
        lambda: activations(nn.Sequential(nn.Linear(2, 2)), flow.ones(1, 2)),
    ],
)
def test_without_matplotlib_the_install_command_is_given(draw, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__
    import importlib

    def missing(name, *args, **options):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'")
        return real(name, *args, **options)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingDependencyError, match="(?s)'matplotlib' .extra 'notebook'.*Try: .*notebook"):
        draw()


def test_importing_figures_does_not_import_matplotlib():
    import subprocess

    code = "import sys, minflow_widgets.figures as f; print('matplotlib' in sys.modules, f.History({'loss': [1, 2]}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**__import__("os").environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.startswith("False loss"), done.stderr


def test_titles_name_contents_image_and_call():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.act = nn.Conv2d(1, 4, 3), nn.ReLU()

        def forward(self, x):
            return self.act(self.conv(self.act(x)))

    model, x = Twice(), flow.randn(5, 1, 8, 8)
    ax = drawn(activations(model, x, "act"))
    assert ax.get_title() == "act: 4 channels of 6 x 6, for image 0 of 5; call 2 of 2"
    assert ax.figure.axes[1].get_ylabel() == "activation"
    assert drawn(activations(model, x, "conv")).get_title() == "conv: 4 channels of 6 x 6, for image 0 of 5"
    assert drawn(filters(model.conv)).figure.axes[1].get_ylabel() == "weight"
    ranges_ax = drawn(activations(model, x))
    assert ranges_ax.get_title() == "what each layer gives" and ranges_ax.get_xlabel().startswith("value")
    assert [t.get_text() for t in ranges_ax.get_yticklabels()] == ["act (2 calls)", "conv"]
    assert "act (2 calls)" in activations_text(model, x)


@pytest.mark.parametrize("wrong", [
    lambda: History({"loss": [1 + 2j]}), lambda: History({"loss": ["a"]}), lambda: History({"loss": [10**400]}),
    lambda: History().add(loss=None), lambda: figures.confusion_matrix([0, 1], [0.3, 0.7]),
    lambda: figures.confusion_matrix(["a"], ["b"]),
    lambda: figures.confusion_matrix([0, 1], [0, float("nan")]), lambda: figures.confusion_matrix([0, 10**9], [0, 1]),
    lambda: figures.confusion_matrix([0], [0], names=3), lambda: figures.filters(nn.ReLU()),
    lambda: figures.filters(nn.Conv2d),
    lambda: figures.filters(nn.Conv2d(3, 8, 3), first=0), lambda: figures.filters(np.ones((1, 1, 2, 2)) * 1j),
    lambda: figures.activations(None, flow.ones(1)), lambda: figures.activations(nn.ReLU, flow.ones(1)),
    lambda: figures.activations(nn.ReLU(), flow.ones(1, 1), first="a")])  # fmt: skip
def test_invalid_arguments_are_reported(wrong):
    """Probabilities that never round to class 1, and objects without values: no figure, and a suggestion."""
    with pytest.raises(DTypeError, match="Try:"):
        wrong()


@pytest.mark.filterwarnings("error", "default::DeprecationWarning")
def test_figures_of_unusual_inputs_are_drawn():
    History({"loss": [0.0, -1.0]}).plot(log=True).figure.canvas.draw()
    assert figures.filters(nn.Linear(4, 2), shape=4).images
    assert figures.confusion_matrix([0.0, 1.0], [True, False]).images
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    assert [figures.activations(net, flow.ones(2, 3), layer).images for layer in (0, "0", net[0])]
    alone = figures.activations(nn.Linear(3, 2), flow.ones(2, 3))
    assert [label.get_text() for label in alone.get_yticklabels()] == ["Linear"]


def test_cost_per_step_is_constant_for_a_long_history():
    """The time of 40,000 steps used to grow quadratically; now arrays are created rarely."""
    history, made = History(), set()
    for i in range(5000):
        history.add(loss=i / 2)
        made.add(id(history.data["loss"][0].base))
        if i == 70:
            early = history.data["loss"]
    steps, values = history.data["loss"]
    assert len(made) < 12 and steps.tolist() == list(range(5000)) and values[-1] == 2499.5
    assert early[1].tolist() == [i / 2 for i in range(71)], "returned arrays do not change"
    other = History()
    other.data["loss"] = early
    other.add(loss=-1.0)
    assert other.data["loss"][1][-1] == -1 and history.data["loss"][1][71] == 35.5, (
        "nor are they overwritten by another"
    )
    given = History({"loss": ([1, 2, 3], [3.0, 2.0, 1.0])})
    given.add(7, loss=0.5)
    assert given.data["loss"][0].tolist() == [1, 2, 3, 7] and given.data["loss"][1].tolist() == [3.0, 2.0, 1.0, 0.5]


# ---- backgrounds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [
    lambda: History({"loss": [3.0, 2.0, 1.0], "accuracy": [0.1, 0.5, 0.9], "lr": [0.1, 0.1, 0.01]}).plot(),
    lambda: confusion_matrix([0, 1, 1, 2] * 9, [0, 1, 0, 2] * 9, names=["cat", "dog", "a long name"]),
    lambda: activations(model(), flow.randn(4, 1, 8, 8)), lambda: filters(model()[0]),
])  # fmt: skip
def test_figure_is_transparent_and_its_texts_have_backgrounds(draw):
    figure = draw().figure
    figure.canvas.draw()
    pixels, renderer = np.asarray(figure.canvas.buffer_rgba()), figure.canvas.get_renderer()
    assert (pixels[..., 3] == 0).mean() > 0.1, "the background of the notebook is visible"
    plate = [int(theme.TEXT_PLATE[i : i + 2], 16) for i in (1, 3, 5)]
    for ax in figure.axes:
        for words in (ax.title, ax.xaxis.label, ax.yaxis.label):
            if words.get_text():
                box = words.get_window_extent(renderer)
                y = len(pixels) - round(box.y1) - 1  # the row above it
                row = pixels[y, round(box.x0) : round(box.x1)]
                assert (row[:, 3] == 255).all() and (np.median(row[:, :3], axis=0) == plate).all(), words.get_text()
                assert words.get_color() in theme.TEXT_COLORS
    from matplotlib_inline.backend_inline import _fetch_figure_metadata

    assert _fetch_figure_metadata(figure) is None, "IPython would add a white background"


def test_foreign_axes_keep_their_style():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    before = ax.spines["left"].get_edgecolor(), ax.get_facecolor(), ax.title.get_color()
    History({"loss": [3.0, 2.0], "accuracy": [0.1, 0.5]}).plot(ax=ax)
    assert (ax.spines["left"].get_edgecolor(), ax.get_facecolor(), ax.title.get_color()) == before
    assert ax.figure.patch.get_visible() and not ax.figure.artists


def test_terminal_prints_a_figure_like_matplotlib():
    assert re.fullmatch(r"<Figure size \d+x\d+ with 1 Axes>", repr(confusion_matrix([0], [0]).figure))


@pytest.mark.parametrize("normalize", [False, True])
def test_confusion_matrix_numbers_are_readable(normalize):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 10, 2000)
    guess = np.where(rng.random(2000) < 0.1 * true, true, rng.integers(0, 10, 2000))
    ax = drawn(confusion_matrix(true, guess, normalize=normalize))
    pixels, height = np.asarray(ax.figure.canvas.buffer_rgba()), ax.figure.canvas.get_width_height()[1]
    for text in ax.texts:
        x, y = ax.transData.transform(np.array(text.get_position()) + np.array((-0.4, -0.4)))
        cell = "#" + bytes(pixels[height - round(y), round(x), :3]).hex()
        assert theme.contrast(text.get_color(), cell) >= 4.5, (text.get_text(), cell)


def test_history_describes_itself():
    bundle = History({"loss": [0.9, 0.5, 0.25]}).plot().figure._repr_mimebundle_()
    assert "loss from 0.9 to 0.25 in 3 values" in bundle["text/html"] and "min 0.25 at 2" in bundle["text/plain"]
