"""Names of PyTorch with an underscore that public programs call."""

import math

import pytest

import minflow as flow
from minflow import MissingModuleError, MissingNameError, ShapeError, nn


def tensors(*starts):
    return [flow.arange(float(start), start + 3) for start in starts]


def test_functions_over_lists():
    a, b = tensors(1, 2), tensors(5, 6)
    assert [it.tolist() for it in flow._foreach_add(a, b, alpha=2)] == [[11, 14, 17], [14, 17, 20]]
    assert [it.tolist() for it in flow._foreach_mul(a, [2, 10])] == [[2, 4, 6], [20, 30, 40]]
    assert [it.tolist() for it in flow._foreach_maximum(a, 3)] == [[3, 3, 3], [3, 3, 4]]
    assert [it.item() for it in flow._foreach_norm(a, math.inf)] == [3, 4]
    assert flow._foreach_sub_(a, 1) is a and a[0].tolist() == [0, 1, 2]
    flow._foreach_addcdiv_(a, b, b, [2.0, 3.0])
    assert [it.tolist() for it in a] == [[2, 3, 4], [4, 5, 6]]
    for numbers in ((flow.tensor([0.0, 1.0]),), {"scalars": [0.0, 1.0]}):
        given, named = ((), numbers) if isinstance(numbers, dict) else (numbers, {})
        out = flow._foreach_addcmul([flow.ones(2)] * 2, [flow.ones(2)] * 2, [flow.ones(2)] * 2, *given, **named)
        assert [it.tolist() for it in out] == [[1, 1], [2, 2]]  # one number for each tensor, not for each column
    flow._foreach_lerp_(a, b, 0.5), flow._foreach_copy_(b, a), flow._foreach_zero_(a)
    assert b[0].tolist() == [3.5, 4.5, 5.5] and a[1].tolist() == [0, 0, 0] and flow._foreach_sqrt([]) == ()
    with pytest.raises(ShapeError, match=r"_foreach_add: the lists have the lengths \[1, 2\]"):
        flow._foreach_add(a, b[:1])
    with pytest.raises(MissingNameError, match="flow has no _foreach_bogus"):
        flow._foreach_bogus(a)


def test_private_functions():
    x = flow.arange(6.0).reshape(2, 3)
    assert flow._softmax(x, 1, False).equal(x.softmax(1)) and flow._log_softmax(x, 1, False).equal(x.log_softmax(1))
    assert flow._shape_as_tensor(x).equal(flow.tensor([2, 3]))
    layer = nn.utils.weight_norm(nn.Conv2d(2, 3, 2))
    assert flow._weight_norm(layer.weight_v, 2 * layer.weight_g, 0).allclose(2 * layer.weight)
    assert flow._weight_norm(x, flow.tensor(2.0), -1).norm().round(decimals=4) == 2  # along all axes
    assert flow._softmax(x.half(), 1, True).dtype is flow._log_softmax(x.half(), 1, True).dtype is flow.float32
    assert not flow._C._is_tracing() and flow._C._get_tracing_state() is None
    assert flow._C._jit_set_profiling_executor(False) is None
    flow._check(True)
    with pytest.raises(RuntimeError, match="too long"):
        flow._check(x.ndim > 2, lambda: "too long")


def test_settings_of_compilers_are_stored():
    from minflow._inductor import config

    config.coordinate_descent_tuning = flow._dynamo.config.suppress_errors = True
    config.triton.unique_kernel_names = True
    assert flow._dynamo.config is config and flow.compiler.config.coordinate_descent_tuning
    config.suppress_errors = False


def test_other_private_names_are_refused_with_what_to_use():
    with pytest.raises(MissingNameError, match="flow has no _grouped_mm, a private name of PyTorch") as caught:
        flow._grouped_mm
    assert "dir(flow)" in caught.value.hint
    with pytest.raises(MissingNameError) as caught:
        flow._C._jit_pass_inline
    assert "public names" in caught.value.hint
    with pytest.raises(MissingModuleError) as caught:
        from minflow._six import inf  # noqa: F401
    assert "math.inf" in caught.value.hint
