"""The failure found from an error's traceback: the failing node, its inputs, what would have fit, and the graph so
far.
"""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.core.base.errors import ShapeError
from minflow.diagnosis.card import card_bundle, card_text, graph_lines, shows_graph
from minflow.diagnosis.card_record import card_of


class CNN(nn.Module):
    def __init__(self, features=512):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(features, 10)

    def forward(self, x):
        x = self.pool(self.conv1(x).relu())
        x = self.pool(self.conv2(x).relu())
        return self.fc(x.flatten(1))


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


class Typo(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        h = self.fc(x)
        return h.no_such_thing()


IMAGES = flow.ones(4, 1, 28, 28)


def card(work, kind=Exception):
    with pytest.raises(kind) as caught:
        work()
    found = card_of(caught.value)
    assert found is not None
    bundle = card_bundle(found)
    assert found.title.split(" ")[0] in bundle["text/plain"] and ("<img alt=" in bundle["text/html"]) == shows_graph(
        found
    )
    return found


def failing(found):
    nodes = [n for n in found.graph.nodes if n.mark == "failed"]
    assert len(nodes) == 1
    return nodes[0], [n for n in found.graph.nodes if n is not nodes[0]]


def test_eager_model_shows_its_tape_up_to_the_layer():
    found = card(lambda: CNN()(IMAGES))
    assert found.title == "ShapeError in CNN.fc" and found.hint == "nn.Linear(392, 10)"
    assert found.got == (("input", "float32[4, 392]"),) and found.expected == "input  float32[4, 512]"
    node, others = failing(found)
    assert node.label == "linear" and node.scope == "CNN.fc"
    assert "got input float32[4, 392]" in node.notes and "expected input float32[4, 512]" in node.notes
    assert [n.label for n in others if n.kind == "op"].count("conv2d") == 2
    assert {n.label for n in others if n.kind == "leaf"} >= {"conv1.weight", "fc.weight"}
    assert "CNN.pool (2)" in {n.scope for n in others}


def test_lines_of_call_and_construction_are_shown():
    for work in (lambda: CNN()(IMAGES), lambda: copy.deepcopy(CNN())(IMAGES), lambda: Predict(CNN())(IMAGES)):
        found = card(work)
        assert found.code == "return self.fc(x.flatten(1))"
        assert found.created_at[1:] == ("self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(features, 10)",)
        assert "test_failure.py:" in found.where and found.created_at[0].startswith("test_failure.py:")
        assert found.created_at[0] not in found.where
        text = card_bundle(found)["text/plain"].splitlines()
        at = next(i for i, line in enumerate(text) if line.split()[:1] == ["created"])
        assert text[at].split()[1] == found.created_at[0] and text[at + 1].strip() == found.created_at[1]
        assert text[at - 1].strip() == found.code


def test_unpickled_model_has_no_line_of_construction():
    found = card(lambda: pickle.loads(pickle.dumps(CNN()))(IMAGES))
    assert found.created_at == () and "created" not in card_bundle(found)["text/plain"] and found.code


def test_without_a_tape_inputs_are_shown():
    with flow.no_grad():
        found = card(lambda: CNN()(IMAGES))
    node, others = failing(found)
    assert found.graph.title == "the inputs of the failed operation"
    assert {x.name for x in node.inputs} == {"", "weight"} and {n.label for n in others} == {"input", "fc.weight"}


def test_inputs_of_a_failing_op_are_named_once():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.ones(9, 3))

        def forward(self, x):
            return (x * self.w.sum()) @ self.w

    x = flow.ones(4, 8)
    assert "├─ input a float32[4, 8]\n└─ input b float32[4, 8]" in graph_lines(card(lambda: x @ x).graph)
    node, _ = failing(card(lambda: Mixed()(x)))
    assert [i.name for i in node.inputs] == ["a", ""], "mul is the input a; the box of the other one is M.w itself"
    node, others = failing(card(lambda: Predict(Mixed())(x)))
    assert [i.name for i in node.inputs] == ["a", ""] and "model.w" in {n.label for n in others}


class Bare(ShapeError):
    def __init__(self):
        pass


class Raises(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


def test_error_subclass_without_base_init():
    found = card(lambda: Raises(Bare())(IMAGES), Bare)
    assert found.title == "Bare in Raises" and found.values == () and "raise self.error" in found.code


def test_custom_function_failing_in_backward_is_drawn_with_its_tape():
    class Wrong(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("no gradient today")

    found = card(lambda: Wrong.apply(nn.Linear(4, 4)(flow.ones(2, 4))).sum().backward())
    node, others = failing(found)
    assert node.label.startswith("gradient of ")
    assert [n.label for n in others if n.kind == "op"][:2] == ["matmul", "add"]
    assert found.code == 'raise RuntimeError("no gradient today")' and found.what == "no gradient today"


def test_graph_shows_the_recorded_part(capsys):
    found = card(lambda: Predict(CNN())(IMAGES))
    assert found.title == "ShapeError in model.fc" and found.expected == "input  float32[4, 512]"
    node, others = failing(found)
    assert "11 operations recorded before" in found.graph.title
    assert [n.label for n in others if n.kind == "input"] == ["x"] and "model.conv1.weight" in {n.label for n in others}
    assert others[[n.id for n in others].index(node.inputs[0].ref)].label == "reshape"
    assert "was built up to here" in capsys.readouterr().out, "the printed text is unchanged"


def test_builtin_error_marks_the_module():
    for work, title in (
        (lambda: Typo()(flow.ones(2, 4)), "AttributeError in Typo"),
        (lambda: Predict(Typo())(flow.ones(2, 4)), "AttributeError in model"),
    ):
        found = card(work, AttributeError)
        node, others = failing(found)
        assert found.title == title and node.label == "Typo.forward" and "no_such_thing" in found.what
        assert found.code == "return h.no_such_thing()" and "test_failure.py:" in found.where and found.created_at == ()
        assert others[[n.id for n in others].index(node.inputs[-1].ref)].label == "add", "the last visible result"


def test_step_failing_at_run_time_is_shown_up_to_its_op():
    found = card(lambda: Train(CNN(392))(IMAGES, flow.tensor([1, 2, 30, 0])))
    node, others = failing(found)
    assert found.title == "OutOfRangeError in loss_fn" and node.label == "checked_labels"
    assert "of the step up to the one that failed" in found.graph.title
    assert not any(n.phase == "backward" for n in others)


def test_backward_shows_the_op_whose_gradient_failed():
    a = flow.ones(3, requires_grad=True)

    def work():
        c = (a * 2).exp()
        c += 1
        c.sum().backward()

    node, others = failing(card(work))
    assert node.label == "gradient of exp" and [n.label for n in others] == ["leaf", "mul", "exp"]


@pytest.fixture
def session():
    flow.clear_default_session()
    yield
    flow.clear_default_session()


def test_job_shows_the_recorded_part_of_its_build(session):
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((8, 4))) -> tp.Numpy:
        h = flow.nn.relu(flow.layers.dense(x, 6, name="hidden"))
        return flow.matmul(h, flow.get_variable("w", (5, 3), initializer=flow.zeros_initializer()))

    found = card(lambda: job(np.zeros((8, 4), "float32")))
    node, others = failing(found)
    assert node.label == "matmul" and found.got == (("a", "float32[8, 6]"),) and found.expected == "a  float32[8, 5]"
    assert {"hidden-weight", "hidden-bias", "w", "x"} <= {n.label for n in others}


def test_job_error_card_shows_its_cause(session):
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 3)), y: tp.Numpy.Placeholder((4,), dtype=flow.int32)) -> tp.Numpy:
        return flow.nn.sparse_softmax_cross_entropy_with_logits(y, flow.layers.dense(x, 3, name="out"))

    found = card(lambda: job(np.ones((4, 3), "float32"), np.array([0, 1, 2, 9], "int32")))
    assert found.title.startswith("OutOfRangeError") and found.raised_as == "JobError: the work of step 1 of job"
    assert failing(found)[0].label == "checked_labels"


@pytest.mark.parametrize(("work", "expected"), [
    (lambda: flow.ones(3, 4) @ nn.Parameter(flow.ones(5, 6)), ""),  # the parameter has no name: both may be wrong
    (lambda: flow.ones(50, 1, 8, 8)[0, 0, 0, 9], ""),
    (lambda: nn.BatchNorm1d(64)(flow.ones(1, 64)), ""),
    (lambda: nn.Linear(64, 10)(flow.ones(50, 1, 8, 8)), "input  float32[50, 64]"),
    (lambda: nn.MSELoss()(flow.ones(50, 10), flow.zeros(50, dtype=flow.int64)), ""),
    (lambda: flow.ones(3, 4) @ flow.ones(5, 6), ""),
    (lambda: nn.BatchNorm1d(2)(flow.ones(2, 4)), ""),  # [1, 2, 4] and [2, 2] would fit
    (lambda: nn.Conv2d(3, 4, 3)(flow.ones(2, 8, 8, 3)), "input  float32[2, 3, 8, 8]"),
    (lambda: nn.Conv2d(3, 4, 3)(flow.ones(2, 5, 8, 8)), "input  float32[2, 3, 8, 8]"),
    (lambda: nn.BatchNorm1d(5)(flow.ones(2, 4)), "input  float32[2, 5]"),
    (lambda: nn.LayerNorm(6)(flow.ones(2, 4)), "input  float32[2, 6]"),
    (lambda: nn.Embedding(9, 4)(flow.ones(2, 4)), "input  int64[2, 4]"),
    (lambda: nn.Linear(3, 4)(flow.ones(2, 3, dtype=flow.int64)), "input  float32[2, 3]"),
])  # fmt: skip
def test_expected_shapes_are_found_and_fit(work, expected):
    assert card(work).expected == expected


@pytest.mark.parametrize(("channels", "shape", "expected", "hint"), [
    (1, (50, 64), "[50, 1, 8, 8]", "x.reshape(50, 1, 8, 8): the images are flattened"),
    (3, (50, 192), "[50, 3, 8, 8]", "x.reshape(50, 3, 8, 8): the images are flattened"),
    (1, (64,), "[1, 1, 8, 8]", "x.reshape(1, 1, 8, 8)"),
    (1, (8, 6), "", "x.reshape(1, 1, 8, 6) if x is one image of 8x6; x.reshape(8, 1, H, W) if each row is one"),
    (1, (16, 16), "", "x.reshape(1, 1, 16, 16) if x is one image of 16x16; x.reshape(16, 1, 4, 4) if"),
    (3, (50, 63), "", "x.reshape(50, 3, H, W): the images are flattened"),
    (1, (50, 8, 8), "[50, 1, 8, 8]", "x.unsqueeze(1): (N, H, W) lacks the axis of channels"),
    (1, (50, 1, 64), "", "x.reshape(50, 1, 8, 8)"),
    (1, (9, 8, 1), "[1, 9, 8]", "x.permute(2, 0, 1)"),
    (3, (2, 9, 8, 3), "[2, 3, 9, 8]", "x.permute(0, 3, 1, 2)"),
    (1, (2, 5, 1, 8, 8), "[10, 1, 8, 8]", "x.flatten(0, -4)"),
    (1, (), "", "x.reshape(N, C, H, W)"),
])  # fmt: skip
def test_wrong_image_rank_expects_the_shape_in_the_hint(channels, shape, expected, hint):
    layer = nn.Conv2d(channels, 8, 3, padding=1)
    found = card(lambda: layer(flow.ones(*shape)))
    assert found.hint.startswith(hint) and found.expected == (f"input  float32{expected}" if expected else "")
    assert found.got == (("input", f"float32{list(shape)}"),)
    if expected:  # the first suggestion of the hint returns just that, and the layer accepts it
        made = eval(hint.partition(": ")[0].partition(" if ")[0], {"x": flow.ones(*shape)})
        assert str(list(made.shape)) == expected and layer(made).shape[-3] == 8


@pytest.mark.parametrize(("layer", "value", "shown", "what"), [
    (nn.Conv2d(1, 8, 3), np.zeros((5, 1, 8, 8), "f4"), "ndarray float32[5, 1, 8, 8]",
     "must be a tensor, got ndarray of float32"),
    (nn.Linear(4, 2), np.zeros((3, 4)), "ndarray float64[3, 4]", "must be a tensor, got ndarray of float64"),
    (nn.Linear(4, 2), [[1.0], [2.0]], "[[1.0], [2.0]]", "must be a tensor, got list"),
])  # fmt: skip
def test_non_tensor_argument_is_shown_as_got(layer, value, shown, what):
    found = card(lambda: layer(value))
    assert found.got == (("input", shown),) and found.values == (("input", shown),) and what in found.what
    text = card_text(found)
    assert f"got       input  {shown}" in text and "  with " not in text and "bias" not in text


TEN = [i % 10 for i in range(50)]


@pytest.mark.parametrize(("labels", "first", "hint"), [
    ([n + 5 for n in TEN], "5 to 14, * the first outside is 10 (at position 5 of the labels)",
     "target - 5: classes count from 0; or a last layer with 15 outputs, if there are that many classes"),
    ([2 * n for n in TEN], "0 to 18, * the first outside is 10 (at position 5 of the labels)",
     "a last layer with 19 outputs, if there are that many classes"),
    ([2 * n + 1 for n in TEN], "1 to 19, * the first outside is 11 (at position 5 of the labels)",
     "a last layer with 20 outputs, if there are that many classes"),
    ([n - 1 for n in TEN], "-1 to 8, * the first outside is -1 (at position 0 of the labels)",
     "target + 1: classes count from 0; or ignore_index=-1, if that number means no label"),
    ([*TEN[:49], -50], "-50 to 9, * the first outside is -50 (at position 49 of the labels)",
     "ignore_index=-50, if that number means no label"),
])  # fmt: skip
def test_out_of_range_labels_are_reported_with_the_first(labels, first, hint, capsys):
    class Loss(nn.Graph):
        def build(self, x, y):
            return nn.functional.cross_entropy(x * 2, y)

    x, y, loss = flow.ones(50, 10), flow.tensor(labels, dtype=flow.int32), nn.CrossEntropyLoss()
    head, _, tail = first.partition("*")
    for work, name in ((lambda: loss(x, y), "target"), (lambda: Loss()(x, y), "target, the input y")):
        found = card(work)
        assert found.what == f"cross_entropy: labels go from {head}and the input has 10 classes: 0 to 9;{tail}"
        assert found.hint == hint
        assert found.got == ((name, "int32[50]"),) and found.expected == "target  from 0 to 9"
    assert (
        failing(card(lambda: loss(x, y)))[1]
        and card(lambda: loss(x, y)).graph.title == "the inputs of the failed operation"
    )


def test_first_out_of_range_label_in_an_image_or_scalar():
    found = card(lambda: nn.functional.cross_entropy(flow.ones(1, 3, 2, 2), flow.tensor([[[0, 1], [2, 3]]])))
    assert found.what.endswith("the first outside is 3 (at position (0, 1, 1) of the labels)")
    found = card(lambda: nn.functional.cross_entropy(flow.ones(3), flow.tensor(7)))
    assert found.what.endswith("the first outside is 7")


def test_computing_expected_shapes_has_no_side_effects():
    norm = nn.BatchNorm1d(5)
    before = {name: t.numpy().copy() for name, t in norm.state_dict().items()}
    state = np.array(flow.get_rng_state())
    assert card(lambda: norm(flow.ones(2, 4))).expected
    assert all((norm.state_dict()[name].numpy() == value).all() for name, value in before.items())
    assert (np.array(flow.get_rng_state()) == state).all() and norm(flow.randn(4, 5)).shape == (4, 5)


def test_foreign_errors_have_no_card():
    for work in (lambda: 1 / 0, lambda: [][1], lambda: int("x")):
        with pytest.raises(Exception) as caught:
            work()
        assert card_of(caught.value) is None


def test_error_with_failing_str_has_a_card():
    class Odd(Exception):
        def __str__(self):
            raise ValueError("odd")

    class Bad(nn.Module):
        def forward(self, x):
            raise Odd

    with pytest.raises(Odd) as caught:
        Bad()(flow.ones(2))
    assert "cannot be formatted: ValueError" in card_text(card_of(caught.value))


def test_circular_causes_terminate():
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert card_of(error) is None


def test_no_size_is_expected_if_any_large_enough_fits():
    found = card(lambda: flow.ones(2, 3)[5])
    assert found.expected == "" and found.got == (("x", "float32[2, 3]"),) and found.hint == "an index from -2 to 1"


def test_notes_are_on_the_card_and_locations_appear_once(monkeypatch):
    monkeypatch.setattr("minflow.introspection.graph.listing.build_failure.shows_cards", lambda: True)
    found = card(lambda: Predict(CNN())(IMAGES))
    listing, note = found.notes
    assert note.startswith("while building Predict_") and "test_failure.py" not in note
    assert "was built up to here:\n" in listing and ">>> " in listing
    assert "built up to here</summary>" in card_bundle(found)["text/html"]
    assert "\n  created" not in card_text(card(lambda: nn.Linear(3, 4)(flow.ones(2, 5)))), "the line of the call"


def test_script_prints_only_its_traceback():
    program = "import minflow as flow, sys\nassert 'IPython' not in sys.modules\nflow.ones(2, 3) @ flow.ones(4, 5)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("ShapeError: matmul") == 1
    assert "expected" not in done.stderr and "Try: " in done.stderr


def test_one_tensor_has_one_name():
    """The names in the error (x) and in its function (self, input) agree."""
    x = flow.ones(32, 28, 28)
    for work in (lambda: x.view(32, 700), lambda: flow.reshape(x, (32, 700)), lambda: x.permute(0, 1)):
        found = card(work, ShapeError)
        assert found.got == (("x", "float32[32, 28, 28]"),) == found.values and found.expected == ""
    text = card_text(found)
    assert text.count("float32[32, 28, 28]") == 1 and "permute: (0, 1) does not name each of the 3 axes" in text


def test_flattening_everything_is_not_expected():
    """If the product of two axes fits, they may be one image, or a batch that is too narrow: neither is expected."""
    found = card(lambda: nn.Linear(784, 10)(flow.ones(28, 28)), ShapeError)
    hint = "nn.Linear(28, 10), or x.flatten(0), if all of it is one example: 28 * 28 = 784"
    assert found.hint == hint and found.expected == ""


def test_job_failing_in_its_build_is_named():
    @flow.global_function()
    def predict(x: tp.Numpy.Placeholder((2, 5))) -> tp.Numpy:
        return flow.matmul(x, flow.ones(4, 3))

    assert card(lambda: predict(np.ones((2, 5), "float32")), ShapeError).title == "ShapeError in job predict"


def test_axes_of_the_result_are_named():
    with pytest.raises(flow.OutOfRangeError, match="the result has 4 axes, so dim is from -4 to 3"):
        flow.ones(2, 3, 4).unsqueeze(9)
