"""Try out the advice of errors: an expression in a hint works on the arguments that failed."""

import ast
import builtins
import inspect
import itertools
import math
import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.fuzz.calls import call_of, called_names
from tests.graphs import Predict
from tests.sampling import sampled

SPACE = {"np": np, "L": flow, "flow": flow, "nn": nn, "F": nn.functional, "inf": math.inf, "nan": math.nan}
PUT_APART = re.compile(r"[;,] or |[;,] | or |such as |: (?=[a-z])| (?:which|makes|takes|gives|is|for|has|as) ")
KNOWN = {*dir(builtins), "flow", "nn", "F", "L"}


def expressions(hint: str):
    """Calls and indexings that a hint consists of or contains."""
    for text in {hint, *PUT_APART.split(hint)}:
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            continue
        if isinstance(tree, ast.Call | ast.Subscript) and "..." not in text:
            bound = {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
            yield text.strip(), {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - bound


def arguments(line: str, space: dict) -> dict:
    """Arguments of the call on that line, by name; a method's own tensor as x and input."""
    call = ast.parse(line).body[0].value
    run = lambda node: eval(compile(ast.Expression(node), line, "eval"), space)
    function, owner = run(call.func), run(call.func.value) if isinstance(call.func, ast.Attribute) else None
    given = [run(a) for a in call.args], {k.arg: run(k.value) for k in call.keywords if k.arg}
    first = {"x": owner, "input": owner, "self": owner} if isinstance(owner, flow.Tensor) else {}
    return first | inspect.signature(function).bind_partial(*given[0], **given[1]).arguments


def advice(lines: list[str]):
    """(expression, its names and values, error) of each expression in the hint of a program's error."""
    space = dict(SPACE)
    for line in lines:
        try:
            exec(line, space)
        except flow.MinflowError as error:
            try:
                known = arguments(line, space)
            except (AttributeError, SyntaxError, TypeError, ValueError, flow.MinflowError):
                return
            function = line.partition("= ")[2].partition("(")[0].rpartition(".")[2]
            hint = error.hint or ""
            for text, names in expressions(hint) if f"{function}(" not in hint.partition("=")[0] else ():  # a signature
                if names <= known.keys() | KNOWN and names - KNOWN:
                    yield text, known | SPACE, error
            return
        except Exception:  # a raw error, which tests/fuzz reports
            return


def test_calls_in_hints_work():
    tried, wrong = 0, []
    for name, seed in sampled(itertools.product(called_names(), range(2)), 0.5):
        lines = call_of(name, f"advice {seed}")
        for text, known, error in advice(lines):
            tried += 1
            try:
                eval(text, dict(known))
            except Exception as failed:
                wrong.append(f"{lines[-1]}\n{error}\n{text}: {failed!r}")
    assert not wrong, "\n\n".join(wrong)
    assert tried, "no hint contains an expression"


def test_useless_advice_is_detected(monkeypatch):
    def fails(x):
        raise flow.ShapeError("no", hint="x.missing(), or flow.abs(x)")

    monkeypatch.setitem(SPACE, "fails", fails)
    found = {text: known for text, known, _ in advice(["y = L.ones(2)", "r = fails(y)"])}
    assert set(found) == {"x.missing()", "flow.abs(x)"}
    assert eval("flow.abs(x)", found["flow.abs(x)"]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("index", [0, -1, (0, 0), [0]])
def test_scalar_is_read_by_item(index):
    loss = flow.tensor(2.5)
    with pytest.raises(flow.ShapeError, match=r"(?s)axes.*float32\[\].*Try: \w+\.item\(\) is its Python number"):
        loss[index]
    assert loss.item() == 2.5


@pytest.mark.parametrize("strict", [True, False])
def test_size_mismatch_does_not_suggest_strict(strict):
    state = {"weight": flow.ones(4, 3), "other": flow.ones(1)}
    with pytest.raises(flow.StateError, match=r"(?s)weight: must be \[5, 3\], got \[4, 3\].*Try: make the model with"):
        nn.Linear(3, 5).load_state_dict(state, strict=strict)


def test_hint_of_functions_with_variadic_sizes():
    with pytest.raises(flow.CallError, match=r"Try: flow.permute\(input, \*dims\)"):
        flow.permute(flow.ones(2, 3), order=(1, 0))


@pytest.mark.parametrize(
    "call, argument",
    [
        (lambda x: flow.equal(x, 3), "other"),
        (lambda x: flow.kron(-1, x), "input"),
        (lambda x: nn.utils.get_total_norm([0, x]), r"tensors\[0\]"),
    ],
)
def test_number_instead_of_a_tensor_is_named(call, argument):
    with pytest.raises(flow.DTypeError, match=f"the {argument} must be a tensor, got int"):
        call(flow.ones(2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x * n.item(),
        lambda x, n: x * float(n),
    ],
)
def test_number_in_a_graph_is_suggested_as_a_tensor(function):
    x, n = flow.ones(2, 3), flow.tensor(3)
    with pytest.raises(flow.TraceError, match=r"as in x \* n, flow.full\(\(2, 3\), n\) or flow.stack\(\[n, m\]\)"):
        Predict(function)(x, n)
    for works in (lambda x, n: x * n, lambda x, n: flow.full((2, 3), n), lambda x, n: flow.stack([n, n])):
        assert (Predict(works)(x, n) == 3).all()


READS = {
    "item": lambda loss: flow.tensor(loss.item()),
    "float": lambda loss: flow.tensor(float(loss)),
    "numpy": lambda loss: flow.from_numpy(loss.numpy().copy()),
    "tolist": lambda loss: flow.tensor(loss.tolist()),
}


@pytest.mark.parametrize("reader", READS)
def test_loss_made_from_a_number_names_the_end_of_the_tape(reader):
    w = flow.ones(3, requires_grad=True)

    loss = (w * w).sum()
    made = f"test_advice.py:{inspect.currentframe().f_lineno - 1}"
    cut = rf"(?s)cut +{reader}\(\) at test_advice.py:\d+ of float32\[\] created at {made}\n"
    with pytest.raises(flow.GradError, match=rf"{cut}.*compute with the tensor itself: the result of {reader}\(\)"):
        READS[reader](loss).backward()


def test_only_the_last_number_read_is_blamed():
    w = flow.ones(3, requires_grad=True)
    total = (w * w).sum().item() / 3 + float(np.float32(1))
    with pytest.raises(flow.GradError, match=r"(?s)last read  item\(\) at test_advice.py:\d+.*requires_grad=True on"):
        flow.tensor(total).backward()
    (w * w).numpy()
    with pytest.raises(
        flow.GradError, match=r"last read  numpy\(\)"
    ):  # comparisons of several elements are not covered
        flow.ones(2).backward(flow.ones(2))


def test_read_before_a_build_is_not_blamed():
    (flow.ones(3, requires_grad=True) * 2).sum().item()

    class Detached(nn.Graph):
        def build(self, x):
            loss = x.detach().sum()
            loss.backward()
            return loss

    with pytest.raises(flow.GradError, match="not computed from anything that requires grad") as found:
        Detached()(flow.ones(3))
    assert list(found.value.values) == ["output"]


def test_callback_error_has_a_hint():
    @flow.global_function(type="predict")
    def job(x: flow.typing.Numpy.Placeholder((2,))) -> flow.typing.Callback[flow.typing.Numpy]:
        return flow.math.relu(x)

    def broken(result):
        raise ValueError("mine")

    with pytest.raises(
        flow.JobError,
        match="(?s)callback broken of step 1 of job raised ValueError: mine.*"
        "correct the function, and submit the cancelled steps again",
    ):
        job(np.ones(2, "float32"))(broken)
        flow.sync_default_session()


def test_saved_graph_explains_how_to_change_mode(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    graph = Predict(model)
    for mode, other in ((True, "eval"), (False, "train")):
        model.train(mode)
        graph(flow.ones(2, 3))
        flow.save(graph, tmp_path / other)
        member = dict(flow.load_graph(tmp_path / other).named_members())["model"]
        with pytest.warns(flow.MinflowWarning, match=rf"save the graph again after model\.{other}\(\) and a call"):
            member.train(not mode)
