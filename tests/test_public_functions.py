"""Everything in the public face that is called behaves as a function: its name, where it is from, its signature, help,
copies.

Ops are objects; nothing of that should be seen by who calls them, prints their help, or sends them to another process.
"""

import copy
import importlib
import inspect
import pickle
import pydoc

import pytest

import minflow as flow

FACES = {
    "flow": flow,
    "flow.nn.functional": flow.nn.functional,
    "flow.nn.init": flow.nn.init,
    "flow.nn.utils": flow.nn.utils,
    "flow.linalg": flow.linalg,
    "flow.special": flow.special,
    "flow.fft": flow.fft,
    "flow.autograd": flow.autograd,
    "flow.math": flow.math,
    "flow.layers": flow.layers,
    "flow.random": flow.random,
}
FUNCTIONS = {
    f"{face}.{name}": getattr(holder, name)
    for face, holder in FACES.items()
    for name in dir(holder)
    if not name.startswith("_") and inspect.isroutine(getattr(holder, name))
}


def test_there_are_ops_and_functions():
    kinds = [type(f).__name__ for f in FUNCTIONS.values()]
    assert kinds.count("Op") > 30 and kinds.count("function") > 200
    assert {type(f).__name__ for f in FUNCTIONS.values()} <= {"Op", "function", "builtin_function_or_method"}
    odd = [
        n
        for n, v in vars(flow).items()
        if callable(v) and n[0] != "_" and not isinstance(v, type) and not inspect.isroutine(v)
    ]
    assert odd == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_behaves_as_a_function(name):
    function = FUNCTIONS[name]
    home = importlib.import_module(function.__module__)
    assert getattr(home, function.__qualname__) is function and function.__name__ == function.__qualname__
    parameters = inspect.signature(function).parameters.values()
    assert [p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)] not in (
        ["inputs", "attrs"],
        ["args", "options"],
    )
    text = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert f"{function.__name__}(" in text and (function.__doc__ or "").split("\n")[0].strip() in text
    assert copy.copy(function) is function and copy.deepcopy([function]) == [function]
    assert pickle.loads(pickle.dumps(function)) is function


def test_an_op_as_an_attribute_of_a_class_is_not_bound():
    class Layer(flow.nn.Module):
        activation = flow.exp

        def forward(self, x):
            return self.activation(x)

    assert Layer()(flow.zeros(2)).tolist() == [1, 1]


def test_a_model_that_holds_an_op_is_copied_and_pickled():
    model = flow.nn.Sequential(flow.nn.Linear(2, 2))
    model.activation = flow.tanh
    assert copy.deepcopy(model).activation is flow.tanh
    assert pickle.loads(pickle.dumps(flow.tanh)) is flow.tanh


def test_signatures_say_what_is_taken():
    assert str(inspect.signature(flow.exp)) == "(x)"
    assert str(inspect.signature(flow.maximum)) == "(a, b)"
    assert str(inspect.signature(flow.core.op.OPS["sum"])) == "(x, *, axis, keepdims)"
    assert str(inspect.signature(flow.core.op.OPS["cat"])) == "(*tensors, dim)"
    assert flow.exp.__module__ == "minflow.core.ops.elementwise"
