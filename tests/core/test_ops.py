"""Every op against what it promises, generated from its examples.

For each op in OPS: inferred spec = real spec; eager = an independent oracle (numpy, scipy); gradients and theirs
against central differences; out= and fresh results alike; traced and executed = eager, bit for bit. An op without
examples, or without an oracle here, fails. At the end each gradient rule is turned wrong, and the check must notice.
"""

import math

import numpy as np
import pytest

import minflow  # noqa: F401  (defines the ops; those of optimizers are imported when they are used)
from minflow.core.infer import consult, data_dependent
from minflow.core.autograd import grad
from minflow.core.door import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.base.errors import TraceError
from minflow.core.ir import NUMBERS
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401
from minflow.core.ops.examples import Maker, cases
from minflow.core.rebind import contiguous
from minflow.core.spec import float64, spec_of
from minflow.core.tensor import Tensor
from minflow.core.trace import trace

from programs import planned
from tests.core.oracles import FREE_GRADIENT, IN_LINE, ORACLES, TOLERANCE

CASES = [pytest.param(op, i, id=f"{op.name}-{i}") for op in OPS.values() for i in range(len(op.examples))]
# only the engine calls them: test_inplace.py, test_tensor.py, test_graph.py
# Complex numbers have tests of their own: test_complex.py.
COMPLEX = {"complex", "conj", "real", "imag", "view_as_real", "view_as_complex", "fft"}
BY_DESIGN = {"unrecorded", "strided_look", "recompute", *COMPLEX}
NO_FORMULA = {"igamma", "igammac", "zeta"}  # for the slope in their first input: backward is refused


def example(op, i: int):
    found = cases(op)[i]
    return found.arrays(), dict(found.attrs)


def tensors(arrays: list, grad: bool = False) -> list:
    """Inputs as an op takes them; a strided array becomes a view of a contiguous tensor, as in a program."""
    made = []
    for x in arrays:
        if x.__class__ in NUMBERS:
            made.append(x)
            continue
        t = from_numpy(np.ascontiguousarray(x) if x.ndim else x.copy()) if x.flags.c_contiguous else view_of(x)
        if grad and t.spec.floating:
            t.requires_grad = True
        made.append(t)
    return made


def view_of(x: np.ndarray) -> Tensor:
    """A tensor with the layout that `strided` makes: axes moved, every other column."""
    moved = np.moveaxis(x, -1, 0)
    base = np.zeros((2 * moved.shape[0], *moved.shape[1:]), x.dtype)
    base[::2] = moved
    t = from_numpy(base)[::2]
    return t.permute(*range(1, x.ndim), 0)


def many(results) -> list:
    return list(results) if isinstance(results, list | tuple) else [results]


def fresh(op, arrays, attrs) -> list[np.ndarray]:
    return [np.asarray(a) for a in many(op.kernel(*arrays, **attrs))]


def assert_close(got: np.ndarray, want, name: str) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape}, the oracle has {want.shape}"
    if got.dtype.kind in "fc":
        rtol = TOLERANCE.get(name) or {"f8": 1e-12, "c16": 1e-12, "f2": 2e-3}.get(got.dtype.str[1:], 2e-6)
        np.testing.assert_allclose(got, want.astype(got.dtype), rtol=rtol, atol=rtol, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, want)


def test_every_op_has_examples_a_line_of_text_and_an_oracle():
    assert not [name for name, op in OPS.items() if not op.examples and name not in BY_DESIGN]
    assert not [name for name, op in OPS.items() if not op.doc or "\n" in op.doc]
    assert not [name for name in OPS if name not in ORACLES and name not in BY_DESIGN]
    assert not [name for name in ORACLES if name not in OPS]


@pytest.mark.parametrize("op, i", CASES)
def test_forward(op, i):
    arrays, attrs = example(op, i)
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


@pytest.mark.parametrize("op, i", CASES)
def test_out(op, i):
    """The result in a given array is that of a fresh one, also where it overwrites an input, if the op says it may."""
    arrays, attrs = example(op, i)
    results = many(apply(op, *tensors(arrays), **attrs))
    if not op.takes_out:
        assert op.is_view or op.infer is data_dependent, f"{op.name} takes no out="
        return
    if (
        op.elementwise
        and any([a.__class__ not in NUMBERS and a.dtype != results[0].spec.np for a in arrays])
        and op.elementwise != "bool"
    ):
        return  # the door casts first

    def into(outs, arrays):
        op.kernel(*arrays, **attrs, out=outs if op.many else outs[0])
        return outs

    once = into([np.full(t.spec.shape, 7, t.spec.np) for t in results], arrays)
    for got, t in zip(once, results):
        np.testing.assert_array_equal(
            got.view("uint8") if got.ndim else got, t.array.view("uint8") if got.ndim else t.array
        )
    if op.name not in NO_FRESH:
        for got, t in zip(fresh(op, arrays, attrs), results):
            assert got.shape == t.spec.shape and got.astype(t.spec.np).tobytes() == t.array.tobytes()
    if op.alias_safe and not op.many:
        for k, x in enumerate(arrays):
            if x.__class__ not in NUMBERS and spec_of(x) is results[0].spec and x.flags.c_contiguous:
                copies = [a if a.__class__ in NUMBERS else a.copy() for a in arrays]
                into([copies[k].reshape(copies[k].shape)], copies)  # another array object on the same memory
                assert copies[k].tobytes() == results[0].array.tobytes(), f"out= on input {k}"


NO_FRESH: set[str] = {"cast"}


@pytest.mark.parametrize("op, i", CASES)
def test_traced(op, i):
    arrays, attrs = example(op, i)
    eager = [np.array(t.array, order="C") for t in many(apply(op, *tensors(arrays), **attrs))]
    given = [x for x in tensors(arrays) if isinstance(x, Tensor)]
    if op.infer is data_dependent:
        with pytest.raises(TraceError, match="where"):
            trace(lambda *inputs: apply(op, *inputs, **attrs), given)
        return

    def program(*inputs):
        left = iter(inputs)
        return [
            contiguous(t)
            for t in many(apply(op, *[x if x.__class__ in NUMBERS else next(left) for x in arrays], **attrs))
        ]

    graph, kept = trace(program, given)
    for got, want in zip(planned(graph, kept, [x.array for x in given]), eager):
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


# ---- gradients ---------------------------------------------------------------------------------------------------


def differentiable(op, i) -> bool:
    """Float64 examples of ops with gradient rules."""
    arrays, attrs = example(op, i)
    if attrs.get("dtype", float64) is not float64:  # a cast that rounds has no differences to look at
        return False
    floats = [a for a in arrays if a.__class__ not in NUMBERS and a.dtype.kind == "f"]
    return bool(op.differentiable) and bool(floats) and all(a.dtype == "float64" for a in floats)


GRADIENTS = [p for p in CASES if differentiable(*p.values)]


def wanting(op, arrays) -> list[int]:
    floating = [a.__class__ not in NUMBERS and a.dtype.kind == "f" for a in arrays]
    return [k for k, is_float in enumerate(floating) if is_float and op.differentiable >> k & 1
            and (k or op.name not in NO_FORMULA)]


def outputs(op, inputs, attrs) -> list:
    """The results whose gradient is looked at."""
    free = FREE_GRADIENT.get(op.name, ())
    return [t for k, t in enumerate(many(apply(op, *inputs, **attrs))) if t.spec.floating and k not in free]


def weight(k: int, shape) -> np.ndarray:
    return np.random.default_rng(k).uniform(0.5, 1.5, shape)


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


def first_order(op, i):
    """(analytic, numeric) slope along a random direction, once for each input and once for all together."""
    arrays, attrs = example(op, i)
    wanted = wanting(op, arrays)
    rng = np.random.default_rng(5)
    directions = {k: rng.uniform(-1, 1, arrays[k].shape) for k in wanted}

    def value(moved):
        return sum(
            [
                float((t.array * weight(k, t.spec.shape)).sum())
                for k, t in enumerate(outputs(op, tensors(in_line(op, moved)), attrs))
            ]
        )

    _, grads = gradients(op, arrays, attrs, wanted)
    for k, g in zip(wanted, grads):
        assert g is not None and g.spec.shape == arrays[k].shape and g.spec.np == arrays[k].dtype
        yield (
            op.inputs[0 if op.variadic else k],
            float((g.array * directions[k]).sum()),
            slope(value, arrays, [k], directions, 1e-6),
        )


@pytest.mark.parametrize("op, i", GRADIENTS)
def test_gradient(op, i):
    for name, got, want in first_order(op, i):
        assert math.isclose(got, want, rel_tol=1e-5, abs_tol=1e-7), (
            f"{op.name}: gradient of {name} is {got}, differences give {want}"
        )


@pytest.mark.parametrize("op, i", [p for p in GRADIENTS if p.values[0].second_order])
def test_second_order(op, i):
    arrays, attrs = example(op, i)
    wanted = wanting(op, arrays)
    rng = np.random.default_rng(6)
    directions = {k: rng.uniform(-1, 1, arrays[k].shape) for k in wanted}
    probes = {k: rng.uniform(-1, 1, arrays[k].shape) for k in wanted}

    def first(moved):
        _, grads = gradients(op, moved, attrs, wanted)
        return float(sum([(g.array * probes[k]).sum() for k, g in zip(wanted, grads)]))

    leaves, grads = gradients(op, arrays, attrs, wanted, create_graph=True)
    moving = [(g, k) for k, g in zip(wanted, grads) if g.needs]
    got = 0.0
    if moving:
        seconds = grad([g for g, _ in moving], leaves, [from_numpy(probes[k]) for _, k in moving], allow_unused=True)
        got = float(sum([(s.array * directions[k]).sum() for k, s in zip(wanted, seconds) if s is not None]))
    want = slope(first, arrays, wanted, directions, 1e-5)
    assert math.isclose(got, want, rel_tol=1e-3, abs_tol=1e-5), (
        f"{op.name}: second order {got}, differences give {want}"
    )


def wrong_sign(g):
    return -g if bool((g.array != 0).any()) else g + 1


def spoiled(op):
    """(input, how to spoil its gradient rule) for each input with one; a rule may serve several inputs."""
    for k, (rule, asks) in op.rules.items():
        yield k, "rules", {**op.rules, k: (lambda *args, rule=rule: wrong_sign(rule(*args)), asks)}
    for n, (places, mask, rule, asks) in enumerate(op.groups):
        if rule.__qualname__.startswith("refused."):  # it raises: tests/nn/test_rnn.py
            continue
        for j, k in enumerate(places):

            def wrong(*args, rule=rule, j=j):
                return tuple([wrong_sign(g) if i == j and g is not None else g for i, g in enumerate(rule(*args))])

            yield k, "groups", [*op.groups[:n], (places, mask, wrong, asks), *op.groups[n + 1 :]]


def test_a_wrong_sign_in_any_gradient_rule_is_noticed(monkeypatch):
    """Each rule in turn gets the wrong sign (one that always says 0: a 1 too many). The check above must fail."""
    unnoticed = []
    for op in [op for op in OPS.values() if op.name not in BY_DESIGN]:
        indices = [p.values[1] for p in GRADIENTS if p.values[0] is op]
        for k, field, rules in spoiled(op):
            with monkeypatch.context() as patch:
                patch.setattr(op, field, rules)
                found = [(got, want) for i in indices for name, got, want in first_order(op, i) if name == op.inputs[k]]
            if k == 0 and op.name in NO_FORMULA:
                continue
            if all(math.isclose(got, want, rel_tol=1e-5, abs_tol=1e-7) for got, want in found):
                unnoticed.append(f"{op.name}: {op.inputs[k]}")
    assert not unnoticed


def test_makers_repeat_themselves():
    for op in OPS.values():
        for found in cases(op):
            for a, b in zip(found.arrays(), found.arrays()):
                assert np.array_equal(a, b)
    assert isinstance(Maker((2,)).make(1), np.ndarray)
