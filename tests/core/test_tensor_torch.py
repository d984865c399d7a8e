"""Promotion and printing against PyTorch. Skipped without PyTorch."""

import itertools
import re

import numpy as np

import minflow as flow
from tests.cases import in_cases
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def name_of(dtype) -> str:
    return str(dtype).partition(".")[2]


def one(lib, name, shape):
    return lib.ones(shape, dtype=getattr(lib, name))


@in_cases("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())])
def test_promotion_of_all_pairs(shapes):
    for a, b in itertools.product(NAMES, NAMES):
        theirs = one(torch, a, shapes[0]) * one(torch, b, shapes[1])
        ours = one(flow, a, shapes[0]) * one(flow, b, shapes[1])
        assert name_of(ours.dtype) == name_of(theirs.dtype), (a, b)


@in_cases("number", [True, 2, 2.5])
@in_cases("shape", [(2,), ()])
def test_promotion_with_python_numbers(number, shape):
    for a in NAMES:
        for program in (lambda x: x * number, lambda x: number + x, lambda x: x / number, lambda x: x > number):
            assert name_of(program(one(flow, a, shape)).dtype) == name_of(program(one(torch, a, shape)).dtype), a


def words(text: str) -> list[str]:
    """Text without the dtype, which moves the line breaks after the last bracket."""
    return re.sub(r",\s+dtype=\S+?(?=[,)])", "", text).splitlines()


VALUES = [
    [1, 2, 3], [[1, 2], [3, 40]], [-1, 2], [True, False], [[True], [False]], True, 3, -3, 2.5, 1e10, 1e-10,
    [1e5, 1.5, float("nan")],
    float("nan"), float("inf"), [1.0, 2.0], [1.5, 2], [-1.5, 2], [[1.0, 2.0], [3.0, -4.0]], [1e-5, 1.0], [1e5, 1.0],
    [1e9, 1e9],
    [0.0, 0.0], [float("nan"), 1.0], [float("nan"), 1.5, float("inf"), -float("inf")], [float("inf"), -float("inf")],
    [], [[], []],
    [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]], [0.1, 1000.0], [123456789.0, 123456788.0], [-0.0],
    [0.00012, 0.0002],
    100000.0, 0.00001, 123456789.5, [-100000, 1], [1e-38], [3.4e38],
]  # fmt: skip


@in_cases("value", VALUES)
def test_printing(value):
    assert words(repr(flow.tensor(value))) == words(repr(torch.tensor(value)))


@in_cases("dtype", ["float16", "float64", "int32", "uint8"])
@in_cases("value", [[1, 2, 3], [[1, 2], [3, 40]], 7])
def test_printing_of_dtypes(value, dtype):
    ours, theirs = flow.tensor(value, dtype=getattr(flow, dtype)), torch.tensor(value, dtype=getattr(torch, dtype))
    assert repr(ours).replace("minflow.", "torch.") == repr(theirs)


SHAPES = [
    (0,),
    (2, 0),
    (1, 1, 1),
    (3, 30),
    (40, 40),
    (2000,),
    (10, 20, 30),
    (1000,),
    (2, 3, 4, 5),
    (1, 100),
    (2, 3000),
    (6, 6, 50),
]


@in_cases("shape", SHAPES)
def test_printing_of_shapes(shape):
    x = np.random.RandomState(0).randn(*shape).astype("float32")
    for array in (x, (x * 100).astype("int64"), x > 0):
        assert words(repr(flow.tensor(array))) == words(repr(torch.tensor(array)))


OPTIONS = [
    {"precision": 2}, {"sci_mode": True}, {"sci_mode": False}, {"linewidth": 40}, {"threshold": 5},
    {"edgeitems": 1, "threshold": 5},
    {"profile": "short"}, {"profile": "full"},
]  # fmt: skip


@in_cases("options", OPTIONS)
def test_print_options(options):
    try:
        flow.set_printoptions(**options)
        torch.set_printoptions(**options)
        for shape in [(3, 4), (20,), (3, 30)]:
            x = np.random.RandomState(0).randn(*shape).astype("float32")
            ours = words(repr(flow.tensor(x)))
            assert [line.rstrip(")") for line in ours if line.strip()] == [
                line.rstrip(")") for line in words(repr(torch.tensor(x))) if line.strip()
            ]
    finally:
        flow.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


@in_cases("form", ["{:>7f}", "{:.3f}", "{}", "{:>20}"])
def test_formats(form):
    for value in (2.5, 3):
        assert form.format(flow.tensor(value)) == form.format(torch.tensor(value))


def test_dlpack_both_ways():
    theirs = torch.arange(4.0)
    ours = flow.from_dlpack(theirs)
    ours[0] = 9
    assert theirs[0] == 9
    back = torch.from_dlpack(ours)
    back[1] = 7
    assert ours.tolist() == [9, 7, 2, 3]
