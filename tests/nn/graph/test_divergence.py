"""graph.compare(reference): the first node where two implementations differ, and no side effects."""

from collections import namedtuple

import numpy as np
import pytest
from graph_models import FunctionGraph, Predict, Step, TrainGraph

import minflow as flow
from minflow import nn
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.base.errors import GraphError
from minflow.core.ir import outputs_of
from minflow.introspection.graph.compare import closeness
from minflow.introspection.graph.compare.eager_run import RecordedOp
from minflow.introspection.graph.explore.explorer_model import graph_explorer_model
from minflow.views.draw.boxes import diagram_of
from minflow.views.draw.dot import dot_text
from minflow.views.draw.fold import NEARBY_BOXES, fold_near_end
from minflow.views.renderers.divergence import GraphComparison
from tests.measuring import calls
from tests.strict_backend import counted


class Net(nn.Module):
    def __init__(self, middle=True, scale=None):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.middle, self.scale = middle, scale

    def forward(self, x):
        h = self.fc2(self.fc1(x).relu())
        h = self.fc3(h.relu() if self.middle else h)
        return flow.softmax(h * self.scale if self.scale else h, dim=-1)


def train_graph(model):
    return TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


@pytest.fixture
def reference():
    flow.manual_seed(0)
    return Net()


X = flow.tensor(np.random.default_rng(0).normal(size=(5, 8)).astype("float32"))


def student(reference, **options):
    model = Net(**options)
    model.load_state_dict(reference.state_dict())
    return Predict(model)


def why(comparison):
    return dict(comparison.why)


def test_same_program_agrees_bit_for_bit(reference):
    for other in (reference, Predict(reference), lambda x: reference(x), lambda x: reference(x).numpy()):
        found = student(reference).compare(other, X)
        assert found.equal and found.first is None and found.output == 0.0 and found.why == ()
    assert {n.mark for n in student(reference).compare(reference, X).graph.nodes if n.kind == "op"} == {"equal"}


def test_missing_operation_is_named(reference):
    found = student(reference, middle=False).compare(reference, X)
    assert not found.equal and found.first.name == "model.fc3-matmul-2" and found.first.state == "differs"
    assert why(found)["only in Net"].startswith("relu at ") and "differs already, by at most" in why(found)["input"]
    assert [row.state for row in found.rows[: found.at]] == ["equal"] * found.at and found.first.difference > 0.01
    assert np.isclose(found.output, np.abs((student(reference, middle=False)(X) - reference(X)).numpy()).max())
    text = repr(found)
    assert ">>> model.fc3-matmul-2" in text and text.count("only in Net: relu") == 1
    html = found._repr_mimebundle_()["text/html"]
    # table, alt, text below
    assert "diverges from Net" in html and "<img alt=" in html and html.count("relu at test_divergence") == 3


def test_added_operation_is_reported_first(reference):
    for other in (reference, Predict(reference)):
        found = student(reference, scale=2.0).compare(other, X)
        assert found.first.name == "model-mul-0" and found.first.state == "only"
        assert why(found)["differs"] == f"{found.reference} has no such operation here"


def test_plan_that_differs_from_eager_is_shown(reference):
    def forgets_relu(graph):
        relu = next(node for node in graph.nodes if node.op.name == "relu")
        return rewrite(graph, [n for n in graph.nodes if n is not relu], {outputs_of(relu)[0]: relu.inputs[0]})

    graph = Predict(reference)
    graph.config.exact(True)
    same = graph.compare_eager(X)
    assert isinstance(same, GraphComparison) and same.equal and same.largest == 0 and all(row.same for row in same.rows)
    html = same._repr_mimebundle_()["text/html"]
    assert 0 < html.index("the last operations</summary>") < html.index("<img alt="), "it has no difference"
    graph.passes.append(forgets_relu)
    found = graph.compare_eager(X)
    assert not found.equal and found.first.name == "model.fc2-matmul-1" and found.first is found.rows[found.at]
    assert "relu at " in why(found)["only in eager"] and set(why(found)) >= {"differs", "here", "in eager"}
    marks = [n.mark for n in found.graph.nodes if n.kind == "op"]
    assert marks.count("ghost") == 1 and marks[-1] == "differs"
    html = found._repr_mimebundle_()["text/html"]
    assert "<img alt=" in html and "the last operations" not in html


def test_different_weights_are_named(reference):
    graph = student(reference)
    with flow.no_grad():
        graph.model.fc2.weight[:, :4] += 1
    found = graph.compare(reference, X)
    assert found.first.name == "model.fc2-matmul-1"
    assert why(found)["input"].startswith("model.fc2.weight, float32[16, 16]")


def test_missing_operation_is_dashed_at_its_position(reference):
    by_id = {}
    for other in (reference, Predict(reference)):
        found = student(reference, middle=False).compare(other, X)
        by_id = {n.id: n for n in found.graph.nodes}
        *_, ghost, last = found.graph.nodes
        marks = [n.mark for n in found.graph.nodes if n.kind == "op"]
        assert marks[-2:] == ["ghost", "differs"] and set(marks[:-2]) == {"equal"} and len(marks) == found.at + 2
        assert len(marks) <= NEARBY_BOXES and last.notes == (f"differs by {found.first.difference:.3g}",)
        assert ghost.label == "relu" and ghost.notes == (f"only in {found.reference}",)
        assert ghost.outs == ("float32[5, 16]",)
        source = by_id[ghost.inputs[0].ref]
        assert source.label == "add" and source.id == last.inputs[0].ref and last.inputs[-1].ref == ghost.id
        assert ghost.scope == "model"
        text = dot_text(diagram_of(found.graph))
        assert f'"{ghost.id}" -> "{last.id}" [label="a" style=dashed]' in text
        assert f'"{source.id}" -> "{last.id}" [label="a"]' in text


def test_replaced_operation_is_shown_side_by_side(reference):
    class Other(Net):
        def forward(self, x):
            return super().forward(x).exp()

    class Mine(Net):
        def forward(self, x):
            return super().forward(x).tanh()

    right, wrong = Other(), Mine()
    wrong.load_state_dict(right.state_dict())
    found = Predict(wrong).compare(right, X)
    *_, ghost, last = found.graph.nodes
    assert (ghost.label, last.label) == ("exp", "tanh") and last.notes == ("only here",)
    assert ghost.inputs[0].ref == last.inputs[0].ref and ghost.id not in {x.ref for x in last.inputs}
    assert why(found)["only in Other"].startswith("exp at")


def test_operation_stays_in_the_frame_of_its_inputs():
    class Block(nn.Module):
        def __init__(self, act):
            super().__init__()
            self.a, self.b, self.act = nn.Linear(8, 8), nn.Linear(8, 8), act

        def forward(self, x):
            h = self.a(x)
            return x + self.b(h.relu() if self.act else h)

    right, wrong = (nn.Sequential(*[Block(i != missing) for i in range(8)]) for missing in (-1, 6))
    wrong.load_state_dict(right.state_dict())
    nodes = fold_near_end(Predict(wrong).compare(right, X).graph).nodes
    assert {n.label: n.scope for n in nodes[-3:]} == {
        "relu": "model.6",
        "model.6.b.weight": "model.6.b",
        "matmul": "model.6.b",
    }


def test_values_of_both_sides_are_reported(reference):
    found = student(reference, middle=False).compare(reference, X)
    h = reference.fc1(X).relu()
    mine, theirs = (np.ravel((x @ reference.fc3.weight.T).numpy()) for x in (reference.fc2(h), reference.fc2(h).relu()))
    for name, numbers in (("here", mine), ("in Net", theirs)):
        told = why(found)[name].replace(",", "").split()
        assert np.allclose([float(t) for t in told[:4]], numbers[:4], rtol=1e-3)
        assert told[4:6] == ["...", "mean"] and np.isclose(float(told[6]), numbers.mean(), rtol=1e-3)
    assert why(found)["in Net"].partition("  ")[2].startswith("Net.fc3: matmul at test_divergence.py:")


def test_different_operations_with_equal_results_agree(reference):
    def by_hand(x):
        m = reference
        h = (x @ m.fc1.weight.T + m.fc1.bias).relu()
        h = (h @ m.fc2.weight.T + m.fc2.bias).relu()
        e = (h @ m.fc3.weight.T + m.fc3.bias).exp()
        return e / e.sum(dim=-1, keepdim=True)

    found = FunctionGraph(by_hand).compare(reference, X)
    assert found.equal and found.output < 1e-6 and next(row for row in found.rows if "div" in row.name).state == "equal"
    assert {row.state for row in found.rows if "exp" in row.name} == {"only"}


def test_tolerance_is_that_of_allclose(reference):
    graph = student(reference, scale=1.001)
    assert not graph.compare(reference, X).equal and graph.compare(reference, X, rtol=1e-2).equal
    assert graph.compare(reference, X, atol=1.0).equal and not graph.compare(reference, X, rtol=1e-6, atol=1e-7).equal

    def equal(x, by, **options):
        return Scale(1.0).compare(lambda x: x * by, x, **options).equal

    small = flow.ones(4) * 1e-7
    assert equal(small, 2.0) and not equal(small, 2.0, atol=0) and not equal(small, 2.0, atol=1e-8), (
        "default of float32, as in torch.testing"
    )
    assert not equal(flow.ones(4) * 3, 1 + 1e-5) and equal(flow.ones(4) * 3, 1 + 1e-6)
    exact = flow.ones(4, dtype=flow.float64)
    assert not equal(exact, 1 + 1e-6) and equal(exact, 1 + 1e-8), "float64 has a smaller tolerance"
    coarse = flow.ones(4, dtype=flow.float16)
    assert equal(coarse, 1.001) and not equal(coarse, 1.01), "and float16 a larger one"


@pytest.mark.parametrize("dtype, x, y, equal", [
    ("int64", [10**6, 1], [10**6 + 1, 1], False), ("int64", [2**53 + 1], [2**53], False), ("int64", [5], [5], True),
    ("bool", [True, False], [True, True], False), ("bool", [True, False], [True, False], True),
])  # fmt: skip
def test_integers_and_bool_are_compared_exactly(dtype, x, y, equal):
    x, y = [flow.tensor(numbers, dtype=getattr(flow, dtype)) for numbers in (x, y)]
    found = FunctionGraph(lambda x: x.reshape(-1)).compare(lambda x: y.reshape(-1), x)
    assert found.equal is equal and (found.first is None or found.first.difference >= 1)


def test_cancellation_allows_rounding_differences(reference):
    a = np.random.default_rng(0).normal(size=(50, 300)).astype("float32") * 100
    b = np.random.default_rng(1).normal(size=(300, 50)).astype("float32")

    product, order = FunctionGraph(lambda a, b: a @ b), np.random.default_rng(2).permutation(300)
    given = flow.from_numpy(a), flow.from_numpy(b)
    assert product.compare(lambda a, b: a.numpy()[:, order] @ b.numpy()[order], *given).equal
    assert not product.compare(lambda a, b: a.numpy() @ b.numpy() + 0.01, *given).equal


def test_gradients_of_two_training_graphs_are_compared(reference):
    class Halved(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * 0.5

    class Logits(Net):
        def logits(self, x):
            return self.fc3(self.fc1(x).relu())

        def forward(self, x):
            return self.logits(x) * 1

    class Wrong(Logits):
        def forward(self, x):
            return Halved.apply(self.logits(x))

    right, wrong, y = Logits(), Wrong(), flow.tensor([0, 1, 2, 3, 0])
    wrong.load_state_dict(right.state_dict())
    found = train_graph(wrong).compare(train_graph(right), X, y)
    assert found.output == 0.0 and not found.equal and "_grad" in found.first.name
    assert train_graph(right).compare(train_graph(right), X, y).equal


def test_compare_has_no_side_effects():
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    graph, y = train_graph(model), flow.tensor([0, 1, 2, 0, 1])
    graph(X, y)
    before = {name: t.numpy().copy() for name, t in model.state_dict().items()}
    state, steps = np.array(flow.get_rng_state()), graph.optimizers[0][0]._steps_taken

    def by_eager(x, y):
        loss = nn.CrossEntropyLoss()(model(x), y)
        loss.backward()
        return loss

    for reference in (by_eager, train_graph(model)):
        grads = [p.grad for p in model.parameters()]
        assert graph.compare(reference, X, y).output == 0.0
        assert all((model.state_dict()[name].numpy() == value).all() for name, value in before.items())
        assert (np.array(flow.get_rng_state()) == state).all() and graph.optimizers[0][0]._steps_taken == steps
        assert all(p.grad is g for p, g in zip(model.parameters(), grads))


def test_failing_reference_restores_everything(reference):
    model = nn.Sequential(nn.BatchNorm1d(8))
    before = model[0].running_mean.numpy().copy()

    def bad(x):
        model(x)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        Predict(model).compare(bad, X)
    assert (model[0].running_mean.numpy() == before).all()


def test_invalid_reference_is_refused(reference):
    with pytest.raises(flow.MinflowError, match="the reference is int, which cannot be called"):
        student(reference).compare(5, X)


def test_different_shapes_diverge(reference):
    found = student(reference).compare(lambda x: reference(x)[:, :2], X)
    assert found.output is None and not found.equal
    assert "outputs: have different shapes: float32[5, 4] here, float32[5, 2] in <lambda>" in repr(found)


class Scale(nn.Graph):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def build(self, x):
        return x * self.by


def step(model, optimizer, parts=1):
    return Step(model, optimizer, lambda x: model(x).mean(), set_gradient_accumulation_steps=parts)


def test_different_optimizers_diverge(reference):
    sgd, adam = flow.optim.SGD(reference.parameters(), lr=0.1), flow.optim.Adam(reference.parameters(), lr=0.1)
    told = step(reference, sgd).compare(step(reference, adam), X)
    assert told.output == 0.0 and not told.equal and told.first.name == "model.fc1.weight_optimizer"
    assert told.first.state == "only"
    assert step(reference, sgd).compare(step(reference, sgd), X).equal


def test_different_accumulation_is_not_compared(reference):
    x, optimizer = flow.ones(6, 8), flow.optim.SGD(reference.parameters(), lr=0.1)
    with pytest.raises(GraphError, match="takes a batch in 2 parts and Step_[0-9]+ in 1"):
        step(reference, optimizer, 2).compare(step(reference, optimizer), x)
    assert step(reference, optimizer, 2).compare(step(reference, optimizer, 2), x).equal


Batch = namedtuple("Batch", "x more")


def in_parts(model):
    """A graph that splits a batch into two micro-batches."""
    return Step(
        model,
        flow.optim.SGD(model.parameters(), lr=0.1),
        lambda batch: (model(batch.x) * batch.more["weight"]).square().mean(),
        set_gradient_accumulation_steps=2,
        exact=True,
    )


def test_accumulation_compares_the_first_micro_batch(reference):
    graph, batch = in_parts(reference), Batch(flow.randn(6, 8), {"weight": flow.rand(6, 1), "none": None})
    fresh = graph_explorer_model(graph, (batch,)).gradients
    for _ in range(2):
        told = graph.compare_eager(batch)
        assert len(told.rows) > 10 and told.first is None
        assert {row.phase for row in told.rows} == {"forward", "backward"}
        assert graph.compare(lambda b: (reference(b.x) * b.more["weight"]).square().mean(), batch).equal
        assert graph.compare(in_parts(reference), batch).equal  # one of them was called, and the other was not
        model = {key: t.numpy().copy() for key, t in reference.state_dict().items()}
        graph(batch)
        for key, array in model.items():
            reference.state_dict()[key].numpy()[...] = array
    assert graph_explorer_model(graph, (batch,)).gradients == fresh and len(fresh) == 6


def test_scalar_is_compared_as_scalar():
    graph, x = Scale(2.0), flow.tensor(3.0)
    told = graph.compare(lambda x: x * 3.0, x)
    assert "mul-0  float32[]" in repr(told) and "1 of 1 elements differ" in repr(told)
    assert graph.compare_eager(x).rows[0].same
    assert graph_explorer_model(graph, (x,)).instructions[0].outs[0].spec == "float32[]"


def test_only_elements_beyond_the_tolerance_are_counted():
    factors = np.ones(8, "float32")
    factors[3], factors[4] = 1.5, 1 + 2e-7  # the second differs by less than a float32 sum resolves
    told = Scale(1.0).compare(lambda x: x * flow.from_numpy(factors), flow.ones(8) * 1e6)
    assert dict(told.why)["differs"] == "by at most 5e+05; 1 of 8 elements differ"


def test_common_infinities_and_nan_are_equal():
    x = flow.tensor([float("inf"), float("nan"), -float("inf"), 1.0])
    told = Scale(2.0).compare(lambda x: x * 3.0, x)
    assert dict(told.why)["differs"] == "by at most 1; 1 of 4 elements differ"


def test_numpy_and_python_numbers_are_outputs():
    assert FunctionGraph(lambda x: x.sum()).compare(lambda x: x.numpy().sum(), X).equal, "a numpy scalar is not a float"
    assert FunctionGraph(lambda x: x.sum() > 0).compare(lambda x: x.numpy().sum() > 0, X).equal
    assert FunctionGraph(lambda x: x.sum() > 1e9).compare(lambda x: False, X).equal


def test_inputs_of_build_may_have_any_name():
    class Named(nn.Graph):
        def build(self, reference):
            return reference * 2

    assert Named().compare(lambda reference: reference * 2, reference=X).equal


def test_dict_outputs_are_matched_by_name():
    graph = FunctionGraph(lambda x: {"a": x + 1, "b": [x * 2]})
    assert graph.compare(lambda x: {"b": [x.numpy() * 2], "a": x.numpy() + 1}, X).equal
    assert not graph.compare(lambda x: {"b": [x.numpy() + 1], "a": x.numpy() * 2}, X).equal


@pytest.mark.parametrize("given, what", [
    (None, "something of type NoneType"), ("text", "something of type str"), ([], "something of type list"),
    (np.array(["a"]), "an array of <U1"),
    (np.array([1j]), "an array of complex128"), (np.array([None]), "an array of object"),
    ({"a": 1.0, "b": object}, "something of type type"),
])  # fmt: skip
def test_outputs_without_elements_are_reported(given, what):
    with pytest.raises(GraphError, match=f"reference returns {what}, which cannot be compared") as caught:
        FunctionGraph(lambda x: x.sum()).compare(lambda x: given, X)
    assert "at test_divergence.py" in str(caught.value) and "Try: return tensors" in str(caught.value)


@pytest.mark.parametrize("options", [{"rtol": "a"}, {"rtol": float("nan")}, {"atol": -1}])
def test_wrong_tolerance_is_refused(options):
    with pytest.raises(GraphError, match="a number of at least 0"):
        Scale(1.0).compare(lambda x: x, X, **options)


def test_reference_without_operations_has_outputs_only(reference):
    told = student(reference).compare(lambda x: x.numpy() @ np.ones((8, 4), "float32"), X)
    assert told.at is None and not told.equal and "so only outputs could be compared" in told.title
    assert "differs" not in {n.mark for n in told.graph.nodes}, "which one is unknown"
    more = FunctionGraph(lambda x: x * 2).compare(lambda x: x * 2 + 1, X)
    assert more.at is None and more.title.endswith("all operations are equal, and <lambda> has more")


def test_inputs_changed_by_a_reference_are_restored():
    def changing(x):
        x.numpy()[...] += 1
        return x

    x = flow.zeros(3)
    Scale(1.0).compare(changing, x)
    assert (x.numpy() == 0).all()


def test_thousands_of_differing_operations_are_not_matched_pairwise():
    def times(number):
        def function(x, by=number):
            for _ in range(1200):
                x = x * by
            return x

        return function

    found = []
    each = calls(lambda: found.append(FunctionGraph(times(1.001)).compare(times(1.002), X))) / 1200
    assert each < 10_000  # a fifth of it; comparing each with all takes 100,000 or more
    assert found[0].at == 0 and found[0].first.state == "differs"


def test_whole_arrays_are_compared_only_if_samples_match(monkeypatch):
    looked, beyond = [], closeness.count_unequal
    monkeypatch.setattr(closeness, "count_unequal", lambda *args: looked.append(1) or beyond(*args))
    nets = [nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)]) for _ in range(2)]
    told = Predict(nets[0]).compare(nets[1], X)
    assert told.at == 0 and len(told.rows) == 40 and len(looked) < 50  # 20 for each, if all of a shape are compared


def test_sampling_finds_the_same_operation_as_full_comparison():
    """Random steps with few elements and ops, many of them equal within the tolerance, against comparing every pair."""
    rng = np.random.default_rng(1)
    edges = np.array([0.0, -0.0, 1.0, 1.0 + 1e-6, 1e30, 1e-30, np.inf, -np.inf, np.nan])
    for options in ({}, {"rtol": 0.0, "atol": 0.0}, {"rtol": 1e6}, {"atol": 0.5}):
        arrays = []
        for _ in range(120):
            dtype = rng.choice(["float32", "float64", "int64", "bool", "float16"])
            array = rng.choice(
                edges if dtype.startswith("float") and rng.random() < 0.6 else edges[:3], (int(rng.choice([1, 3])), 2)
            )
            with np.errstate(all="ignore"):
                arrays.append(array.astype(dtype))
        steps = [RecordedOp("op", f"op-{i}", "", [], [array]) for i, array in enumerate(arrays)]
        known = closeness.ResultIndex([s.arrays for s in steps[:60]], closeness.Tolerance(**options))
        found = 0
        for step in steps[60:]:
            equal = [
                j
                for j, other in enumerate(steps[:60])
                if closeness.compare_arrays(step.arrays, other.arrays, known.tolerance)[0]
            ]
            given = known.find(step.arrays)
            assert (given in equal) if equal else given is None
            found += bool(equal)
        assert 0 < found < 60


def test_reference_name_is_truncated():
    def function(x):
        return x + 2

    function.__name__ = "<b>\n" * 500
    told = FunctionGraph(lambda x: x + 1).compare(function, X)
    assert len(told.title) < 300 and "<b>" not in told._repr_mimebundle_()["text/html"]


def small_net():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def test_a_graph_on_a_device_is_compared_there(cuda):
    model, x = small_net().to(cuda), flow.randn(6, 8).to(cuda)
    graph = Predict(model)
    with counted() as copies:
        assert graph.compare(model, x).equal
        assert graph.compare_eager(x).equal
    assert {how.split()[0] for how in copies} <= {"bool", "float", "int"}  # numbers only
    other = graph.compare(lambda x: model(x * 2), x)
    assert not other.equal and "diverges" in other.title
    assert graph.compare(lambda x: model(x).numpy(force=True), x).output == 0


def test_a_step_on_a_device_is_explored_there(cuda):
    model, x = small_net(), flow.randn(6, 8)
    here = graph_explorer_model(Predict(model), (x,))
    there = graph_explorer_model(Predict(model.to(cuda)), (x.to(cuda),))
    assert [i.outs for i in here.instructions] == [i.outs for i in there.instructions]
