"""Modules 2,000 levels inside each other: whatever can be done with a module works, and an endless recursion is
reported."""

import contextlib
import io
import sys
import threading

import pytest

import minflow as flow
from minflow import nn

DEEP = 2_000 if sys.version_info[:2] != (3, 12) or sys.version_info >= (3, 12, 3) else 150  # nesting.py says why
X = flow.ones(1, 2)


class Own(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Endless(nn.Module):
    def forward(self, *inputs):
        return self(inputs[0]) if len(inputs) == 1 else self(*inputs)


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


class Train(Predict):
    def __init__(self, model):
        super().__init__(model)
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def nested(kind, levels=DEEP):
    module = nn.Linear(2, 2)
    for _ in range(levels):
        module = kind(module)
    return module


def backward(m):
    m(X).sum().backward()
    return len([p for p in m.parameters() if p.grad is not None]) == 2


def applied(m):
    met = []
    m.apply(met.append)
    return len(met) == DEEP + 1 and isinstance(met[0], nn.Linear) and met[-1] is m


def same_as_inner(m, call):
    inner = [x for x in m.modules() if isinstance(x, nn.Linear)][0]
    return call(X).numpy().tolist() == inner(X).numpy().tolist()


def debugged(m, level):
    graph = Predict(m)
    graph.debug(level)
    graph(X)
    return graph.is_compiled


OPERATIONS = {
    "repr": lambda m: len(repr(m)) < 20_000 and f"{DEEP - 60:,} more levels inside" in repr(m),
    "named_modules": lambda m: len(list(m.named_modules())) == DEEP + 1,
    "all named_modules": lambda m: len(list(m.named_modules(remove_duplicate=False))) == DEEP + 1,
    "parameters": lambda m: len(list(m.parameters())) == 2,
    "state_dict": lambda m: [name.count(".") for name in m.state_dict()] == [DEEP, DEEP],
    "load_state_dict": lambda m: not m.load_state_dict(m.state_dict()).missing_keys,
    "train": lambda m: all(not x.training for x in m.eval().modules()) and all(x.training for x in m.train().modules()),
    "apply": applied,
    "to": lambda m: m.to(flow.float64).to(flow.float32) is m,
    "zero_grad": lambda m: m.zero_grad() is None,
    "requires_grad_": lambda m: m.requires_grad_(True) is m,
    "call": lambda m: same_as_inner(m, m),
    "backward": backward,
    "graph": lambda m: same_as_inner(m, Predict(m)),
    "training graph": lambda m: Train(m)(X).shape == (),
    "graph repr": lambda m: "MODULE" in repr(Predict(m)),
    **{f"debug {level}": lambda m, level=level: debugged(m, level) for level in range(4)},
    "show": lambda m: flow.show(m) is None,
    "summary": lambda m: (
        f"{DEEP - 60:,} more levels inside" in repr(flow.summary(m, X)) and flow.summary(m, X).record.params == 6
    ),
    "notebook": lambda m: len(m._repr_mimebundle_()["text/html"]) < 100_000,
}


@pytest.mark.parametrize("kind", [nn.Sequential, Own])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_thousands_of_levels(kind, operation):
    model, limit = nested(kind), sys.getrecursionlimit()
    with contextlib.redirect_stdout(io.StringIO()):
        assert OPERATIONS[operation](model)
    assert sys.getrecursionlimit() == limit


def in_thread(call):
    found = []

    def run():
        try:
            found.append(call())
        except RecursionError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_two_threads_share_the_limit():
    model, limit = nested(Own), sys.getrecursionlimit()
    first = threading.Thread(target=lambda: [model(X) for _ in range(5)])
    first.start()
    shapes = [model(X).shape for _ in range(5)]
    first.join()
    assert shapes == [(1, 2)] * 5 and in_thread(lambda: model(X).shape) == (1, 2)
    assert sys.getrecursionlimit() == limit


def test_an_endless_call_is_told():
    limit = sys.getrecursionlimit()
    told = (
        r"Endless is called inside [\d,]+ other modules, (and the stack .* takes [\d,]+|deeper than Python 3.* goes)\n"
        r"  scope  Endless\.Endless.*more\.\.\."
    )
    for inputs in ([X], [X, X]):  # the second one reaches the limit of Python 3.12 and 3.13 for calls through C
        with pytest.raises(RecursionError, match=told) as caught:
            Endless()(*inputs)
        assert "test_nesting.py" in str(caught.value) and len(str(caught.value)) < 600
        assert isinstance(caught.value, flow.MinflowError) and sys.getrecursionlimit() == limit


def test_a_recursion_of_the_users_own_is_left_as_it_is():
    class Counts(nn.Module):
        def forward(self, x):
            def down(n):
                return down(n - 1) + 1

            return down(0)

    model = Counts()
    for _ in range(140):
        model = Own(model)
    with pytest.raises(RecursionError) as caught:
        model(X)
    assert not isinstance(caught.value, flow.MinflowError)


def test_a_small_stack_is_minded():
    before = threading.stack_size(2**20)
    try:
        error = in_thread(lambda: Endless()(X))
        assert threading.stack_size() == 2**20
    finally:
        threading.stack_size(before)
    assert isinstance(error, RecursionError) and "the stack of this thread takes 299" in str(error)


def test_what_lies_inside_itself_is_met_once():
    a = Own(nn.Linear(2, 2))
    a.again = a
    assert [name for name, _ in a.named_modules(remove_duplicate=False)] == ["", "inner"]
    assert len(repr(a)) < 50_000
    met = []
    a.apply(met.append)
    assert met == [a.inner, a]


def test_a_class_with_a_walk_of_its_own_is_asked():
    class Named(nn.Linear):
        def state_dict(self, *, destination, prefix, keep_vars):
            destination[f"{prefix}mine"] = self.weight

        def apply(self, fn):
            fn("mine")

    met = []
    model = nn.Sequential(nn.Linear(1, 1), Own(Named(2, 2)), nn.Linear(1, 1))
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.inner.mine", "2.weight", "2.bias"]
    model.apply(met.append)
    assert met == [model[0], "mine", model[1], model[2], model]
