"""Composite ops: one node on the tape, with the results and gradients of their decomposition.

For every composite op with its examples; then hooks, writes in place, second derivatives and mistakes.
"""

import weakref

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.autograd import decomposition
from minflow.core.base.errors import CallError, GradError
from minflow.core.dispatch import apply
from minflow.core.op import OPS, define
from minflow.core.ops.examples import cases
from minflow.core.trace import gradient_paths, trace
from minflow.nn import functional as F
from tests.cases import Cases
from tests.graphs import Predict

COMPOSITES = [op for op in OPS.values() if op.decompose]
every_composite = pytest.mark.parametrize("op", COMPOSITES, ids=lambda op: op.name)


def many(x):
    return list(x) if isinstance(x, list | tuple) else [x]


def example_inputs(example):
    return [
        flow.tensor(x).requires_grad_(x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in example.arrays()
    ]


def gradients(outs, inputs, **options):
    """Gradients of the floating outputs, weighted so that they do not cancel; none if no output has a gradient."""
    weighted = [(out, flow.arange(1, out.numel() + 1).reshape(out.shape).to(out.dtype)) for out in outs]
    losses = [(out * weights).sum() for out, weights in weighted if out.requires_grad]
    leaves = [x for x in inputs if isinstance(x, flow.Tensor) and x.requires_grad]
    return flow.autograd.grad(sum(losses), leaves, **options) if losses else []


def bits(tensors):
    return [t.detach().numpy().tobytes() for t in tensors]


@every_composite
def test_results_and_gradients_of_the_decomposition(op):
    with Cases() as case:
        for i, example in enumerate(cases(op)):
            with case(f"example {i}"):
                inputs = example_inputs(example)
                outs, parts = many(apply(op, *inputs, **example.attrs)), decomposition(op, inputs, example.attrs)
                assert bits(outs) == bits(parts)
                assert bits(gradients(outs, inputs)) == bits(gradients(parts, inputs))


@every_composite
def test_the_op_of_the_gradient_has_the_bits_of_the_tape(op):
    with Cases() as case:
        for i, example in enumerate(cases(op)):
            with case(f"example {i}"):
                inputs = example_inputs(example)
                outs = many(apply(op, *inputs, **example.attrs))
                gs = [flow.arange(1, out.numel() + 1).reshape(out.shape).to(out.dtype) for out in outs]
                needs = sum([1 << k for k, x in enumerate(inputs) if isinstance(x, flow.Tensor) and x.requires_grad])
                plain = [x.detach() if isinstance(x, flow.Tensor) else x for x in inputs]
                found = many(apply(op.gradient, *gs, *plain, **example.attrs, needs=needs))
                wanted = gradients(outs, inputs)
                assert bits([g for k, g in enumerate(found) if needs >> k & 1]) == bits(wanted)


@every_composite
def test_it_is_one_node(op):
    example = cases(op)[0]
    inputs = example_inputs(example)
    node = many(apply(op, *inputs, **example.attrs))[0]._value.node
    assert node.op is op and [x.spec for x in inputs if isinstance(x, flow.Tensor)] == [
        getattr(value, "spec", value) for value in node.inputs if not isinstance(value, int | float)
    ]


def strided(x):
    """The same numbers in reverse order of axes."""
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(*axes).contiguous().permute(*axes) if x.ndim else x


@pytest.mark.parametrize("layout", [lambda x: x, strided], ids=["contiguous", "strided"])
@every_composite
def test_graph_has_the_bits_of_eager(op, layout):
    """Its result, gradients and second derivatives."""
    EXAMPLE = cases(op)[0]
    NUMBERS = EXAMPLE.arrays()
    arrays = [x for x in NUMBERS if isinstance(x, np.ndarray)]

    def program(*tensors):
        rest = iter(tensors)
        inputs = [next(rest) if isinstance(x, np.ndarray) else x for x in NUMBERS]
        leaves = [x.detach().requires_grad_(x.is_floating_point()) if isinstance(x, flow.Tensor) else x for x in inputs]
        given = [layout(x) if isinstance(x, flow.Tensor) else x for x in leaves]
        outs = many(apply(op, *given, **EXAMPLE.attrs))
        by_op = gradients(outs, leaves, retain_graph=True)
        first = gradients(outs, leaves, create_graph=True)
        linear = not any(g is not None and g.requires_grad for g in first)
        second = () if linear else gradients(first, leaves, allow_unused=True, retain_graph=True)
        return *[out.detach() for out in outs], *by_op, *first, *second

    inputs = [flow.tensor(x) for x in arrays]
    found, wanted = Predict(lambda *x: [t for t in program(*x) if t is not None], exact=True)(*inputs), program(*inputs)
    assert bits(found) == bits([t for t in wanted if t is not None])


@every_composite
def test_graph_has_the_gradients_of_eager(op):
    """None in eager mode is None while a graph is built, for each output and input."""
    with Cases() as case:
        for i, example in enumerate(cases(op)):
            with case(f"example {i}"):
                inputs = example_inputs(example)
                leaves = {k: x for k, x in enumerate(inputs) if isinstance(x, flow.Tensor) and x.requires_grad}
                found = []
                for out in many(apply(op, *inputs, **example.attrs)):
                    options = dict(allow_unused=True, retain_graph=True)
                    gs = flow.autograd.grad(out.sum(), leaves.values(), **options) if out.requires_grad else []
                    found.append(sum([1 << k for k, g in zip(leaves, gs) if g is not None]))
                specs = tuple([x.spec if isinstance(x, flow.Tensor) else x for x in inputs])
                assert found == gradient_paths(op, specs, tuple(example.attrs.items()))


UNCONNECTED = {
    "target of hinge_embedding_loss": lambda x, y: F.hinge_embedding_loss(x, y),
    "only the target": lambda x, y: F.hinge_embedding_loss(x.detach(), y),
    "target of cosine_embedding_loss": lambda x, y: F.cosine_embedding_loss(x, x.square(), y[:, 0]),
    "a count": lambda x, y: F.pairwise_distance(x, y, p=0),
    "both": lambda x, y: F.mse_loss(x, y),
}


@pytest.mark.parametrize("name", UNCONNECTED)
def test_inputs_without_a_gradient(name):
    """Their gradient is None, and a result that depends on no other input needs none, as in PyTorch."""

    def found(x, y):
        leaves = [t.detach().requires_grad_() for t in (x, y)]
        out = UNCONNECTED[name](*leaves)
        if not out.requires_grad:
            return None
        options = dict(allow_unused=True, retain_graph=True)
        both = [flow.autograd.grad(out.sum(), leaves, **options, create_graph=new) for new in (False, True)]
        return [[g is None for g in gs] for gs in both]

    seen, arguments = [], [flow.randn(3, 4), flow.randn(3, 4).sign()]
    trace(lambda *inputs: seen.append(found(*inputs)) or inputs[0], arguments)
    assert seen == [found(*arguments)]


def test_gradients_of_one_output():
    """One of two outputs is used; each has an input of its own."""
    pair = define(
        "pair_of_squares(a, b) -> first, second",
        decompose=lambda a, b: (a * a, b * b),
        examples=[],
        doc="The squares of both.",
    )

    def found(x, y):
        leaves = [t.detach().requires_grad_() for t in (x, y)]
        return [g is None for g in flow.autograd.grad(pair(*leaves)[0].sum(), leaves, allow_unused=True)]

    seen, arguments = [], [flow.randn(3), flow.randn(3)]
    try:
        trace(lambda *inputs: seen.append(found(*inputs)) or inputs[0], arguments)
        assert seen == [found(*arguments)] == [[False, True]]
    finally:
        del OPS["pair_of_squares"], OPS["pair_of_squares_grad"]


@pytest.mark.parametrize("needs", [False, True])
def test_several_results_are_a_list_as_those_of_a_primitive(needs):
    results = apply(OPS["adaptive_max_pool1d"], flow.randn(1, 2, 5).requires_grad_(needs), output_size=(2,))
    assert type(results) is list and [t.requires_grad for t in results] == [needs, False]


def test_hooks_see_the_gradient_of_the_whole():
    x = flow.randn(3, 4).requires_grad_()
    middle, seen = x * 2, []
    middle.register_hook(seen.append)
    out = F.layer_norm(middle, (4,)) + middle  # both gradients of `middle` arrive before its hook
    out.register_hook(lambda g: g * 3)
    out.sum().backward()
    assert len(seen) == 1 and flow.allclose(seen[0], flow.full((3, 4), 3.0), atol=1e-5)


def test_backward_twice():
    x = flow.randn(3, 4).requires_grad_()
    out = F.layer_norm(x, (4,)).square().sum()
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(GradError, match="backward a second time"):
        out.backward()


def test_a_write_to_an_input_is_refused_if_the_gradient_reads_it():
    x = flow.randn(3, 4).requires_grad_()
    middle = x * 2
    out, found = F.layer_norm(middle, (4,)).square().sum(), F.gelu(middle).sum()
    middle.mul_(2)
    with pytest.raises(GradError, match="backward needs . as it was, but it was changed in place"):
        flow.autograd.grad(found, x)
    with pytest.raises(GradError, match="backward needs x as it was, but it was changed in place"):
        flow.autograd.grad(out, x, create_graph=True)


def test_a_tensor_that_is_two_inputs_has_one_gradient():
    x = flow.randn(4).requires_grad_()
    found = flow.autograd.grad(F.layer_norm(x, (4,), x, x).pow(3).sum(), x)[0]
    a, b, c = [x.detach().requires_grad_() for _ in range(3)]
    wanted = flow.autograd.grad(F.layer_norm(a, (4,), b, c).pow(3).sum(), [a, b, c])
    assert flow.allclose(found, wanted[0] + wanted[1] + wanted[2], atol=1e-5)


def test_a_bias_may_be_written_before_backward():
    x, weight, bias = flow.randn(3, 4).requires_grad_(), flow.ones(4), flow.zeros(4)
    out = F.layer_norm(x, (4,), weight, bias).pow(3).sum()
    bias.add_(1)
    wanted = flow.autograd.grad(F.layer_norm(x, (4,)).pow(3).sum(), x)
    for create_graph in (True, False):
        assert bits(flow.autograd.grad(out, x, retain_graph=True, create_graph=create_graph)) == bits(wanted)


def test_strided_inputs():
    x = flow.randn(4, 3).t().requires_grad_()
    found = flow.autograd.grad(F.layer_norm(x, (4,)).pow(3).sum(), x)[0]
    y = x.detach().contiguous().requires_grad_()
    assert flow.allclose(found, flow.autograd.grad(F.layer_norm(y, (4,)).pow(3).sum(), y)[0], atol=1e-5)


def test_only_wanted_gradients_are_computed():
    norm = nn.LayerNorm(4)
    norm.weight.requires_grad_(False)
    out = norm(flow.randn(3, 4))
    out.sum().backward()
    assert norm.weight.grad is None and norm.bias.grad.tolist() == [3.0] * 4


def test_without_gradients_there_is_no_tape():
    with flow.no_grad():
        assert F.layer_norm(flow.randn(3, 4).requires_grad_(), (4,)).grad_fn is None


def test_the_tape_does_not_keep_the_result(kernels_of_numpy):
    out = F.layer_norm(flow.randn(3, 4).requires_grad_(), (4,))
    array, loss = weakref.ref(out.numpy().base if out.numpy().base is not None else out.numpy()), out.sum()
    del out
    assert array() is None
    loss.backward()


def test_nan_of_a_loss_begins_in_the_composite():
    x, norm = flow.ones(3, 4).requires_grad_(), nn.LayerNorm(4, eps=0.0)
    with pytest.warns(UserWarning, match="began in +layer_norm in LayerNorm, created at test_composites.py") as found:
        with np.errstate(invalid="ignore"):
            norm(x * 2).sum().backward()
    assert "input 0 float32[3, 4] from 2 to 2" in " ".join(" ".join(str(w.message) for w in found).split())


def test_checkpointing():
    x = flow.randn(3, 4).requires_grad_()
    function = lambda x: F.layer_norm(x, (4,)).pow(3).sum()
    wanted = flow.autograd.grad(function(x), x)
    assert bits(flow.autograd.grad(flow.utils.checkpoint.checkpoint(function, x, use_reentrant=False), x)) == bits(
        wanted
    )


def test_mistakes_name_the_values():
    with pytest.raises(flow.ShapeError, match="layer_norm: the weight has shape \\[3\\], normalized_shape is \\[4\\]"):
        F.layer_norm(flow.randn(2, 4), (4,), flow.ones(3))
    with pytest.raises(flow.ShapeError, match="cannot be split into 3 groups"):
        apply(OPS["group_norm"], flow.randn(2, 4, 5), 1, 0, groups=3, eps=1e-5)
    with pytest.raises(flow.ShapeError, match="normalized over its last axes, not over \\(0,\\)"):
        apply(OPS["layer_norm"], flow.randn(2, 4), 1, 0, axes=(0,), eps=1e-5)


@pytest.mark.parametrize("needs", [2, 5, 8, -1])
def test_mask_of_wanted_gradients_is_checked(needs):
    """A file may have any number there; inputs 1 and 2 are Python numbers here."""
    with pytest.raises(CallError, match="needs must be a mask of bits of 1 "):
        apply(OPS["layer_norm"].gradient, flow.ones(2, 4), flow.ones(2, 4), 1, 0, axes=(-1,), eps=1e-5, needs=needs)


def test_inputs_that_no_gradient_reads_are_not_kept():
    """Second derivatives are the same with any other elements."""
    x = flow.randn(1, 2, 4, 4).requires_grad_()
    doubled = x * 2
    array = weakref.ref(doubled.array)
    up = F.interpolate(doubled, scale_factor=2, mode="bilinear", align_corners=False)
    del doubled
    assert array() is None
    (first,) = flow.autograd.grad((up * up).sum(), x, create_graph=True)
    (second,) = flow.autograd.grad(first.sum(), x)
    y = x.detach().requires_grad_()
    again = F.interpolate(y * 2, scale_factor=2, mode="bilinear", align_corners=False)
    (wanted,) = flow.autograd.grad((again * again).sum(), y, create_graph=True)
    assert bits([first, second]) == bits([wanted, flow.autograd.grad(wanted.sum(), y)[0]])


def test_second_derivative_refuses_an_input_that_was_written():
    """The first one does not read the bias of a cell, which its saved activations contain."""
    cell = nn.LSTMCell(3, 2)
    loss = cell(flow.randn(4, 3))[0].sum()
    with flow.no_grad():
        cell.bias_ih.mul_(2)
    with pytest.raises(flow.GradError, match="lstm_cell: backward needs b_ih as it was"):
        flow.autograd.grad(loss, cell.weight_ih, create_graph=True)
    flow.autograd.grad(cell(flow.randn(4, 3))[0].sum(), cell.weight_ih)
