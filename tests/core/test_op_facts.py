"""Facts that an op's block leaves out: each has a reason here, so that a forgotten one is noticed.

Formulas: `test_scalar.py`. ONNX converters: `docs/onnx.md`, compared by `tests/onnx`. Oracles and exports:
`tests/test_registration.py`.
"""

import importlib

import numpy as np
import pytest

from minflow.compiler.passes.decomposition import parts_of
from minflow.core.base.errors import InternalError
from minflow.core.op import OPS, Op
from minflow.core.ops.examples import cases
from minflow.core.scalar import flops_per_element
from minflow.core.spec import spec_of

for name in ("update_adaptive", "update_moments"):  # optimizers import them when they are first used
    importlib.import_module(f"minflow.core.ops.{name}")

WITHOUT_FLOPS = {
    "counts comparisons, indices or bits": """nonzero one_hot median nanmedian mode_place argmax argmin any all
        searchsorted isin groups firsts bincount histc sort topk cummax cummin nms ravel_index frexp""",
    "only moves elements, some of them added": """index_put scatter scatter_add scatter_reduce max_pool2d_pick col2im
        complex conj""",
    "iterates until it converges, or in a library": """polygamma fft inverse solve solve_triangular pinv det cofactors
        slogdet matrix_exp cholesky qr eigh eig svd lu lu_permutation recurrence cumprod logcumsumexp ctc ctc_grad""",
    "draws random numbers": "uniform normal randint randperm bernoulli multinomial poisson binomial",
    "of a loss or an optimizer that no lesson times": """at_least pair_distances pair_distances_grad sgd_dampened
        adam_amsgrad adamax nadam radam lamb sparse_adam asgd rprop adagrad adadelta rmsprop rmsprop_centered
        rmsprop_momentum rmsprop_centered_momentum""",
}


def test_ops_without_flops_have_a_reason():
    without = {
        name
        for name, op in OPS.items()
        if op.__module__.startswith("minflow.core")  # not of another test
        and not op.composite  # the sum of its decomposition
        and op.macs is None
        and op.flops is None
        and not (flops_per_element(op) or op.elementwise or op.dtype_agnostic)
    }
    reasons = [name for names in WITHOUT_FLOPS.values() for name in names.split()]
    assert without == set(reasons) and len(reasons) == len(without)


def test_facts_have_known_values():
    assert {op.autocast for op in OPS.values()} == {None, "lower", "float32", "parts"}
    assert {op.domain for op in OPS.values()} == {"real", "holomorphic", "complex"}
    assert not [name for name, op in OPS.items() if not set(op.number_inputs) <= {x.lstrip("*") for x in op.inputs}]
    assert not [name for name, op in OPS.items() if not op.doc]


WITHOUT_AUTOCAST = {"bilinear"}  # runs in the dtype of its inputs, as in PyTorch on a CPU


def test_autocast_of_composite_ops():
    """One with a part that autocast runs in another dtype says what it does: autocast does not see the parts."""

    def parts(op):
        for example in cases(op):
            inputs = [spec_of(x) if isinstance(x, np.ndarray) else x for x in example.arrays()]
            yield from parts_of(op, inputs, example.attrs)

    silent = {op.name for op in OPS.values() if op.decompose and op.autocast is None}
    assert {name for name in silent if any(part.op.autocast for part in parts(OPS[name]))} == WITHOUT_AUTOCAST


def test_an_op_is_frozen():
    with pytest.raises(InternalError, match="relu: an op is frozen: version cannot be set"):
        OPS["relu"].version = 2
    with pytest.raises(InternalError, match="spiral: an op has no fact 'scaler'"):
        Op("spiral", ["x"], [], ["spiral"], None, scaler=None)
    assert OPS["relu"].version == 1 and "spiral" not in OPS
