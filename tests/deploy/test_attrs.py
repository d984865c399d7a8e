"""Attrs of operations as data and back; hostile ones are refused by the op's rule, or run safely."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.compiler.dynamic_shapes.derived_sizes import SizeFormula, SizeRatio
from minflow.core.base.errors import MinflowError
from minflow.core.infer import consult
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.core.ops import update_adaptive as update_adaptive  # read at the first optimizer of these
from minflow.core.ops.examples import cases
from minflow.core.ops.shape import getitem
from minflow.core.spec import Device, Spec, bfloat16, float32, float64, int64
from minflow.deploy.attrs import (
    ATTR_KINDS,
    NAMED_KINDS,
    NOT_STORED,
    check_inputs,
    decode_attrs,
    encode,
    encode_attrs,
    index,
    integer,
    kind_of,
    number,
    plain_value,
    real,
    resolve_sizes,
    storable,
)
from minflow.deploy.checks import Malformed

TOP = Path(__file__).parents[2]
STORED = [op for op in OPS.values() if storable(op)]


def again(op, attrs):
    """Round-trip through the text of a file."""
    return decode_attrs(op, json.loads(json.dumps(encode_attrs(op, attrs))))


def written(value):
    """Representation with the types of all numbers, and NaN equal to itself."""
    if isinstance(value, tuple):
        return [written(x) for x in value]
    if isinstance(value, dict):
        return {name: written(x) for name, x in value.items()}
    return type(value).__name__, repr(value)


def test_every_attr_has_a_kind():
    assert [
        (op.name, name)
        for op in STORED
        for name in op.attrs
        if name not in NOT_STORED and not callable(kind_of(op, name))
    ] == []
    used = {name for op in STORED for name in op.attrs}
    assert set(ATTR_KINDS) - used <= {"strides"} | {name for op in OPS.values() for name in op.attrs}
    assert [
        (op, name) for op in STORED for name, kind in op.attr_kinds.items() if {name, kind} - {*op.attrs, *NAMED_KINDS}
    ] == []


@pytest.mark.parametrize("op", [op for op in STORED if op.attrs], ids=str)
def test_examples_round_trip(op):
    for case in cases(op):
        assert written(again(op, case.attrs)) == written(case.attrs)


@pytest.mark.parametrize("value", [
    0, -3, 2**62, True, None, 0.5, -0.0, 1e-320, math.nan, math.inf, -math.inf, 1j, complex(math.nan, -math.inf), "",
    "a\nb", (), (1, (2.0, ("x", None))),
], ids=repr)  # fmt: skip
def test_plain_values_of_custom_ops(value):
    data = json.loads(json.dumps(encode(value), allow_nan=False))
    assert written(plain_value(data, "attrs")) == written(value)


def test_attrs_of_a_custom_op():
    @flow.library.custom_op("attrs_shift(x; by, how)")
    def shift(xp, x, by, how):
        return x + by[0]

    assert again(shift, {"by": (1.5, 2), "how": "up"}) == {"by": (1.5, 2), "how": "up"}
    for wrong in (
        {"by": [1], "how": 1},
        {"by": (float32,), "how": 1},
        {"by": {}, "how": 1},
        {"by": object(), "how": 1},
        {"by": Ellipsis, "how": 1},
    ):
        with pytest.raises(TypeError):
            encode_attrs(shift, wrong)
    del OPS["attrs_shift"]


def test_numpy_scalars_and_lists_are_written_as_python_values():
    assert again(OPS["reshape"], {"shape": [np.int64(3), 4]}) == {"shape": (3, 4)}
    assert written(again(OPS["sum"], {"axis": (0,), "keepdims": np.bool_(True)}))["keepdims"] == ("bool", "True")


def test_attrs_that_depend_on_dynamic_axes():
    eight = SizeFormula(((8, ("batch",)), (3, ())))
    data = encode_attrs(OPS["reshape"], {"shape": (eight, 4)})
    assert data == {"shape": [{"follows": [[8, ["batch"]], [3, []]]}, 4]}
    assert resolve_sizes(decode_attrs(OPS["reshape"], data), {"batch": 2}) == {"shape": (19, 4)}
    path = ((getitem, {"index": ((0, eight, 1), Ellipsis)}),)
    assert resolve_sizes(again(OPS["view_write"], {"path": path}), {"batch": 1}) == {
        "path": ((getitem, {"index": ((0, 11, 1), Ellipsis)}),)
    }
    half = SizeRatio(0.5, eight, SizeFormula(((1, ("batch",)),)))
    assert again(OPS["var"], {"axis": None, "keepdims": False, "correction": half})["correction"] == half
    assert resolve_sizes(real(encode(half), "attrs"), {"batch": 1}) == 5.5
    with pytest.raises(Malformed):
        resolve_sizes(eight, {"batch": 2**60})


FOLLOWS = {"follows": [[1, ["a"]]]}
REFUSED = [
    ("sum", {"axis": [0], "keepdims": 1}), ("sum", {"axis": [0]}), ("sum", {"axis": [0], "keepdims": True, "x": 1}),
    ("sum", {"axis": [True], "keepdims": True}), ("sum", {"axis": 0, "keepdims": True}),
    ("sum", {"axis": [1.0], "keepdims": True}), ("sum", {"axis": [2**62 + 1], "keepdims": True}), ("sum", [1, 2]),
    ("cumsum", {"axis": None}), ("cumsum", {"axis": [0]}), ("cumsum", {"axis": -(2**63)}), ("cumsum", {"axis": {}}),
    ("reshape", {"shape": [-1]}), ("reshape", {"shape": [1] * 65}), ("reshape", {"shape": "3"}),
    ("reshape", {"shape": [[1]]}), ("reshape", {"shape": [{"follows": []}]}),
    ("reshape", {"shape": [{"follows": [[1, ["a"], 2]]}]}), ("reshape", {"shape": [{"follows": [[1.0, ["a"]]]}]}),
    ("reshape", {"shape": [FOLLOWS | {"more": 1}]}), ("reshape", {"shape": [{"follows": [[1, [""]]]}]}),
    ("cast", {"dtype": "float31"}), ("cast", {"dtype": None}),
    ("full", {"shape": [], "value": "1", "dtype": "float32"}),
    ("full", {"shape": [], "value": {"complex": [1, 2]}, "dtype": "float32"}),
    ("full", {"shape": [], "value": {"complex": [FOLLOWS, 2.0]}, "dtype": "float32"}),
    ("full", {"shape": [], "value": {"float": "1"}, "dtype": "float32"}),
    ("conv2d", {"stride": [1], "padding": [0, 0], "dilation": [1, 1], "groups": 1}),
    ("conv2d", {"stride": [1, 1], "padding": [0, -1], "dilation": [1, 1], "groups": 1}),
    ("getitem", {"index": [".."]}), ("getitem", {"index": ["...", "..."]}), ("getitem", {"index": [[1, 2]]}),
    ("getitem", {"index": [[1, 2, 0]]}), ("getitem", {"index": [[1, 2, True]]}), ("getitem", {"index": 1}),
    ("view_write", {"path": [["add", {}]]}), ("view_write", {"path": [["getitem", {}]]}),
    ("view_write", {"path": [["strided_look", {"shape": [9], "strides": [8]}]]}),
    ("view_write", {"path": [["view_write", {"path": []}]]}), ("view_write", {"path": [["getitem"]]}),
    ("strided_look", {"shape": [9], "strides": [8]}), ("sgd", {"weight_decay": 0.0, "maximize": False}),
    ("nonzero", {}), ("nll", {"ignore_index": 1, "reduction": "most"}),
    ("nll", {"ignore_index": "1", "reduction": "sum"}),
    ("full", {"shape": [2], "value": 1, "dtype": "float32", "device": "cpu"}),
    ("take", {"axis": 0, "by": 3}), ("take", {"axis": 0, "by": "x" * 256}), ("take", {"axis": 0, "by": "a\x1b[2J"}),
    ("dropout", {"p": "0.5", "offset": 0}), ("dropout", {"p": True, "offset": 0}),
    ("dropout", {"p": {"ratio": [{"follows": [[1, []]]}, FOLLOWS, FOLLOWS]}, "offset": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "data"), REFUSED, ids=lambda x: str(x)[:60])
def test_data_of_the_wrong_kind_is_refused(op, data):
    with pytest.raises(Malformed):
        decode_attrs(OPS[op], data)


def test_a_file_holds_no_device():
    attrs = {"shape": (2,), "value": 1, "dtype": float32}
    assert again(OPS["full"], attrs) == attrs
    assert again(OPS["full"], attrs | {"device": Device("cuda")}) == attrs


def test_deep_and_long_values_are_refused():
    deep = 1
    for _ in range(9):
        deep = [deep]
    for kind, data in (
        (plain_value, deep),
        (plain_value, {"complex": [1.0]}),
        (plain_value, {"a": 1}),
        (index, [None] * 200),
        (integer, 1.0),
        (integer, True),
        (number, [1]),
        (number, None),
        (real, False),
        (real, 1j),
    ):
        with pytest.raises(Malformed):
            kind(data, "attrs")


@pytest.mark.parametrize(("op", "inputs"), [
    ("add", [1]), ("add", [1, 2.0]), ("add", [Spec((2,), float32)] * 3), ("cat", []), ("full", [1]),
    ("matmul", [Spec((2, 2), float32), 1.0]), ("index_put", [1, Spec((2,), int64), 1.0]),
    ("add", [Spec((2,), int64), 2**70]), ("scatter", [Spec((2,), float32), Spec((2,), int64), 1j]), ("cat", [1, 2]),
], ids=lambda x: str(x)[:50])  # fmt: skip
def test_wrong_inputs_are_refused(op, inputs):
    with pytest.raises((Malformed, MinflowError)):
        check_inputs(OPS[op], inputs)


# Attrs of the right kinds that match no input, or need unbounded memory or time: rules once accepted them.
F, I = (lambda *shape: Spec(shape, float64)), (lambda *shape: Spec(shape, int64))
WINDOW = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1))
LSTM = [F(4, 2, 3), F(2, 2), F(2, 2), F(8, 3), F(8, 2), F(8), F(8)]
HOLES = [
    ("reshape", [F(12)], dict(shape=(-3, -4))), ("expand", [F(1)], dict(shape=(-5,))),
    ("full", [], dict(shape=(0, 2**62), value=0, dtype=float32)), ("getitem", [F(2)], dict(index=(None,) * 70)),
    ("sum", [F(3, 4)], dict(axis=(-1,), keepdims=True)), ("sum", [F(3, 4)], dict(axis=(1, 0), keepdims=True)),
    ("all", [F(3)], dict(axis=(0, 0), keepdims=False)), ("cat", [F(2, 3), F(2, 3)], dict(dim=-1)),
    ("cat", [F(2), Spec((2,), float32)], dict(dim=0)), ("sum_to", [F(3, 4)], dict(shape=(2, 4))),
    ("view_write", [F(3), F(2)], dict(path=((OPS["as_strided"], dict(size=(2,), stride=(1,), offset=9)),))),
    ("view_write", [F(3), F(3)], dict(path=((OPS["exp"], {}),))), ("view_write", [F(3), F(4)], dict(path=())),
    ("view_write", [F(3), I(3)], dict(path=())), ("unrecorded", [F(3), F(4)], {}),
    ("recurrence", [F(3), F(4)], dict(axis=0)),
    ("as_strided", [F(3)], dict(size=(2,), stride=(3,), offset=0)), ("flip", [F(3)], dict(axes=(1,))),
    ("windows", [F(3)], dict(dim=0, size=4, step=1)), ("windows", [F(3)], dict(dim=0, size=2, step=0)),
    ("pad", [F(3)], dict(widths=(), value=0)), ("pad", [F(3)], dict(widths=((1, -1),), value=0)),
    ("roll", [F(3)], dict(shifts=(1, 2), axes=(0,))), ("roll", [F(3)], dict(shifts=(1,), axes=(2**62,))),
    ("ravel_index", [I(3)], dict(shape=(2, 2))), ("ravel_index", [I(3), I(3)], dict(shape=(2**40, 2**40))),
    ("ravel_index", [I(3), float], dict(shape=(2, 2))), ("histc", [F(3)], dict(bins=0, low=0, high=1)),
    ("conv2d", [F(1, 1, 4, 4), Spec((1, 1, 1, 1), float32)], dict(WINDOW, groups=1)),
    ("conv2d", [F(1, 1, 2, 2), F(1, 1, 1, 1)], dict(WINDOW, groups=1, stride=(2**14,) * 2, padding=(2**13,) * 2)),
    ("conv2d_input_grad", [F(1, 1, 2, 2), F(1, 1, 2, 2)], dict(WINDOW, groups=1, shape=(1, 1, 9, 9))),
    ("conv2d_input_grad", [F(1, 1, 2, 2), F(1, 1, 2, 2)], dict(WINDOW, groups=0, shape=(1, 1, 3, 3))),
    ("conv2d_weight_grad", [F(1, 1, 2, 2), F(1, 1, 3, 3)], dict(WINDOW, groups=1, shape=(1, 1, 3, 3))),
    ("max_pool2d", [F(0, 1, 4, 4)], dict(WINDOW, kernel_size=(2**31,) * 2, padding=(2**30,) * 2, ceil_mode=False)),
    ("max_pool2d_grad", [F(1, 1, 2, 2), I(1, 1, 2, 3)], dict(shape=(1, 1, 4, 4), apart=False)),
    ("max_pool2d_grad", [F(1, 1, 2, 2), F(1, 1, 2, 2)], dict(shape=(1, 1, 4, 4), apart=False)),
    ("max_pool2d_pick", [F(1, 1, 2, 2), I(2, 1, 2, 2)], {}),
    ("avg_pool2d_grad", [F(1, 1, 2, 2)], dict(shape=(1, 1, 9, 9), kernel_size=(2, 2), stride=(2, 2), padding=(0, 0),
                                             ceil_mode=False, count_include_pad=True, divisor_override=None)),
    ("adaptive_avg_pool2d", [F(1, 1, 1, 2**20)], dict(output_size=(2**20, 1))),
    ("adaptive_avg_pool2d", [F(2, 3, 4)], dict(output_size=(2,))),
    ("adaptive_max_pool2d", [F(2, 3, 4, 4)], dict(output_size=(2, 0))),
    ("max_pool1d", [F(1, 1, 4, 4)], dict(WINDOW, kernel_size=(2, 2), ceil_mode=False)),
    ("lp_pool1d", [F(1, 1, 4)], dict(norm_type=0.0, kernel_size=(2,), stride=(2,), ceil_mode=False)),
    ("max_unpool1d", [F(1, 1, 4), F(1, 1, 4)], dict(output_size=(8,))),
    ("adaptive_avg_pool2d_grad", [F(1, 1, 2, 2)], dict(shape=(1, 1, 0, 2))),
    ("im2col", [F(1, 1, 2, 2)], dict(WINDOW, kernel_size=(2, 2), stride=(2**20,) * 2, padding=(2**20,) * 2)),
    ("col2im", [F(1, 4, 1)], dict(WINDOW, kernel_size=(2, 2), shape=(1, 1))),
    ("lstm", LSTM, dict(sizes=(1, 3), reverse=False)), ("gru", [], dict(sizes=(), reverse=False)),
    ("lstm", [*LSTM[:2], F(1, 2), *LSTM[3:]], dict(sizes=(), reverse=False)),
    ("rnn", [F(4, 3), F(1, 2), F(2, 3), F(2, 2), F(2), F(2)], dict(relu=False, sizes=(1, 2, 1), reverse=False)),
    ("rnn_grad", [F(4, 2, 2), F(1, 2), F(4, 2, 3), F(2, 2), F(2, 3), F(2, 2), F(4, 2, 2)],
     dict(relu=False, sizes=(), reverse=False)),
    ("batch_norm", [F(4, 3), F(3), F(4)], dict(eps=1e-5)), ("batch_norm", [F(4, 3), I(3), I(3)], dict(eps=1e-5)),
    ("batch_norm_grad", [F(4, 3), F(5, 3), F(3), F(3), F(3)], dict(eps=1e-5)),
    ("nll", [F(3, 4), I(4)], dict(ignore_index=0, reduction="mean")),
    ("nll", [F(3, 4), F(3)], dict(ignore_index=0, reduction="mean")),
    ("nll_grad", [F(), I(3)], dict(shape=(4,), ignore_index=0, reduction="mean")),
    ("softmax_cross_entropy_grad", [F(3, 4), I(3), F(4)], dict(ignore_index=0, reduction="none")),
    ("ctc", [F(5, 2, 3), I(2, 2), I(2), I(2)], dict(blank=3)),
    ("ctc", [F(5, 2, 3), I(2, 2), I(3), I(2)], dict(blank=0)),
    ("pair_distances", [F(3, 4), F(2, 5)], dict(p=2.0)),
    ("pair_distances_grad", [F(3), F(3, 4), F(2, 4), F(3, 2)], dict(p=2.0)),
    ("uniform", [I(3)], dict(shape=(2,), low=0.0, high=1.0, dtype=float32, offset=0)),
    ("dropout", [F(3), float], dict(p=0.5, offset=0)), ("binomial", [F(3), F(3), F(2)], dict(offset=0)),
    ("fft", [Spec((0,), flow.complex64)], dict(axis=0, inverse=False)), ("polygamma", [F(3)], dict(n=1000)),
    ("lu_permutation", [I(4)], dict(size=3, dtype=float32)), ("accumulate", [F(3), F(4), F()], {}),
    ("at_least", [I(3)], dict(least=math.nan, name="")),
]  # fmt: skip


@pytest.mark.parametrize(("op", "specs", "attrs"), HOLES, ids=lambda x: str(x)[:60])
def test_shape_rules_refuse_bad_attrs(op, specs, attrs):
    with pytest.raises((MinflowError, TypeError)):
        consult(OPS[op], tuple(specs), attrs)


@pytest.mark.parametrize(("op", "arrays", "attrs"), [
    ("max_pool2d_grad", [np.ones((1, 1, 1, 1)), np.full((1, 1, 1, 1), 2**40)], dict(shape=(1, 1, 2, 2), apart=False)),
    ("max_pool2d_grad", [np.ones((1, 1, 1, 1)), np.full((1, 1, 1, 1), 4)], dict(shape=(1, 1, 2, 2), apart=True)),
    ("max_pool2d_pick", [np.ones((1, 1, 2, 2)), np.full((1, 1, 1, 1), 4)], {}),
    ("take", [np.ones(3), np.array(7)], dict(axis=0)), ("gather", [np.ones(3), np.array([3])], dict(dim=0)),
    ("scatter_add", [np.ones(3), np.array([-9]), np.ones(1)], dict(dim=0)),
    ("index_put", [np.ones(3), np.array([5]), np.ones(1)], dict(axis=0)),
    ("nll", [np.ones((2, 3)), np.array([0, 3])], dict(ignore_index=-100, reduction="mean")),
    ("softmax_cross_entropy", [np.ones((1, 3)), np.array([-4])], dict(ignore_index=-100, reduction="none")),
    ("softmax_cross_entropy_grad", [np.ones((1, 3)), np.array([9]), np.array(1.0)],
     dict(ignore_index=-100, reduction="mean")),
    ("nll_grad", [np.array(1.0), np.array([9])], dict(shape=(1, 3), ignore_index=-100, reduction="mean")),
    ("ctc", [np.zeros((3, 1, 3)), np.ones((1, 1), int), np.array([2**40]), np.array([1])], dict(blank=0)),
    ("lu_permutation", [np.array([2**31])], dict(size=3, dtype=float32)),
    ("one_hot", [np.array([5])], dict(num_classes=5)), ("multinomial", [np.array([math.nan]), np.zeros(2, int)],
                                                         dict(num_samples=1, replacement=True, offset=0)),
])  # fmt: skip
def test_out_of_range_values_are_refused(op, arrays, attrs):
    with pytest.raises(MinflowError):
        CALLS[OPS[op]](*arrays, **attrs)


def test_diagonal_out_of_range_is_empty():
    x = np.zeros((3, 4))
    for offset in (-(2**31), 2**31, -(2**62), -4, 5):
        assert CALLS[OPS["diagonal"]](x, offset=offset, dim1=0, dim2=1).shape == (0,)


def test_empty_images_take_no_time():
    window = dict(kernel_size=(200, 200), stride=(1, 1), padding=(0, 0), ceil_mode=False)
    x = np.zeros((0, 1, 2**40, 2**10))
    y, _ = CALLS[OPS["max_pool2d"]](x, **window, dilation=(1, 1))
    assert y.shape == (0, 1, 2**40 - 199, 2**10 - 199)
    assert CALLS[OPS["avg_pool2d"]](x, **window, count_include_pad=True, divisor_override=None).shape == y.shape
    assert CALLS[OPS["one_hot"]](np.zeros((0,), int), num_classes=2**50).shape == (0, 2**50)


def test_bfloat16_round_trips():
    assert again(OPS["cast"], {"dtype": bfloat16}) == {"dtype": bfloat16}


def hostile_calls(first: int, count: int) -> tuple[list[str], dict]:
    """Faults found, and counts of the mutants' outcomes, from a child process with little memory."""
    path = os.pathsep.join([str(TOP), str(TOP / "widgets")])
    ran = subprocess.run(
        [sys.executable, "-m", "tests.deploy.hostile_calls", str(first), str(count)],
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"died at mutant {ran.stderr[-2000:]}"
    *faults, counts = ran.stdout.splitlines()
    return faults, json.loads(counts)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux's means")
def test_hostile_calls_are_refused_or_run_safely():
    faults, counts = hostile_calls(0, 3000)
    assert not faults
    assert min(counts["ran"], counts["refused"]) > 900


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux's means")
def test_many_hostile_calls_are_refused_or_run_safely():
    for first in range(10**6, 10**6 + 40_000, 20_000):
        assert not hostile_calls(first, 20_000)[0]
