"""Methods that are rows of a table: they are the function of their name, with its signature, docstring and errors."""

import ast
import contextlib
import inspect
import os
import pickle
import sys

import pytest

import minflow as flow
from minflow import CallError, DTypeError
from minflow.core import functions
from minflow.core.methods.forwarded import IN_PLACE, METHODS, Forwarded
from minflow.core.op import OPS, Op
from minflow.core.tensor import Tensor
from tests import method_stubs

MINFLOW = os.path.dirname(flow.__file__)
ROWS = [name for name in vars(Forwarded) if name[0] != "_"]


def contents(text: str) -> str:
    """A module without its formatting."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = inspect.cleandoc(node.value)
    return ast.dump(tree)


def test_stub_is_current():
    assert contents(method_stubs.STUB.read_text(encoding="utf-8")) == contents(method_stubs.stub()), method_stubs.HEAD


def test_each_row_is_a_method_once():
    methods = " ".join(METHODS.values()).split()
    in_place = " ".join(IN_PLACE.values()).split()
    assert len(set(methods)) == len(methods) and len(set(in_place)) == len(in_place)
    assert sorted(ROWS) == sorted([*methods, *[f"{name}_" for name in in_place]])
    assert [name for name in ROWS if getattr(Tensor, name) is not getattr(Forwarded, name)] == []


@pytest.mark.parametrize("name", ROWS)
def test_signature_is_that_of_the_function(name):
    function = getattr(functions, name.removesuffix("_"), None) or getattr(flow, name, None)
    first, *own = inspect.signature(getattr(Tensor, name)).parameters.values()
    assert first.name == "self" and first.annotation == "Tensor"
    if isinstance(function, Op):
        assert [p.name for p in own] == ["other"][: len(function.inputs) - 1]
    elif function is not None:
        assert own == [*inspect.signature(function).parameters.values()][1:]


@pytest.mark.parametrize("name", ROWS)
def test_names_for_pickle_and_help(name):
    method, x = getattr(Tensor, name), flow.ones(2)
    assert pickle.loads(pickle.dumps(method)) is method
    assert (method.__name__, method.__qualname__) == (name, f"Tensor.{name}")
    bound = pickle.loads(pickle.dumps(getattr(x, name)))
    assert bound.__func__ is method and bound.__self__.tolist() == [1, 1]
    assert inspect.getdoc(method)
    assert inspect.getsource(method)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: x.add(1, alhpa=2), CallError, "Tensor.add has no argument 'alhpa'"),
        (lambda x: x.add_(1, alhpa=2), CallError, "Tensor.add_ has no argument 'alhpa'"),
        (lambda x: x.maximum(), CallError, "Tensor.maximum also needs other"),
        (lambda x: x.eq_(1, 2), CallError, "Tensor.eq_ takes 1 positional argument, got 2"),
        (lambda x: x.tril_(1, 2), CallError, "Tensor.tril_ takes 1 positional argument, got 2"),
        (lambda x: x.clamp_(0, 1, 2), CallError, "Tensor.clamp_ takes 2 positional arguments, got 3"),
        (lambda x: x.addmm(1, 2), DTypeError, "Tensor.addmm: the mat1 must be a tensor, got int"),
        (lambda x: x.addmm_(1, 2), DTypeError, "Tensor.addmm_: the mat1 must be a tensor, got int"),
        (lambda x: x.cumsum("a"), DTypeError, "dim must be an integer, not str"),
        (lambda x: x.det(1), CallError, "Tensor.det takes no positional arguments, got 1"),
        (lambda x: x.unsqueeze_(1, 2), CallError, "Tensor.unsqueeze_ takes 1 positional argument, got 2"),
    ],
)
def test_errors_name_the_method_and_the_line(call, kind, words):
    with pytest.raises(kind) as caught:
        call(flow.ones(2, 2))
    assert words in str(caught.value) and "test_methods.py:" in caught.value.where


def codes(call) -> list:
    """The code of the functions that are entered, in order; a debugger steps into the first one."""
    entered, usual = [], sys.gettrace()
    sys.settrace(lambda frame, *_: entered.append(frame.f_code))
    try:
        call()
    finally:
        sys.settrace(usual)
    return entered[1:]


def frames(call) -> list[str]:
    return [code.co_name for code in codes(call)]


def test_no_frame_is_added():
    x = flow.ones(2, 2)
    assert frames(lambda: x.exp())[:2] == ["exp", "apply"]
    assert frames(lambda: x.exp_())[:2] == ["exp_", "apply_inplace"]
    assert frames(lambda: x.mul(x))[:2] == ["mul", "apply"]
    assert frames(lambda: x.maximum(x))[:3] == ["maximum", "maximum", "apply"]  # the first handles errors
    assert frames(lambda: x.add(x))[:2] == ["add", "add"]
    assert frames(lambda: x.addmm_(x, x))[:3] == ["addmm_", "addmm_", "addmm"]


ELEMENTWISE = {
    name: it
    for name, it in vars(flow).items()
    if (op := it if isinstance(it, Op) else OPS.get(name)) and op.elementwise and callable(it)
}
# Names of other functions -> the name in which a debugger arrives, since they are the same object.
SAME_OBJECT = {
    "absolute": "abs", "negative": "neg", "multiply": "mul", "fix": "trunc",
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "not_equal": "ne",
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_debugger_steps_into_a_function_of_that_name(name):
    function, op = ELEMENTWISE[name], OPS.get(name) or ELEMENTWISE[name]
    inputs = [flow.ones(2) for _ in op.inputs]

    def call():
        with contextlib.suppress(DTypeError):  # raised after the first step
            function(*inputs)

    first = next(code for code in codes(call) if code.co_filename.startswith(MINFLOW))
    assert first.co_name == SAME_OBJECT.get(name, name)
    assert "def " in inspect.getsource(first)
