"""2,000 nested modules: every operation on modules works, and endless recursion is reported."""

import contextlib
import copy
import io
import sys
import threading

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import LoaderError, MinflowError
from tests.cases import Cases
from tests.graphs import Predict, Training

DEEP = (
    2_000 if sys.version_info[:2] != (3, 12) or sys.version_info >= (3, 12, 3) else 150
)  # `recursion_limit.py` explains why
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
    inner = next(x for x in m.modules() if isinstance(x, nn.Linear))
    return call(X).numpy().tolist() == inner(X).numpy().tolist()


def summarized(m):
    summary = flow.summary(m, X)
    return f"{DEEP - 60:,} more levels inside" in repr(summary) and summary.record.params == 6


def debugged(m, level):
    graph = Predict(m)
    graph.debug(level)
    graph(X)
    return graph.is_compiled and "MODULE" in repr(graph)


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
    "graph repr": lambda m: "MODULE" in repr(Predict(m)),
    "training graph": lambda m: Training(m, flow.optim.SGD(m.parameters(), lr=0.1))(X).shape == (),
    "show": lambda m: flow.show(m) is None,
    "summary": summarized,
    "notebook": lambda m: len(m._repr_mimebundle_()["text/html"]) < 100_000,
}


@pytest.mark.parametrize(("kind", "level"), [(nn.Sequential, 2), (Own, 3)])
def test_thousands_of_nested_modules(kind, level):
    model, limit = nested(kind), sys.getrecursionlimit()
    with Cases() as case:
        for name, operation in (OPERATIONS | {f"debug {level}": lambda m: debugged(m, level)}).items():
            with case(name), contextlib.redirect_stdout(io.StringIO()):
                assert operation(model)
            with case(f"recursion limit after {name}"):
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


def test_endless_recursion_is_reported():
    limit = sys.getrecursionlimit()
    told = (
        r"Endless is called inside [\d,]+ other modules, (and the stack .* takes [\d,]+|deeper than Python 3.* goes)\n"
        r"  scope  Endless\.Endless.*more\.\.\."
    )
    for inputs in ([X], [X, X]):  # the second one reaches the limit of Python 3.12 and 3.13 for calls through C
        with pytest.raises(RecursionError, match=told) as caught:
            Endless()(*inputs)
        assert "test_recursion_limit.py" in str(caught.value) and len(str(caught.value)) < 600
        assert isinstance(caught.value, flow.MinflowError) and sys.getrecursionlimit() == limit


def test_user_recursion_error_is_unchanged():
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


def test_small_thread_stack_is_respected():
    before = threading.stack_size(2**20)
    try:
        error = in_thread(lambda: Endless()(X))
        assert threading.stack_size() == 2**20
    finally:
        threading.stack_size(before)
    assert isinstance(error, RecursionError) and "the stack of this thread takes 299" in str(error)


def test_overridden_traversal_is_called():
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


# ---- modules and lists that contain themselves -----------------------------------------------------------------------


class OwnWalks(nn.Linear):
    """Every traversal that a class can override."""

    def train(self, mode=True):
        return super().train(mode)

    def state_dict(self, *args, **options):
        return super().state_dict(*args, **options)

    def apply(self, fn):
        return super().apply(fn)

    def __repr__(self):
        return super().__repr__()


def itself():
    module = nn.Linear(2, 2)
    module.again = module
    return module


def through_a_child():
    module = nn.Sequential(nn.Linear(2, 2))
    module[0].parent = module
    return module


def in_several_ways():
    module = nn.Linear(2, 2)
    module.first = module.second = module
    module.child = nn.Linear(2, 2)
    module.child.parent = module.child.other = module
    return module


def of_classes_of_their_own():
    module, child = OwnWalks(2, 2), OwnWalks(2, 2)
    module.child, child.parent, module.again = child, module, module
    return module


@pytest.mark.parametrize("make", [itself, through_a_child, in_several_ways, of_classes_of_their_own])
def test_module_that_contains_itself(make):
    """PyTorch's train() and state_dict() end in a RecursionError. Here each traversal visits the module once."""
    module, x = make(), flow.ones(1, 2)
    names = [name for name, _ in module.named_parameters()]
    state = module.state_dict()
    assert sorted(state) == sorted(names) and 2 <= len(names) <= 4
    assert str(module.load_state_dict(state)) == "<All keys matched successfully>"
    module.eval()
    assert not any(part.training for part in module.modules())
    module.train()
    assert all(part.training for part in module.modules())
    met = []
    module.apply(met.append)
    assert len(met) >= len({id(part) for part in met}) == len(list(module.modules()))
    assert len(repr(module)) < 400 and "itself" in repr(module)
    assert str(flow.summary(module, x)) and module._repr_mimebundle_()
    module.double().float().requires_grad_(False).zero_grad()
    assert list(copy.deepcopy(module).state_dict()) == list(state)
    assert not [part for part in module.modules() if part.weight.requires_grad] if make is itself else True

    graph = Predict(module)
    assert (graph(x) == module(x)).all() and str(graph)


def test_module_list_that_contains_itself():
    layers = nn.ModuleList([nn.Linear(2, 2)])
    layers.append(layers)
    assert list(layers.state_dict()) == ["0.weight", "0.bias"] and len(repr(layers)) < 200 and layers.eval() is layers


LOOP = [1.0]
LOOP.append(LOOP)
LOOPS = {"a list": LOOP, "a dict": {"a": 1}, "a tuple": ([],)}
LOOPS["a dict"]["again"] = LOOPS["a dict"]
LOOPS["a tuple"][0].append(LOOPS["a tuple"])
WALKS = {
    "tensor": flow.tensor,
    "as_tensor": flow.as_tensor,
    "FloatTensor": flow.FloatTensor,
    "tensor of two": lambda x: flow.tensor([x, x]),
    "stack": flow.stack,
    "cat": flow.cat,
    "where": lambda x: flow.where(flow.ones(1) > 0, x, x),
    "new_tensor": lambda x: flow.ones(1).new_tensor(x),
    "x[0] = loop": lambda x: flow.ones(3).__setitem__(0, x),
    "Parameter": nn.Parameter,
    "default_collate": lambda x: flow.utils.data.default_collate([x]),
    "DataLoader": lambda x: next(iter(flow.utils.data.DataLoader([x, x]))),
    "func.grad": lambda x: flow.func.grad(lambda a: a)(x),
    "summary": lambda x: flow.summary(nn.Linear(2, 2), x),
    "save": lambda x: flow.save(x, "never-written"),
    "a graph": lambda x: type("Net", (nn.Graph,), {"build": lambda self, a: a})()(x),
    "SGD": lambda x: flow.optim.SGD(x, lr=0.1),
    "load_state_dict": lambda x: nn.Linear(2, 2).load_state_dict(x),
}


@pytest.mark.parametrize("walk", WALKS)
def test_structure_that_contains_itself(walk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Cases() as case:
        for kind, loop in LOOPS.items():
            with case(f"{walk} of {kind}"), pytest.raises(MinflowError) as caught:
                WALKS[walk](loop)
            with case(f"error of {walk} of {kind}"):
                assert not isinstance(caught.value, RecursionError) and caught.value.where and caught.value.hint


def test_error_names_the_argument():
    with pytest.raises(MinflowError, match=r"(?s)tensor\(\): data is a list that contains itself.*data  \[1.0, \["):
        flow.tensor(LOOP)
    with pytest.raises(LoaderError, match=r"default_collate: sample is a list that contains itself"):
        flow.utils.data.default_collate([LOOP, LOOP])


def test_too_deep_tree_keeps_its_error():
    deep = flow.ones(1)
    for _ in range(20_000):
        deep = [deep]
    with pytest.raises(RecursionError) as caught:
        flow.func.grad(lambda a: a)(deep)
    assert "contains itself" not in str(caught.value)


def test_graph_attribute_that_contains_itself():
    class Net(nn.Graph):
        def __init__(self):
            super().__init__()
            self.table = LOOP

        def build(self, x):
            return x + 1

    assert Net()(flow.ones(1)).tolist() == [2.0]
