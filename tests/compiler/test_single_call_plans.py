"""Plans of one call: like the op's eager call, in their own arrays; and their error messages."""

import numpy as np
import pytest
from fusion_checks import plan_of

import minflow as flow
from minflow import nn
from minflow.compiler.executor import run
from minflow.core.host.float_warnings import silent

WEIGHT = flow.randn(7, 4)
X, Y = flow.randn(5, 4), flow.randn(5, 4)
ROWS = flow.tensor([1, 0, 6])


@pytest.mark.parametrize(
    "direct, program, inputs",
    [
        (True, lambda x: x + 1, (X,)),
        (True, lambda x: x + (1 << 60), (X,)),
        (True, lambda x: x / 3, (X,)),
        (True, lambda x: 2 - x, (X,)),
        (True, lambda x, y: x - y, (X, Y)),
        (True, lambda x: x > 0, (X,)),
        (True, lambda x: flow.maximum(x, 0.5), (X,)),
        (True, lambda x: x.sum(1), (X,)),
        (True, lambda x: x.sum(), (X,)),
        (True, lambda x: x * 2, (flow.tensor(3.0),)),
        (True, lambda x: flow.log(x), (X,)),
        (True, lambda x: WEIGHT * x, (X[:1],)),
        (True, lambda rows: nn.functional.embedding(rows, WEIGHT), (ROWS,)),
        (False, lambda x: x * x, (X,)),
        (False, lambda x: x.t() + 1, (X,)),
        (False, lambda x, y: y - x, (X, Y)),
        (False, lambda x: x + 1, (flow.randn(200, 100),)),
        (False, lambda x: (x + 1).exp(), (X,)),
        (False, lambda x: x.max(1), (X,)),
        (False, lambda x: (x + 1, x), (X,)),
        (False, lambda x, y: x + 1, (X, Y)),
    ],
)
def test_plan_of_one_call_has_the_bits_of_eager(direct, program, inputs):
    plan = plan_of(program, *inputs)
    assert (plan.direct is not None) is direct
    arrays, expected = [x.contiguous().numpy() for x in inputs], program(*inputs)
    expected = [x.contiguous().numpy() for x in (expected if isinstance(expected, list | tuple) else [expected])]
    twice = [run(plan, arrays) for _ in range(2)]
    for found in (*twice, run(plan, arrays, timed=True), run(plan, arrays, watch=lambda node, arrays: None)):
        assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [(a.dtype, a.shape, a.tobytes()) for a in expected]
        assert all(isinstance(a, np.ndarray) and a.flags.c_contiguous for a in found)
    held = [*arrays, WEIGHT.numpy()]
    assert not any(np.shares_memory(a, b) for a, other in zip(*twice) for b in (other, *held))


def test_error_names_the_line():
    plan = plan_of(lambda rows: nn.functional.embedding(rows, WEIGHT), ROWS)
    assert plan.direct is not None and plan.failed is None
    with pytest.raises(IndexError, match="7") as caught:
        run(plan, [np.array([0, 7, 1])])
    assert "test_single_call_plans.py" in str(caught.value.where) and plan.failed is plan.nodes[0]
    assert run(plan, [ROWS.numpy()])[0].tobytes() == WEIGHT.numpy()[ROWS.numpy()].tobytes() and not plan.busy


@pytest.mark.parametrize("program", [lambda x: x / 0, lambda x: (x * 1e30 * 1e300 - 5, x / 0)])
def test_floating_point_warnings_are_as_in_eager(program):
    zero = np.zeros(3, "f4")

    def heard():
        with pytest.raises(FloatingPointError):
            np.true_divide(zero, zero)

    with np.errstate(all="raise"):
        with silent(), silent():
            np.true_divide(zero, zero)
        found = run(plan_of(program, X), [X.numpy()])
        heard()
        with pytest.raises(KeyError), silent():
            raise KeyError
        heard()
    assert all(np.isinf(one).all() for one in found)
