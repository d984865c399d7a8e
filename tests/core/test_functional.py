"""autograd.functional, func, utils.checkpoint and the forms of autograd.Function, against PyTorch."""

import numpy as np
import pytest

import minflow as flow
from minflow import func, nn
from minflow.core.base.errors import GradError
from minflow.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.cases import in_cases
from tests.core.refusals import refusals
from tests.graphs import Predict
from tests.pytorch import needs_torch, torch

ARRAYS = [np.array([[0.3, -1.2], [2.0, 0.7]]), np.array([1.5, -0.5])]


def inputs(L):
    return tuple(L.tensor(a) for a in ARRAYS)


X = inputs(flow)[0]


def one(x, y):
    return (x.exp() @ y).sum() + (y**3).sum() * x.sum()


def two(x, y):
    return x @ y, x.sum() * y


def each(x):
    return x.exp() * x.sum()


def nothing(x):
    return (x * 0).detach() + 1


def same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys() and all(same(a[k], b[k]) is None for k in a)
    elif isinstance(a, tuple | list):
        assert type(a) is type(b) and len(a) == len(b) and all(same(x, y) is None for x, y in zip(a, b))
    else:
        assert tuple(a.shape) == tuple(b.shape) and a.requires_grad == b.requires_grad
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10)


def functional(L):
    return L.autograd.functional


FUNCTIONAL = {
    "jacobian": lambda L, **o: functional(L).jacobian(each, inputs(L)[0], **o),
    "jacobian of two": lambda L, **o: functional(L).jacobian(two, inputs(L), **o),
    "jacobian of what is constant": lambda L, **o: functional(L).jacobian(nothing, inputs(L)[1]),
    "hessian": lambda L, **o: functional(L).hessian(lambda x: (x**3).sum(), inputs(L)[0], **o),
    "hessian of two": lambda L, **o: functional(L).hessian(one, inputs(L), **o),
    "vjp": lambda L, **o: functional(L).vjp(two, inputs(L), (inputs(L)[1],) * 2, **o),
    "vjp of a number": lambda L, **o: functional(L).vjp(one, inputs(L), **o),
    "jvp": lambda L, **o: functional(L).jvp(two, inputs(L), inputs(L), **o),
    "vhp": lambda L, **o: functional(L).vhp(one, inputs(L), inputs(L), **o),
    "hvp": lambda L, **o: functional(L).hvp(lambda x: (x**3).sum(), inputs(L)[1], inputs(L)[1], **o),
}


@needs_torch
@in_cases("create_graph", [False, True])
@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional(name, create_graph):
    same(*[FUNCTIONAL[name](L, create_graph=create_graph) for L in (flow, torch)])


test_functional_refuses = refusals(
    [
        (lambda: flow.autograd.functional.vjp(each, X), "v is required"),
        (lambda: flow.autograd.functional.jvp(each, X, X[0]), r"the shapes of v differ from those of the inputs"),
        (lambda: flow.autograd.functional.hessian(each, X), "got 4"),
        (lambda: flow.autograd.functional.jacobian(nothing, X, strict=True), "do not depend on input 0"),
        (lambda: flow.autograd.functional.jacobian(each, 3), "input 0 must be a floating tensor"),
        (lambda: flow.autograd.functional.jacobian(lambda x: 3, X), "output 0 of the function is a int"),
    ]
)


def names_of(L):
    return func if L is flow else L.func


def per_sample(L, model):
    f = names_of(L)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    loss = lambda p, x: f.functional_call(model, p, (x.unsqueeze(0),)).squeeze()
    gradients = f.vmap(f.grad(loss), in_dims=(None, 0))(parameters, inputs(L)[0])
    return gradients, f.functional_call(model, parameters, inputs(L)[0])


def vjp_result(L):
    out, pull = names_of(L).vjp(each, inputs(L)[0])
    return out, pull(out)


FUNC = {
    "grad": lambda L, f: f.grad(one, argnums=(0, 1))(*inputs(L)),
    "grad of grad": lambda L, f: f.grad(f.grad(lambda x: x.sin()))(inputs(L)[1].sum()),
    "grad around a constant": lambda L, f: f.grad(lambda x: f.grad(lambda y: (x * y * y).sum())(inputs(L)[1]).sum())(
        inputs(L)[1]
    ),
    "grad_and_value": lambda L, f: f.grad_and_value(one, argnums=1)(*inputs(L)),
    "grad with more": lambda L, f: f.grad(lambda x: (x.sum() ** 2, {"twice": x * 2}), has_aux=True)(inputs(L)[1]),
    "grad of a tree": lambda L, f: f.grad(lambda p: one(p["x"], p["y"][0]))({"x": inputs(L)[0], "y": [inputs(L)[1]]}),
    "vjp": lambda L, f: vjp_result(L),
    "jvp": lambda L, f: f.jvp(two, inputs(L), inputs(L)),
    "jacrev": lambda L, f: f.jacrev(each)(inputs(L)[0]),
    "jacfwd": lambda L, f: f.jacfwd(one, argnums=(0, 1))(*inputs(L)),
    "hessian": lambda L, f: f.hessian(each)(inputs(L)[1]),
    "hessian of two": lambda L, f: f.hessian(one, argnums=(0, 1))(*inputs(L)),
    "vmap": lambda L, f: f.vmap(lambda a, b: a * b.sum(), in_dims=(0, None), out_dims=1)(*inputs(L)),
    "vmap of vmap": lambda L, f: f.vmap(f.vmap(lambda a: a * 2), in_dims=1)(inputs(L)[0]),
    "vmap of grad": lambda L, f: f.vmap(f.grad(lambda y: (y**3).sum()))(inputs(L)[0]),
    "vmap of jacrev": lambda L, f: f.vmap(f.jacrev(each))(inputs(L)[0]),
}


@needs_torch
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("name", FUNC)
def test_func(name):
    same(*[FUNC[name](L, names_of(L)) for L in (flow, torch)])


def scaled(x, w):
    return (x * w).exp() * x.sum()


# transforms of a function of x that also reads w
OUTER = {
    "grad": lambda f, x, w: f.grad(lambda x: scaled(x, w).sum())(x),
    "grad of both": lambda f, x, w: f.grad(lambda x, w: scaled(x, w).sum(), argnums=(0, 1))(x, w.detach()),
    "grad_and_value": lambda f, x, w: f.grad_and_value(lambda x: (scaled(x, w).sum(), x * 2), has_aux=True)(x),
    "vjp": lambda f, x, w: f.vjp(lambda x: scaled(x, w), x)[1](ones_like(x)),
    "vjp of w": lambda f, x, w: f.vjp(lambda x: x.exp(), x)[1](w),
    "vjp value": lambda f, x, w: f.vjp(lambda x: scaled(x, w), x)[0],
    "jvp": lambda f, x, w: f.jvp(lambda x: scaled(x, w), (x,), (ones_like(x),)),
    "jvp of w": lambda f, x, w: f.jvp(lambda x: x.exp(), (x,), (w,)),
    "jacrev": lambda f, x, w: f.jacrev(lambda x: scaled(x, w))(x),
    "hessian": lambda f, x, w: f.hessian(lambda x: scaled(x, w).sum())(x),
    "vmap": lambda f, x, w: f.vmap(f.grad(lambda x: scaled(x, w.sum()).sum()))(x.reshape(2, 1)),
}


def ones_like(x):
    return x.detach() * 0 + 1


def outer_gradients(L, name, x_grad, w_grad, grad):
    """Results of a transform, and the gradients of tensors outside it after backward."""
    x, w = inputs(L)[1].requires_grad_(x_grad), inputs(L)[0][1].requires_grad_(w_grad)
    with L.set_grad_enabled(grad):
        results = OUTER[name](names_of(L), x, w)
    flat = []
    for result in results if isinstance(results, tuple) else (results,):
        flat += result if isinstance(result, tuple) else (result,)
    tracked = [out for out in flat if out.requires_grad]
    if tracked:
        sum((out**2).sum() for out in tracked).backward()
    return tuple(flat), [t.grad if t.grad is not None else t.detach() for t in (x, w)]


@needs_torch
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@in_cases("x_grad, w_grad, grad", [(0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1), (1, 1, 0)])
@pytest.mark.parametrize("name", OUTER)
def test_transforms_are_differentiated_by_outer_tensors(name, x_grad, w_grad, grad):
    """As in PyTorch, a result requires grad if it depends on a tensor outside the transform that does."""
    same(*[outer_gradients(L, name, bool(x_grad), bool(w_grad), bool(grad)) for L in (flow, torch)])


def test_transform_in_a_graph_has_a_second_derivative():
    """A step of meta-learning: the loss after a step by the gradients of `func.grad`."""

    def task(model, x, y):
        parameters = dict(model.named_parameters())
        loss = lambda p, x, y: ((func.functional_call(model, p, (x,)) - y) ** 2).mean()
        gradients = func.grad(loss)(parameters, x, y)
        return loss({name: p - 0.1 * gradients[name] for name, p in parameters.items()}, x, y)

    class Meta(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.config.exact(True)
            self.add_optimizer(flow.optim.SGD(model.parameters(), 0.1))

        def build(self, x, y):
            loss = task(self.model, x, y)
            loss.backward()
            return loss

    eager, traced = nn.Linear(2, 1), nn.Linear(2, 1)
    traced.load_state_dict(eager.state_dict())
    optimizer, graph = flow.optim.SGD(eager.parameters(), 0.1), Meta(traced)
    for n in (4, 5, 6, 4):
        x, y = flow.randn(n, 2), flow.randn(n, 1)
        loss = task(eager, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert flow.allclose(graph(x, y), loss)
    assert flow.allclose(eager.weight, traced.weight) and flow.allclose(eager.bias, traced.bias)


@needs_torch
def test_per_sample_gradients():
    ours = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    theirs.load_state_dict({name: torch.tensor(x.numpy()) for name, x in ours.state_dict().items()})
    before = [p for p in ours.parameters()]
    same(per_sample(flow, ours), per_sample(torch, theirs))
    assert all(p is q for p, q in zip(ours.parameters(), before))


def test_ensemble():
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    x = flow.ones(4, 2)
    out = func.vmap(lambda p: func.functional_call(models[0], p, (x,)))(parameters)
    assert out.shape == (3, 4, 1) and buffers == {} and flow.equal(out[2], models[2](x))


test_func_refuses = refusals(
    [
        (lambda: func.grad(each)(X), "must return a single number"),
        (lambda: func.grad(one, argnums=2)(X, X), "argnums must be the index of one of 2 arguments, got 2"),
        (lambda: func.grad(lambda x: x)(3), "must be a floating tensor"),
        (lambda: func.vmap(each, in_dims=None)(X), "no argument has a batch axis"),
        (lambda: func.vmap(one)(X, flow.ones(3)), "the same batch size, got 2, 3"),
        (lambda: func.vmap(lambda x: 3)(X), "must return tensors, got int"),
        (lambda: func.vmap(one, in_dims=(0,))(X, X), "1 entries for 2 arguments"),
        (lambda: func.vmap(each, in_dims="rows")(X), "'rows' does not match"),
        (lambda: func.vmap(each)(X[:0]), "the batch is empty"),
        (lambda: func.functional_call(nn.Linear(2, 1), {"w": X}, X), "1 names are unknown"),
        (lambda: func.jvp(each, X, X), "primals and tangents must be tuples"),
    ]
)


# ---- checkpoint --------------------------------------------------------------------------------------------------


def gradients(model, through):
    x = inputs(flow)[0].requires_grad_()
    inner = x * 2
    first = flow.autograd.grad(through(lambda k: model(k).exp(), inner).sum(), [x, model[0].weight], create_graph=True)
    second = flow.autograd.grad((first[0] ** 2).sum(), [x, model[0].weight], retain_graph=True)
    model.zero_grad()
    through(model, inner).sum().backward()
    return first, second, model[0].weight.grad, x.grad


def test_checkpoint_gives_the_same_results():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    same(gradients(model, lambda f, *args: f(*args)), gradients(model, checkpoint))
    x = inputs(flow)[0].requires_grad_()
    same(checkpoint_sequential(model, 2, x), model(x))
    assert not checkpoint(model.eval().requires_grad_(False), inputs(flow)[0]).requires_grad


def test_checkpoint_restores_random_state():
    drop, calls = nn.Dropout(0.5), []

    def noisy(x):
        calls.append(1)
        return drop(x) * x

    def run(through):
        flow.manual_seed(3)
        x = flow.ones(50, requires_grad=True)
        y, after = through(noisy, x), flow.rand(1)
        y.sum().backward()
        return y, x.grad, after, flow.rand(1)

    same(run(lambda f, x: f(x)), run(checkpoint))
    assert len(calls) == 3


def test_checkpoint_in_a_graph():
    model, x = nn.Linear(2, 2), flow.ones(1, 2)
    assert flow.equal(Predict(lambda x: checkpoint(model, x))(x), model(x))


test_checkpoint_refuses = refusals(
    [
        (lambda: checkpoint(3), "the first argument is a int"),
        (lambda: checkpoint(lambda x: (x, 3), X), "must return tensors"),
        (lambda: checkpoint_sequential([each, each], 3, X), "3 segments of 2 functions"),
    ]
)


# ---- autograd.Function -------------------------------------------------------------------------------------------


class Squared(flow.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    @flow.autograd.function.once_differentiable
    def backward(ctx, g):
        assert isinstance(ctx, flow.autograd.Function.FunctionCtx) and ctx.needs_input_grad == (True,)
        return 2 * ctx.saved_tensors[0] * g


def test_function_with_separate_setup_context():
    x, scale = flow.tensor([3.0], requires_grad=True), flow.tensor([2.0], requires_grad=True)
    (gradient,) = flow.autograd.grad(Squared.apply(x) * scale, [x], create_graph=True)
    assert gradient.item() == 12.0
    with pytest.raises(GradError, match="once_differentiable, so it has no second derivative"):
        gradient.backward()


def test_set_detect_anomaly():
    from minflow.core.mode import MODE

    with flow.autograd.set_detect_anomaly(True):
        assert MODE.get().anomaly
        flow.autograd.set_detect_anomaly(False)
        assert not MODE.get().anomaly
    assert not MODE.get().anomaly
