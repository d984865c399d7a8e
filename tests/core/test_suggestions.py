"""Suggestions for misspelt names and arguments in every namespace, from the existing names."""

import inspect
import random
import subprocess
import sys
from types import FunctionType, ModuleType

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CallError, MissingNameError
from minflow.core.messages.suggestions import NAMESPACES, attribute_hint, distance, nearest

F, optim = nn.functional, flow.optim
flow.vision, flow.utils.data, flow.library
ROOMS = sorted(NAMESPACES)


def names_of(room: str) -> list[str]:
    names = NAMESPACES[room]
    return sorted(
        n
        for n in names.get("__all__", names)
        if n[:1] != "_" and not isinstance(names.get(n), ModuleType) and len(n) > 3
    )


def module(room: str):
    found = flow
    for part in room.split(".")[1:]:
        found = getattr(found, part)
    return found


def typo(draw: random.Random, name: str) -> str:
    """Omit or double one letter, or swap it with the next, not at the end; never a digit, which is not a typo."""
    i = draw.choice([i for i in range(len(name) - 2) if name[i : i + 2].isalpha()] or [0])
    return draw.choice(
        (name[:i] + name[i + 1 :], name[: i + 1] + name[i:], name[:i] + name[i + 1] + name[i] + name[i + 2 :])
    )


@pytest.mark.parametrize("room", ROOMS)
def test_typo_in_any_namespace_suggests_the_intended_name(room):
    draw, looked = random.Random(room), 0
    for name in draw.sample(names_of(room), min(12, len(names_of(room)))):
        wrong = typo(draw, name)
        if any(wrong in names for names in NAMESPACES.values()) or wrong == name:
            continue
        assert not hasattr(module(room), wrong) and getattr(module(room), wrong, None) is None
        with pytest.raises(MissingNameError, match=rf"{room} has no {wrong}") as caught:
            getattr(module(room), wrong)
        assert len(name) < 6 or f"{room}.{name}" in caught.value.hint, (name, wrong, caught.value.hint)
        assert "test_suggestions.py:" in caught.value.where and isinstance(caught.value, AttributeError)
        looked += 1
    assert looked or len(names_of(room)) < 5


@pytest.mark.parametrize(
    ("room", "name", "hint"),
    [
        (flow, "relu6", "did you mean flow.nn.functional.relu6?"),
        (flow, "Adam", "did you mean flow.optim.Adam?"),
        (optim, "StepLR", "did you mean flow.optim.lr_scheduler.StepLR?"),
        (optim, "Sdg", "did you mean flow.optim.SGD?"),
        (nn, "Linaer", "did you mean flow.nn.Linear?"),
        (flow, "xyz", "dir(flow) lists what is there"),
        (optim, "qqq", "dir(flow.optim) lists what is there"),
    ],
)
def test_name_of_another_namespace_is_located(room, name, hint):
    with pytest.raises(MissingNameError) as caught:
        getattr(room, name)
    assert caught.value.hint == hint


def test_unimported_module_suggests_its_import():
    names = ["introspection", "exercises"]
    program = "".join(
        f"try:\n    flow.{name}\nexcept AttributeError as error:\n    print(error.what)\n"
        f"    exec(error.hint)\nprint(flow.{name} is {name})\n"
        for name in names
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import minflow as flow\n{program}"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "".join(f"flow.{name} is a module that is not imported yet\nTrue\n" for name in names), (
        done.stderr
    )


def test_similarity_of_names():
    assert distance("forward", "foward") == distance("weight", "weigth") == 1 and distance("abc", "") == 3
    known = [
        "sub",
        "sum",
        "relu",
        "relu6",
        "Conv2d",
        "conv2d",
        "cross_entropy",
        "softmax",
        "BatchNorm1d",
        "BatchNorm2d",
        "_relu",
    ]
    assert nearest("sbp", known) == [] and nearest("relu5", known) == [] and nearest("rleu", known)[0] == "relu"
    assert nearest("batch_norm", known) == ["BatchNorm1d", "BatchNorm2d"]
    assert nearest("CrossEntropy", known) == ["cross_entropy"]


X = flow.ones(2, 3)
P = [nn.Parameter(flow.ones(2))]
CALLS = [
    (lambda: nn.Linear(3, 4, bais=False), "nn.Linear has no argument 'bais'", "did you mean bias?"),
    (lambda: nn.Linear(3, units=4), "nn.Linear has no argument 'units'", "did you mean out_features?"),
    (lambda: nn.Linear(3), "nn.Linear also needs out_features", "nn.Linear(in_features, out_features, bias"),
    (lambda: nn.Linear(), "nn.Linear also needs in_features and out_features", "nn.Linear("),
    (lambda: nn.ReLU(True, True), "nn.ReLU takes 1 positional argument, got 2", "nn.ReLU(inplace)"),
    (lambda: nn.Linear(3, 4, in_features=3), "nn.Linear got 'in_features' twice", "nn.Linear("),
    (lambda: nn.Conv2d(1, 2, kernel=3), "nn.Conv2d has no argument 'kernel'", "did you mean kernel_size?"),
    (lambda: nn.BatchNorm2d(3, epsilon=1e-3), "nn.BatchNorm2d has no argument 'epsilon'", "did you mean eps?"),
    (lambda: optim.SGD(P, learning_rate=0.1), "optim.SGD has no argument 'learning_rate'", "did you mean lr?"),
    (lambda: optim.Adam(P, 0.1, beta1=0.9), "optim.Adam has no argument 'beta1'", "did you mean betas?"),
    (
        lambda: optim.lr_scheduler.StepLR(optim.SGD(P, 0.1), stepsize=2), "StepLR has no argument 'stepsize'",
        "did you mean step_size?"
    ),
    (lambda: flow.sum(X, dmi=0), "flow.sum has no argument 'dmi'", "did you mean dim?"),
    (lambda: flow.zeros(3, dtyp=flow.int64), "flow.zeros has no argument 'dtyp'", "did you mean dtype?"),
    (lambda: flow.stack(), "flow.stack also needs tensors", "flow.stack(tensors, dim"),
    (lambda: flow.exp(X, dtype=flow.float32), "exp has no argument 'dtype'", "exp(x)"),
    (
        lambda: F.cross_entropy(X, flow.tensor([0, 1]), reducton="sum"), "has no argument 'reducton'",
        "did you mean reduction?"
    ),
    (lambda: F.softmax(X, axes=1), "nn.functional.softmax has no argument 'axes'", "did you mean dim?"),
    (lambda: F.dropout(X, rate=0.1), "nn.functional.dropout has no argument 'rate'", "did you mean p?"),
    (lambda: X.sum(axs=0), "Tensor.sum has no argument 'axs'", "did you mean axis?"),
    (lambda: X.unsqueeze(1, 2), "", ""),
    (lambda: X.flatten(start=1), "Tensor.flatten has no argument 'start'", "did you mean start_dim?"),
    (lambda: nn.Linear(3, 4)(X, y=1), "Linear.forward has no argument 'y'", "Linear.forward(input)"),
    (lambda: nn.Linear(3, 4)(), "Linear.forward also needs input", "Linear.forward(input)"),
    (
        lambda: nn.Sequential(nn.Flatten())(X, X), "Sequential.forward takes 1 positional argument, got 2",
        "Sequential.forward(input)"
    ),
    (
        lambda: flow.utils.data.DataLoader([1], batchsize=2), "DataLoader has no argument 'batchsize'",
        "did you mean batch_size?"
    ),
    (lambda: flow.vision.transforms.RandomCrop(2, pad=1), "RandomCrop has no argument 'pad'", "did you mean padding?"),
    (lambda: flow.vision.datasets.FakeData(sise=3), "FakeData has no argument 'sise'", "did you mean size?"),
    (lambda: flow.vision.models.LeNet(classes=3), "LeNet has no argument 'classes'", ""),
    (lambda: nn.init.normal_(flow.ones(2), sdt=1), "nn.init.normal_ has no argument 'sdt'", "did you mean std?"),
    (
        lambda: nn.utils.clip_grad_norm_(P, maxnorm=1), "clip_grad_norm_ has no argument 'maxnorm'",
        "did you mean max_norm?"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "what", "hint"), CALLS, ids=[c[1] or "no options" for c in CALLS])
def test_unknown_argument_is_reported(call, what, hint):
    with pytest.raises(TypeError) as caught:
        call()
    if what:  # a method without optional arguments has no extra frame
        error = caught.value
        assert isinstance(error, CallError) and what in error.what and error.hint.startswith(hint), str(error)
        assert "test_suggestions.py:" in error.where and error.hint


CALLED = """flow.autograd flow.distributions flow.fft flow.func flow.linalg flow.models flow.nn flow.nn.functional
    flow.nn.init flow.nn.utils flow.nn.utils.rnn flow.optim flow.optim.lr_scheduler flow.special
    flow.utils.data flow.utils.tensor flow.vision.datasets flow.vision.models flow.vision.ops
    flow.vision.transforms flow.vision.transforms.functional""".split()


@pytest.mark.parametrize("room", CALLED)
def test_typo_in_an_argument_name_is_reported_in_any_namespace(room):
    looked, house = 0, module(room)
    for name in dir(house):
        it = getattr(house, name)
        init = it.__init__ if inspect.isclass(it) else it  # functions made by Python, and ops, have other errors
        if type(init) is not FunctionType or not init.__module__.startswith("minflow"):
            continue
        if room == "flow.autograd" and inspect.isclass(it):  # modes are defined elsewhere
            continue
        known = inspect.signature(it).parameters.values()
        names = [p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and len(p.name) > 4]
        if not names or any(p.kind is p.VAR_KEYWORD for p in known) or name in ("inv", "vector_norm", "nms"):
            continue
        wrong = names[-1][:2] + names[-1][3:]
        with pytest.raises(CallError, match=f"has no argument '{wrong}'") as caught:
            it(**{wrong: 1})
        assert names[-1] in caught.value.hint, (name, wrong, caught.value.hint)
        looked += 1
    assert looked


def test_error_inside_a_call_is_unchanged():
    class Net(nn.Module):
        def forward(self, x):
            return self.one(x, 2)

        def one(self, x):
            return x

    class Other(nn.Module):
        def forward(self, x):
            return len(3)

    for net in (Net(), Other()):
        with pytest.raises(TypeError) as caught:
            net(X)
        assert type(caught.value) is TypeError
    with pytest.raises(TypeError) as caught:
        flow.autograd.gradcheck(lambda x, y: x, [flow.ones(2, dtype=flow.float64, requires_grad=True)])
    assert type(caught.value) is TypeError


def test_tensor_attributes_are_suggested_when_the_error_is_shown():
    with pytest.raises(AttributeError) as caught:
        X.reshap(3, 2)
    assert attribute_hint(caught.value) == "did you mean reshape?" and attribute_hint(ValueError()) == ""
    assert not hasattr(X, "reshap") and not hasattr(flow.Tensor, "__getattr__"), "every x.array would be slower"


def test_very_long_names_are_not_compared(monkeypatch):
    """Edit distance is quadratic: a file with a name of 20,000 letters took minutes."""
    from minflow.core.messages import suggestions

    longest = []
    monkeypatch.setattr(
        suggestions, "distance", lambda a, b, real=suggestions.distance: longest.append(len(a)) or real(a, b)
    )
    model = flow.nn.Sequential()
    model.add_module("a" * 20_000, flow.nn.ReLU())
    assert not longest  # nothing was missing
    with pytest.raises(AttributeError, match="it holds a{100}"):
        getattr(model, "a" * 19_999)
    with pytest.raises(AttributeError, match="did you mean weight?"):
        flow.nn.Linear(2, 2).wieght
    assert max(longest) <= suggestions.MAX_NAME_LENGTH
