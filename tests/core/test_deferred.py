"""Check that errors about elements on a device come with the next value that the program reads, and name their line."""

import re
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow import typing as tp
from minflow.core import deferred
from minflow.core.backend import backend_of, to_host
from minflow.core.base.errors import DivisionError, DTypeError, OutOfRangeError
from minflow.core.context import Context, current_context, entered
from minflow.core.kernels import launch
from minflow.core.op import OPS
from minflow.core.spec import spec_of
from tests.strict_backend import counted, strict


@pytest.fixture(autouse=True)
def device(cuda):
    with entered(Context()):  # whose checks nothing else reads
        yield cuda


def on_device(array):
    return strict.asarray(np.asarray(array))


def run(op, *arrays, **attrs):
    """Run an op whose result has the spec of its first array."""
    arrays = [on_device(x) if isinstance(x, list) else x for x in arrays]
    return launch(OPS[op], arrays, attrs, (spec_of(arrays[0]),))


COUNTER = np.zeros(2, "int64")
WRONG = {
    "index": (
        OutOfRangeError,
        "take: index 7 is outside axis 0, which has size 3",
        ("take", [1.0, 2.0, 3.0], [0, 7, 1]),
    ),
    "negative index": (OutOfRangeError, "gather: index -1 is", ("gather", [1.0, 2.0], [0, -1])),
    "label": (
        OutOfRangeError,
        "labels go from 0 to 5, and the input has 3 classes: 0 to 2",
        ("checked_labels", [0, 5, -100]),
    ),
    "divisor": (DivisionError, "floor_divide: integers cannot be divided by 0", ("floor_divide", [3, 4], [1, 0])),
    "exponent": (DTypeError, "pow: integers cannot be raised to negative", ("pow", [3, 4], [1, -1])),
    "probability": (
        OutOfRangeError,
        "p must be probabilities from 0 to 1, got 0.5 to 1.5",
        ("bernoulli", [0.5, 1.5], COUNTER),
    ),
    "NaN": (
        OutOfRangeError,
        "must be probabilities from 0 to 1, got nan to nan",
        ("bernoulli", [0.5, np.nan], COUNTER),
    ),
    "variance": (OutOfRangeError, "var must not be negative, got -2 to 0", ("at_least", [1.0, -2.0])),
    "bins": (OutOfRangeError, "histc: bins from 1.0 to inf", ("histc", [1.0, np.inf])),
    "weight": (
        OutOfRangeError,
        "probabilities must be finite and at least 0, got -1",
        ("multinomial", [1.0, -1.0], COUNTER),
    ),
    "weights": (OutOfRangeError, "all probabilities of a row are 0", ("multinomial", [0.0, 0.0], COUNTER)),
}
ATTRS = {
    "take": {"axis": 0, "by": "take"},
    "gather": {"dim": 0, "by": "gather"},
    "checked_labels": {"loss": "cross_entropy", "classes": 3, "ignore_index": -100},
    "bernoulli": {"offset": 0},
    "at_least": {"least": 0.1, "name": "var"},
    "histc": {"bins": 2, "low": 0, "high": 0},
    "multinomial": {"num_samples": 2, "replacement": True, "offset": 0},
}


@pytest.mark.parametrize("case", WRONG)
def test_the_error_comes_with_the_next_value_and_names_the_line(case):
    kind, message, (name, *arrays) = WRONG[case]
    with counted() as copies:
        run(name, *arrays, **ATTRS.get(name, {}))
    assert not copies
    with pytest.raises(kind, match=re.escape(message)) as caught:
        to_host(strict.zeros(1))
    assert re.fullmatch(r"at .*test_deferred.py:\d+", caught.value.where) and caught.value.values and caught.value.hint
    assert to_host(strict.zeros(1)).tolist() == [0]  # reported once


def test_right_elements_are_silent():
    for name, *arrays in [
        ("take", [1.0, 2.0], [0, -2]),
        ("checked_labels", [0, 2, -100]),
        ("floor_divide", [3, 4], [1, 2]),
        ("floor_divide", [3.0, 4.0], [1.0, 0.0]),
        ("bernoulli", [0.0, 1.0], COUNTER),
        ("at_least", [np.nan, 2.0]),
        ("multinomial", [1.0, 0.0], COUNTER),
        ("take", np.zeros(0), np.zeros(0, "int64")),
    ]:
        arrays = [on_device(x) if isinstance(x, np.ndarray) and x is not COUNTER else x for x in arrays]
        run(name, *arrays, **ATTRS.get(name, {}) | ({"by": "indexing"} if name == "take" else {}))
    to_host(strict.zeros(1))


def test_a_number_is_checked_at_once():
    with pytest.raises(DivisionError):
        run("floor_divide", [3, 4], 0)


def test_a_loop_that_reads_nothing_keeps_one_check_a_line():
    index = on_device([0, 1])
    with counted() as copies:
        for step in range(50):
            index[0] = 9 if step == 7 else 0
            run("take", [1.0, 2.0], index, axis=0)
            run("floor_divide", [3, 4], [1, 2])
    assert not copies and len(deferred.pending()) == 2
    with counted() as copies, pytest.raises(OutOfRangeError, match="index 9"):
        to_host(strict.zeros(1))
    assert sum(copies.values()) == 1 and not deferred.pending()  # all checks are one copy


def test_many_different_checks_are_read_even_if_the_program_reads_nothing():
    for size in range(1, deferred.MAX_PENDING + 10):
        run("floor_divide", [3] * size, [1] * size)
        assert len(deferred.pending()) <= deferred.MAX_PENDING


def test_checks_belong_to_their_context(device):
    run("floor_divide", [3, 4], [1, 0])
    with entered(Context()):
        to_host(strict.zeros(1))
    with pytest.raises(DivisionError):
        to_host(strict.zeros(1))
    assert backend_of(device).device is device


# ---- training --------------------------------------------------------------------------------------------------------


def line_of(text: str) -> str:
    """The place in this file of the only line that ends with this comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return f"test_deferred.py:{number}"


def warned(read) -> str:
    with pytest.warns(flow.MinflowWarning) as caught:
        read()
    (message,) = [str(w.message) for w in caught]
    return message


def test_a_loss_that_is_not_finite_is_reported_with_the_next_value(device):
    x = flow.tensor([1.0, -1.0], device=device, requires_grad=True)
    with counted() as copies:
        loss = x.log().sum()
        loss.backward()  # of the loss
    assert not copies
    message = warned(loss.item)
    assert "backward: the loss is nan, the first that is not a finite number" in message
    assert line_of("of the loss") in message and "created by sum at" in message and "learning rate" in message


def test_a_loss_is_reported_once_while_it_stays_wrong(device):
    x = flow.tensor([1.0, -1.0], device=device, requires_grad=True)
    warned(lambda: [(loss := x.log().sum(), loss.backward(), loss.item()) for _ in range(3)])


def test_a_gradient_that_is_not_finite_is_reported_with_its_parameter(device):
    model = flow.nn.Linear(2, 1, bias=False).to(device)
    optimizer = flow.optim.SGD(model.parameters(), 0.1)
    with counted() as copies:
        (model.weight * 0).sqrt().sum().backward()
        optimizer.step()  # of the optimizer
    assert not copies
    message = warned(lambda: model.weight.sum().item())
    assert "SGD.step: the gradient of a parameter is not finite" in message and "learning rate  0.1" in message
    assert line_of("of the optimizer") in message and "float32[1, 2] on cuda:0" in message


def test_an_error_in_a_graph_names_the_line_of_its_node(device):
    table = flow.ones(3, 2, device=device)

    class Lookup(flow.nn.Graph):
        def build(self, index):
            return flow.nn.functional.embedding(index, table)  # of the node

    graph = Lookup()
    result = graph(flow.tensor([0, 1], device=device))
    result.cpu()
    with counted() as copies:
        result = graph(flow.tensor([0, 5], device=device))
    assert not copies
    with pytest.raises(OutOfRangeError, match="index 5 is outside 0 to 2") as caught:
        result.cpu()
    assert line_of("of the node") in caught.value.where


def test_a_result_of_a_training_graph_that_is_not_finite_is_reported(device):
    model = flow.nn.Linear(2, 1).to(device)

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), 0.1))

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    graph, x = Train(), flow.ones(3, 2, device=device)
    graph(x).item()
    with counted() as copies:
        losses = [graph(x * scale) for scale in (1.0, float("inf"), 1.0)]
    assert not copies
    message = warned(losses[-1].item)
    assert "a training step returned" in message and re.search(r"step +3", message) and "learning rate  0.1" in message


def test_an_error_in_a_job_names_the_line_of_its_node(device):
    table = flow.ones(3, 2, device=device)

    def look(index: tp.Numpy.Placeholder((2,), dtype=flow.int64)) -> tp.Numpy:
        return flow.nn.functional.embedding(index.to(device), table)  # of the node in a job

    job = flow.global_function()(look)
    assert job(np.array([0, 2])).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(flow.JobError, match="OutOfRangeError: embedding: index 5 is outside 0 to 2") as caught:
        job(np.array([0, 5]))
    assert line_of("of the node in a job") in str(caught.value)
    assert job(np.array([0, 1])).tolist() == [[1, 1], [1, 1]]


def test_threads_of_a_context_share_its_checks(device):
    context, errors = current_context(), []

    def check():
        for divisor in (1, 0):
            run("floor_divide", [3, 4], [1, divisor])

    def read():
        try:
            to_host(strict.zeros(1))
        except DivisionError as error:
            errors.append(error)

    for target in (check, read, read):
        context.spawn(target).join()
    assert len(errors) == 1
