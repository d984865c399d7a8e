"""Check every op against its definition, with its examples: one test per op, with all checks of all examples.

For each op in OPS: inferred spec = real spec; eager = an independent oracle (numpy, scipy); gradients and second
gradients against central differences; out= gives the same as fresh results; traced and executed = eager, bit for bit.
An op without examples, or without an oracle here, fails. At the end each gradient rule is made wrong, and the check
must notice.
"""

import math

import numpy as np
import pytest
from programs import planned

import minflow  # noqa: F401  (defines the ops; those of optimizers are imported when they are used)
from minflow.core.autograd import grad
from minflow.core.base.errors import TraceError
from minflow.core.dispatch import apply
from minflow.core.functionalize import contiguous
from minflow.core.functions.creation import from_numpy
from minflow.core.grad.replay import RECORDINGS
from minflow.core.infer import consult, data_dependent
from minflow.core.ir import NUMBERS
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401
from minflow.core.ops.examples import Maker, cases
from minflow.core.spec import float64, spec_of
from minflow.core.tensor import Tensor
from minflow.core.trace import trace
from tests.cases import Cases
from tests.core.oracles import FREE_GRADIENT, GLOBAL_OPS, IN_LINE, ORACLES, TOLERANCE

# only the engine calls them: test_inplace.py, test_tensor.py, test_graph.py
# Complex numbers have tests of their own: test_complex.py.
COMPLEX = {"complex", "conj", "real", "imag", "view_as_real", "view_as_complex", "fft"}
GRADIENTS = {name for name, op in OPS.items() if op.gradient_of}  # tested by the composite op
BY_DESIGN = {"unrecorded", "strided_look", "recompute", *COMPLEX, *GRADIENTS}
BY_DESIGN |= GLOBAL_OPS
NO_FORMULA = {"igamma", "igammac", "zeta"}  # for the derivative in their first input: backward is refused
NO_FRESH = {"cast"}


def tensors(arrays: list) -> list:
    """Inputs as an op takes them; a strided array becomes a view of a contiguous tensor, as in a program."""

    def made(x):
        if x.__class__ in NUMBERS:
            return x
        if not x.flags.c_contiguous:
            return view_of(x)
        return from_numpy(np.ascontiguousarray(x) if x.ndim else x.copy())

    return [made(x) for x in arrays]


def view_of(x: np.ndarray) -> Tensor:
    """A tensor with the layout of `strided`: axes permuted, every second column."""
    moved = np.moveaxis(x, -1, 0)
    base = np.zeros((2 * moved.shape[0], *moved.shape[1:]), x.dtype)
    base[::2] = moved
    t = from_numpy(base)[::2]
    return t.permute(*range(1, x.ndim), 0)


def many(results) -> list:
    return list(results) if isinstance(results, list | tuple) else [results]


def assert_close(got: np.ndarray, want, name: str) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape}, the oracle has {want.shape}"
    if got.dtype.kind in "fc":
        rtol = TOLERANCE.get(name) or {"f8": 1e-12, "c16": 1e-12, "f2": 2e-3}.get(got.dtype.str[1:], 2e-6)
        np.testing.assert_allclose(got, want.astype(got.dtype), rtol=rtol, atol=rtol, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, want)


def test_every_op_has_examples_a_description_and_an_oracle():
    assert not [name for name, op in OPS.items() if not op.examples and name not in BY_DESIGN]
    assert not [name for name, op in OPS.items() if not op.doc or "\n" in op.doc]
    assert not [name for name in OPS if name not in ORACLES and name not in BY_DESIGN]
    assert not [name for name in ORACLES if name not in OPS]


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.examples], ids=lambda op: op.name)
def test_op(op, monkeypatch):
    examples = [(example.arrays(), dict(example.attrs)) for example in cases(op)]
    with Cases() as case:
        for i, (arrays, attrs) in enumerate(examples):
            for check in (forward, out, traced, gradient, replayed, second_order):
                if check not in (gradient, replayed, second_order) or differentiable(op, arrays, attrs):
                    with case(f"{check.__name__} of example {i}"):
                        check(op, arrays, attrs)
        for k, field, rules in spoiled(op):
            with case(f"a wrong gradient of {op.inputs[k]} is noticed"), monkeypatch.context() as patch:
                patch.setitem(vars(op), field, rules)  # ops are frozen
                RECORDINGS.clear()
                assert notices(op, k, examples)
        RECORDINGS.clear()


def forward(op, arrays, attrs):
    inputs = tensors(arrays)
    results = many(apply(op, *inputs, **attrs))
    assert len(results) == len(op.outputs)
    for t in results:
        assert isinstance(t.array, np.ndarray) and spec_of(t.array) is t.spec
    specs = [x.__class__ if x.__class__ in NUMBERS else x.spec for x in inputs]
    if op.infer is not data_dependent:
        dtype, said = consult(op, tuple(specs), attrs)
        assert dtype is not None or many(said) == [t.spec for t in results]
    if not op.is_view:
        assert all(t.array.flags.c_contiguous for t in results)
    wanted = ORACLES[op.name]
    if wanted is not None:
        with np.errstate(all="ignore"):
            wanted = wanted(*arrays, **attrs)
        for t, want in zip(results, wanted if op.many else [wanted]):
            assert_close(t.array, want, op.name)


def out(op, arrays, attrs):
    """A result in a given array equals a fresh one, even if it overwrites an input, if the op allows that."""
    results = many(apply(op, *tensors(arrays), **attrs))
    if not op.takes_out:
        assert op.is_view or op.infer is data_dependent, f"{op.name} takes no out="
        return
    mixed = any(a.__class__ not in NUMBERS and a.dtype != results[0].spec.np for a in arrays)
    if op.elementwise and op.elementwise != "bool" and mixed:
        return  # dispatch casts first

    def into(outs, arrays):
        CALLS[op](*arrays, **attrs, out=outs if op.many else outs[0])
        return outs

    once = into([np.full(t.spec.shape, 7, t.spec.np) for t in results], arrays)
    for got, t in zip(once, results):
        np.testing.assert_array_equal(
            got.view("uint8") if got.ndim else got, t.array.view("uint8") if got.ndim else t.array
        )
    if op.name not in NO_FRESH:
        for got, t in zip(map(np.asarray, many(CALLS[op](*arrays, **attrs))), results):
            assert got.shape == t.spec.shape and got.astype(t.spec.np).tobytes() == t.array.tobytes()
    if op.alias_safe and not op.many:
        for k, x in enumerate(arrays):
            if x.__class__ not in NUMBERS and spec_of(x) is results[0].spec and x.flags.c_contiguous:
                copies = [a if a.__class__ in NUMBERS else a.copy() for a in arrays]
                into([copies[k].reshape(copies[k].shape)], copies)  # another array object over the same memory
                assert copies[k].tobytes() == results[0].array.tobytes(), f"out= on input {k}"


def traced(op, arrays, attrs):
    eager = [np.array(t.array, order="C") for t in many(apply(op, *tensors(arrays), **attrs))]
    given = [x for x in tensors(arrays) if isinstance(x, Tensor)]
    if op.infer is data_dependent:
        with pytest.raises(TraceError, match="where"):
            trace(lambda *inputs: apply(op, *inputs, **attrs), given)
        return

    def program(*inputs):
        left = iter(inputs)
        results = apply(op, *[x if x.__class__ in NUMBERS else next(left) for x in arrays], **attrs)
        return [contiguous(t) for t in many(results)]

    graph, kept = trace(program, given)
    for got, want in zip(planned(graph, kept, [x.array for x in given]), eager):
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


# ---- gradients ---------------------------------------------------------------------------------------------------


def differentiable(op, arrays, attrs) -> bool:
    """Float64 examples of ops with gradient rules."""
    if attrs.get("dtype", float64) is not float64:  # a rounding cast has no useful differences
        return False
    floats = [a for a in arrays if a.__class__ not in NUMBERS and a.dtype.kind == "f"]
    return bool(op.differentiable) and bool(floats) and all(a.dtype == "float64" for a in floats)


def wanting(op, arrays) -> list[int]:
    floating = [a.__class__ not in NUMBERS and a.dtype.kind == "f" for a in arrays]
    return [
        k
        for k, is_float in enumerate(floating)
        if is_float and op.differentiable >> k & 1 and (k or op.name not in NO_FORMULA)
    ]


def outputs(op, inputs, attrs) -> list:
    """Results whose gradient is checked."""
    free = FREE_GRADIENT.get(op.name, ())
    return [t for k, t in enumerate(many(apply(op, *inputs, **attrs))) if t.spec.floating and k not in free]


def weight(k: int, shape) -> np.ndarray:
    return np.random.default_rng(k).uniform(0.5, 1.5, shape)


def along(seed: int, wanted: list[int], arrays: list) -> dict[int, np.ndarray]:
    """A random direction for each input."""
    rng = np.random.default_rng(seed)
    return {k: rng.uniform(-1, 1, arrays[k].shape) for k in wanted}


def slope(function, arrays, wanted, directions, step: float) -> float:
    """Central difference of a scalar function along one direction."""
    ends = []
    for sign in (1, -1):
        moved = [np.asarray(a + sign * step * directions[k]) if k in wanted else a for k, a in enumerate(arrays)]
        ends.append(function(moved))
    return (ends[0] - ends[1]) / (2 * step)


def in_line(op, arrays: list) -> list:
    return IN_LINE[op.name](*arrays) if op.name in IN_LINE else arrays


def gradients(op, arrays, attrs, wanted, create_graph: bool = False):
    arrays = in_line(op, arrays)
    inputs = tensors(arrays)
    for k in wanted:
        inputs[k] = from_numpy(np.array(arrays[k], order="C"))
        inputs[k].requires_grad = True
    results = outputs(op, inputs, attrs)
    seeds = [from_numpy(weight(k, t.spec.shape)) for k, t in enumerate(results)]
    leaves = [inputs[k] for k in wanted]
    return leaves, grad(results, leaves, seeds, create_graph=create_graph, allow_unused=True)


def first_order(op, arrays, attrs):
    """(input, analytic slope along a random direction, numeric slope) for each input."""
    wanted = wanting(op, arrays)
    directions = along(5, wanted, arrays)

    def value(moved):
        results = outputs(op, tensors(in_line(op, moved)), attrs)
        return sum([float((t.array * weight(k, t.spec.shape)).sum()) for k, t in enumerate(results)])

    _, grads = gradients(op, arrays, attrs, wanted)
    for k, g in zip(wanted, grads):
        assert g is not None and g.spec.shape == arrays[k].shape and g.spec.np == arrays[k].dtype
        analytic, numeric = float((g.array * directions[k]).sum()), slope(value, arrays, [k], directions, 1e-6)
        yield op.inputs[0 if op.variadic else k], analytic, numeric


def agree(analytic: float, numeric: float) -> bool:
    return math.isclose(analytic, numeric, rel_tol=1e-5, abs_tol=1e-7)


def gradient(op, arrays, attrs):
    for name, got, want in first_order(op, arrays, attrs):
        assert agree(got, want), f"{op.name}: gradient of {name} is {got}, differences give {want}"


def replayed(op, arrays, attrs):
    """Gradients by recorded kernels have the bits and strides of those by rules, also on other arrays."""
    wanted = wanting(op, arrays)
    other = [np.array(np.flip(a)) if k in wanted else a for k, a in enumerate(arrays)]
    RECORDINGS.clear()
    by_rules, recorded, by_replay = [gradients(op, x, attrs, wanted)[1] for x in (arrays, arrays, other)]
    RECORDINGS.clear()
    for found, expected in ((recorded, by_rules), (by_replay, gradients(op, other, attrs, wanted)[1])):
        for g, want in zip(found, expected):
            assert g.spec is want.spec and g.array.tobytes() == want.array.tobytes()
            assert g.array.strides == want.array.strides and (g._alias is None) == (want._alias is None)


def second_order(op, arrays, attrs):
    if not op.second_order:
        return
    wanted = wanting(op, arrays)
    directions, probes = along(6, wanted, arrays), along(7, wanted, arrays)

    def first(moved):
        _, grads = gradients(op, moved, attrs, wanted)
        return float(sum([(g.array * probes[k]).sum() for k, g in zip(wanted, grads)]))

    leaves, grads = gradients(op, arrays, attrs, wanted, create_graph=True)
    moving = [(g, k) for k, g in zip(wanted, grads) if g._needs]
    got = 0.0
    if moving:
        seconds = grad([g for g, _ in moving], leaves, [from_numpy(probes[k]) for _, k in moving], allow_unused=True)
        got = float(sum([(s.array * directions[k]).sum() for k, s in zip(wanted, seconds) if s is not None]))
    want = slope(first, arrays, wanted, directions, 1e-5)
    assert math.isclose(got, want, rel_tol=1e-3, abs_tol=1e-5), (
        f"{op.name}: second order {got}, differences give {want}"
    )


# ---- wrong rules -------------------------------------------------------------------------------------------------


def wrong_sign(g):
    """The opposite sign; 1 in place of a gradient that is 0."""
    return -g if bool((g.array != 0).any()) else g + 1


def spoiled(op):
    """(input, function that corrupts its gradient rule) for each input with one; a rule may serve several inputs."""
    for k, (rule, sources) in op.rules.items():
        if k or op.name not in NO_FORMULA:
            yield k, "rules", {**op.rules, k: (lambda *args, rule=rule: wrong_sign(rule(*args)), sources)}
    for n, (places, mask, rule, sources) in enumerate(op.joint_rules):
        if rule.__qualname__.startswith("no_second_gradient."):  # it raises: tests/nn/test_rnn.py
            continue
        for j, k in enumerate(places):

            def wrong(*args, rule=rule, j=j):
                return tuple([wrong_sign(g) if i == j and g is not None else g for i, g in enumerate(rule(*args))])

            yield k, "joint_rules", [*op.joint_rules[:n], (places, mask, wrong, sources), *op.joint_rules[n + 1 :]]


def notices(op, k: int, examples: list) -> bool:
    """True if the gradient of input k differs from finite differences in an example."""
    return any(
        name == op.inputs[k] and not agree(got, want)
        for arrays, attrs in examples
        if differentiable(op, arrays, attrs)
        for name, got, want in first_order(op, arrays, attrs)
    )


def test_example_factories_are_deterministic():
    for op in OPS.values():
        for found in cases(op):
            for a, b in zip(found.arrays(), found.arrays()):
                assert np.array_equal(a, b)
    assert isinstance(Maker((2,)).make(1), np.ndarray)
