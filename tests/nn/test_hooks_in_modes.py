"""Every hook registration of PyTorch and OneFlow, in four modes: it works the same, or it is refused.

One program: `w` is trained, `h = x * w`, and the loss is the sum of a frozen model's output for `h`. A row of WORKS
says how a hook is registered; the loss and the new `w` are the same eagerly, in an nn.Graph, in a sync and an async
job, and in PyTorch if it is installed.
"""

import copy
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow import nn, typing as tp
from minflow.core.base.errors import GradError, GraphError, JobError, MinflowError, MinflowWarning, MissingNameError
from minflow.nn.modules import module as every
from tests.cases import Cases

X = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")


def net(library):
    """Two layers, the second inside a Sequential; frozen."""
    model = library.nn.Sequential(library.nn.Linear(2, 2, bias=False), library.nn.Sequential(library.nn.ReLU()))
    with library.no_grad():
        model[0].weight.copy_(library.tensor([[1.0, 2.0], [-1.0, -1.0]]))
    return model.requires_grad_(False)


class Hooks:
    """Registrations of a row. model: before the call.  leaf: on `w`.  inner: on the computed tensor `h`."""

    def __init__(self, model=None, leaf=None, inner=None):
        self.model = model or (lambda m, every: None)
        self.leaf, self.inner = leaf or (lambda w: None), inner or (lambda h: None)


def before(hook, **options):
    return Hooks(lambda m, every: m[0].register_forward_pre_hook(hook, **options))


def after(hook, **options):
    return Hooks(lambda m, every: m[1].register_forward_hook(hook, **options))


def twice(t):
    return t * 2


def once_more(t):
    return t + 1


def of_relu(hook):
    """A hook on every module that acts at one of them."""
    return lambda m, *rest: hook(m, *rest) if type(m).__name__ == "ReLU" else None


WORKS = {
    "nothing": Hooks(),
    "Tensor.register_hook of a leaf": Hooks(leaf=lambda w: w.register_hook(lambda g: g * 3)),
    "Tensor.register_hook in order": Hooks(
        leaf=lambda w: (w.register_hook(lambda g: g * 3), w.register_hook(lambda g: g + 1))
    ),
    "Tensor.register_hook that returns None": Hooks(leaf=lambda w: w.register_hook(lambda g: None)),
    "Tensor.register_hook of a computed tensor": Hooks(inner=lambda h: h.register_hook(lambda g: g.clamp(-1, 1))),
    "Tensor.register_hook in place": Hooks(inner=lambda h: h.register_hook(lambda g: g.mul_(0.5))),
    "Tensor.register_hook that is removed": Hooks(inner=lambda h: h.register_hook(lambda g: g * 9).remove()),
    "Node.register_prehook": Hooks(inner=lambda h: h.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))),
    "Node.register_hook": Hooks(
        inner=lambda h: h.grad_fn.register_hook(lambda ins, outs: tuple(g if g is None else g * 3 for g in ins))
    ),
    "forward_pre_hook": before(lambda m, args: (args[0] * 2,)),
    "forward_pre_hook with a bare tensor": before(lambda m, args: args[0] * 2),
    "forward_pre_hook with_kwargs": before(lambda m, args, kwargs: ((twice(args[0]),), kwargs), with_kwargs=True),
    "forward_pre_hook prepend": Hooks(
        lambda m, every: (
            m[0].register_forward_pre_hook(lambda m, args: twice(args[0])),
            m[0].register_forward_pre_hook(lambda m, args: once_more(args[0]), prepend=True),
        )
    ),
    "forward_hook": after(lambda m, args, out: out * 2),
    "forward_hook with_kwargs": after(lambda m, args, kwargs, out: out + args[0], with_kwargs=True),
    "forward_hook prepend": Hooks(
        lambda m, every: (
            m[1].register_forward_hook(lambda m, args, out: twice(out)),
            m[1].register_forward_hook(lambda m, args, out: once_more(out), prepend=True),
        )
    ),
    "forward_hook always_call": after(lambda m, args, out: out * 2, always_call=True),
    "full_backward_pre_hook": Hooks(
        lambda m, every: m[1].register_full_backward_pre_hook(lambda m, grads: (grads[0] * 3,))
    ),
    "full_backward_hook": Hooks(lambda m, every: m[1].register_full_backward_hook(lambda m, ins, outs: (ins[0] * 3,))),
    "full_backward_hook reads grad_output": Hooks(
        lambda m, every: m[1].register_full_backward_hook(lambda m, ins, outs: (ins[0] + outs[0],))
    ),
    "full_backward_hook prepend": Hooks(
        lambda m, every: (
            m[1].register_full_backward_hook(lambda m, ins, outs: (twice(ins[0]),)),
            m[1].register_full_backward_hook(lambda m, ins, outs: (once_more(ins[0]),), prepend=True),
        )
    ),
    "every forward_pre_hook": Hooks(
        lambda m, every: every.register_module_forward_pre_hook(of_relu(lambda m, args: (args[0] * 2,)))
    ),
    "every forward_hook before its own": Hooks(
        lambda m, every: (
            m[1][0].register_forward_hook(lambda m, args, out: out + 1),
            every.register_module_forward_hook(of_relu(lambda m, args, out: out * 2)),
        )
    ),
    "every full_backward_pre_hook": Hooks(
        lambda m, every: every.register_module_full_backward_pre_hook(of_relu(lambda m, grads: (grads[0] * 2,)))
    ),
    "every full_backward_hook before its own": Hooks(
        lambda m, every: (
            m[1][0].register_full_backward_hook(lambda m, ins, outs: (ins[0] + 1,)),
            every.register_module_full_backward_hook(of_relu(lambda m, ins, outs: (ins[0] * 2,))),
        )
    ),
    "weight_norm": Hooks(lambda m, every: m.append(normed(m, "weight_norm"))),
}
NOT_IN_JOBS = {  # the variables of a job have no `.grad`
    "register_post_accumulate_grad_hook": Hooks(
        leaf=lambda w: w.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", p.grad * 3))
    ),
    "register_post_accumulate_grad_hook after register_hook": Hooks(
        leaf=lambda w: (
            w.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", p.grad + 1)),
            w.register_hook(lambda g: g * 3),
        )
    ),
}
NOT_IN_JOBS["spectral_norm"] = Hooks(lambda m, every: m.append(normed(m, "spectral_norm")))  # it writes its buffers
EVERY_ROW = {**WORKS, **NOT_IN_JOBS}


def normed(model, norm):
    """A layer whose weight is computed, in the library of the model."""
    library = flow if isinstance(model, nn.Module) else pytest.importorskip("torch")
    layer = library.nn.Linear(2, 1, bias=False)
    with library.no_grad():
        layer.weight.copy_(library.tensor([[3.0, 4.0]]))
    getattr(library.nn.utils, norm)(layer)
    if norm == "spectral_norm":
        with library.no_grad():
            layer.weight_u.copy_(library.tensor([1.0])), layer.weight_v.copy_(library.tensor([0.6, 0.8]))
    return layer


class Registered:
    """The module-wide registrations of a library, removed at the end."""

    def __init__(self, module):
        self.module, self.handles = module, []

    def __getattr__(self, name):
        def register(hook, **options):
            self.handles.append(getattr(self.module, name)(hook, **options))

        return register

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


def eager(hooks, library=flow, module=every):
    with Registered(module) as registered:
        model, w = net(library), library.nn.Parameter(library.tensor([0.5, 1.0]))
        hooks.model(model, registered)
        hooks.leaf(w)
        optimizer = library.optim.SGD([w], lr=0.125)
        h = library.tensor(X) * w
        hooks.inner(h)
        loss = model(h).sum()
        loss.backward()
        optimizer.step()
        return loss.item(), w.tolist()


class Whole(nn.Module):
    def __init__(self, model, inner):
        super().__init__()
        self.model, self.inner, self.w = model, inner, nn.Parameter(flow.tensor([0.5, 1.0]))

    def forward(self, x):
        h = x * self.w
        self.inner(h)
        return self.model(h).sum()


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD([model.w], lr=0.125))

    def build(self, x):
        loss = self.model(x)
        loss.backward()
        return loss


def graph(hooks):
    with Registered(every) as registered:
        model = net(flow)
        hooks.model(model, registered)
        whole = Whole(model, hooks.inner)
        hooks.leaf(whole.w)
        return Train(whole)(flow.tensor(X)).item(), whole.w.tolist()


def job(hooks, result):
    flow.clear_default_session()
    leaf, inner = hooks.leaf, hooks.inner
    with Registered(every) as registered:
        model = net(flow)
        hooks.model(model, registered)

        @flow.global_function(type="train")
        def train(x: tp.Numpy.Placeholder((2, 2))) -> result:
            w = flow.get_variable("w", (2,), initializer=flow.zeros_initializer())
            leaf(w)
            h = x * w
            inner(h)
            loss = model(h).sum()
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.125])).minimize(loss)
            return loss

        train.compile()
        flow.load_variables({"w": np.array([0.5, 1.0], "float32")})
        answer = train(X)
        loss = float(answer if result is tp.Numpy else answer.get())
        return loss, flow.get_all_variables()["w"].numpy().tolist()


JOBS = {"sync": tp.Numpy, "async": tp.Callback[tp.Numpy]}
NO_JOB = {
    "register_post_accumulate_grad_hook": (
        GradError, r"while a job is built, whose variables have no .grad(.|\n)*float32\[2\]"
    ),
    "register_post_accumulate_grad_hook after register_hook": (GradError, "whose variables have no .grad"),
    "spectral_norm": (JobError, r"job train writes a tensor that is not a variable(.|\n)*float32\[1\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY_ROW)
def test_hooks_match_eager_in_each_mode(name):
    hooks, wanted = EVERY_ROW[name], eager(EVERY_ROW[name])
    with Cases() as case:
        with case("graph"):
            assert graph(hooks) == wanted
        for mode, result in JOBS.items():
            with case(f"{mode} job"):
                if name in WORKS:
                    assert job(hooks, result) == wanted
                else:
                    kind, what = NO_JOB[name]
                    with pytest.raises(kind, match=what):
                        job(hooks, result)


def test_loss_and_weights_of_each_row(golden):
    """Detects, even without PyTorch, a hook that is not called in any mode."""
    found = {name: eager(EVERY_ROW[name]) for name in EVERY_ROW}
    golden("hooks", "\n".join(f"{name}: {loss:.4f} {w[0]:.4f} {w[1]:.4f}" for name, (loss, w) in found.items()))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", EVERY_ROW)
def test_hooks_match_pytorch(name):
    torch = pytest.importorskip("torch")
    loss, w = eager(EVERY_ROW[name])
    theirs, their_w = eager(EVERY_ROW[name], torch, torch.nn.modules.module)
    assert loss == pytest.approx(theirs) and w == pytest.approx(their_w)
    assert name == "nothing" or "None" in name or "removed" in name or "norm" in name or (loss, w) != eager(Hooks())


# ---- refused ---------------------------------------------------------------------------------------------------------

NAMES = {  # in each mode: there is no such name
    "register_module_backward_hook": ("nn.modules.module", lambda: every.register_module_backward_hook),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_unsupported_registration_suggests_an_alternative(name):
    place, ask = NAMES[name]
    with pytest.raises(MissingNameError, match="has no") as caught:
        ask()
    assert place.split(".")[-1] in str(caught.value) and len(caught.value.hint) > 20 and "dir(" not in caught.value.hint


STEPS = {
    "Optimizer.register_step_pre_hook": lambda o: o.register_step_pre_hook(lambda o, args, kwargs: None),
    "Optimizer.register_step_post_hook": lambda o: o.register_step_post_hook(lambda o, args, kwargs: None),
    "register_optimizer_step_pre_hook": lambda o: flow.optim.optimizer.register_optimizer_step_pre_hook(
        lambda o, args, kwargs: None
    ),
    "register_optimizer_step_post_hook": lambda o: flow.optim.optimizer.register_optimizer_step_post_hook(
        lambda o, args, kwargs: None
    ),
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_graph_refuses_step_hooks_even_after_its_first_call(name, late):
    model = Whole(net(flow), lambda h: None)
    graph = Train(model)
    if late:
        graph(flow.tensor(X))
    before = model.w.tolist()
    with STEPS[name](graph.optimizers[0][0]):
        with pytest.raises(GraphError, match="SGD cannot be part of a graph: it has step hooks"):
            graph(flow.tensor(X))
    assert model.w.tolist() == before
    graph(flow.tensor(X))
    assert model.w.tolist() != before


def test_global_optimizer_hooks():
    seen, p = [], nn.Parameter(flow.ones(2))
    optimizer = flow.optim.SGD([p], lr=1.0)
    p.grad = flow.ones(2)
    register = flow.optim.optimizer
    optimizer.register_step_pre_hook(lambda *rest: seen.append("own before"))
    optimizer.register_step_post_hook(lambda *rest: seen.append("own after"))
    with register.register_optimizer_step_pre_hook(lambda *rest: seen.append("before")):
        with register.register_optimizer_step_post_hook(lambda *rest: seen.append("after")):
            optimizer.step()
    optimizer.step()
    assert seen == ["before", "own before", "own after", "after", "own before", "own after"]


def test_hook_in_a_job_requires_a_job_variable():
    weight = flow.ones(2, requires_grad=True)

    @flow.global_function(type="predict")
    def adds(x: tp.Numpy.Placeholder((2, 2))) -> tp.Numpy:
        weight.register_hook(lambda g: g * 3)
        return x * weight

    with pytest.raises(JobError, match=r"job adds registers a hook on a tensor that is not a variable(.|\n)*float32"):
        adds(X)


def test_hook_on_an_input_is_refused():
    whole, graph = graph_of()
    x, before = flow.tensor(X, requires_grad=True), whole.w.tolist()
    graph(x)
    for hooked in (x, x * 2):
        now = whole.w.tolist()
        with hooked.register_hook(lambda g: g):
            with pytest.raises(GraphError, match=r"an input has a hook(.|\n)*float32\[2, 2\]"):
                graph(hooked)
        assert whole.w.tolist() == now != before
        graph(hooked)


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_hook_in_build_on_a_computed_tensor():
    seen = []

    class Hooked(Train):
        def build(self, x):
            x = x.requires_grad_()
            x.register_hook(lambda g: seen.append(g.shape))
            return super().build(x)

    Hooked(Whole(net(flow), lambda h: None))(flow.tensor(X))
    assert seen == [(2, 2)]


def test_callable_objects_as_hooks_are_reported():
    class Clip:
        def __init__(self):
            self.limit = 3.0

        def __call__(self, g):
            return g.clamp(-self.limit, self.limit)

        def method(self, m, args, out):
            return out * self.limit

    for register, name in (
        (lambda whole: whole.w.register_hook(Clip()), "a hook, Clip"),
        (lambda whole: whole.model.register_forward_hook(Clip().method), "a hook, .*Clip.method"),
    ):
        whole, graph = graph_of()
        register(whole)
        with pytest.warns(MinflowWarning, match=rf"uses {name} \(an object of class Clip\) while it is built"):
            graph(flow.tensor(X))


def test_handles_match_pytorch():
    from minflow.utils.hooks import RemovableHandle

    hooks = {}
    handle = RemovableHandle(hooks)
    hooks[handle.id] = print
    handle.remove(), handle.remove()
    assert hooks == {} and isinstance(nn.ReLU().register_forward_hook(print), RemovableHandle)


def test_copy_has_no_hooks():
    for twin in (copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))):
        p = nn.Parameter(flow.ones(2))
        p.register_hook(lambda g: g * 3)
        q = twin(p)
        (p.sum() + q.sum()).backward()
        assert p.grad.tolist() == [3, 3] and q.grad.tolist() == [1, 1]


def test_accumulating_graph_refuses_post_accumulate_hooks():
    class Accumulating(Train):
        def __init__(self, model):
            super().__init__(model)
            self.config.set_gradient_accumulation_steps(2)

    model = Whole(net(flow), lambda h: None)
    model.w.register_hook(lambda g: g * 3)
    eagerly = eager(Hooks(leaf=lambda w: w.register_hook(lambda g: g * 1.5)))[1]  # the mean of two losses
    Accumulating(model)(flow.tensor(X))
    assert model.w.tolist() == eagerly
    model.w.register_post_accumulate_grad_hook(lambda p: None)
    with pytest.raises(GraphError, match="register_post_accumulate_grad_hook in a graph that accumulates 2 gradients"):
        Accumulating(model)(flow.tensor(X))


def test_hook_registered_at_each_call_is_refused():
    class Adds(Whole):
        def forward(self, x):
            handle = self.w.register_hook(lambda g: g * 3)
            if self.removes:
                handle.remove()
            return super().forward(x)

    for removes in (True, False):
        model = Adds(net(flow), lambda h: None)
        model.removes = removes
        graph = Train(model)
        if removes:
            graph(flow.tensor(X))
            assert model.w.tolist() == eager(Hooks())[1]
            continue
        with pytest.raises(GraphError, match="eagerly each call would add one more") as caught:
            graph(flow.tensor(X))
        assert "float32[2]" in str(caught.value) and "handle.remove()" in caught.value.hint


# ---- the key of a plan -----------------------------------------------------------------------------------------------

LATER = {
    "leaf": lambda m: m.w.register_hook(lambda g: g * 3),
    "after": lambda m: m.w.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", p.grad * 3)),
    "frozen": lambda m: m.model[0].register_forward_hook(lambda m, args, out: out * 3),
    "every": lambda m: every.register_module_full_backward_hook(of_relu(lambda m, ins, outs: (ins[0] * 3,))),
}


@pytest.mark.parametrize("kind", LATER)
def test_adding_or_removing_a_hook_changes_the_plan(kind):
    x, (whole, graph), (alone, optimizer) = flow.tensor(X), graph_of(), eager_of()
    for registered in (False, True, False, False):
        handles = [LATER[kind](model) for model in (whole, alone)] if registered and kind != "every" else []
        handles += [LATER[kind](whole)] if registered and kind == "every" else []
        optimizer.zero_grad()
        loss = alone(x)
        loss.backward()
        optimizer.step()
        assert graph(x).item() == loss.item() and whole.w.tolist() == alone.w.tolist()
        for handle in handles:
            handle.remove()
    assert len(graph._history) == 2 and "hooks" in graph._history[1].reason[0][0]


def graph_of():
    whole = Whole(net(flow), lambda h: None)
    return whole, Train(whole)


def eager_of():
    alone = Whole(net(flow), lambda h: None)
    return alone, flow.optim.SGD([alone.w], lr=0.125)


def test_reregistered_function_reuses_its_plan():
    whole, graph = graph_of()

    def triple(g):
        return g * 3

    for _ in range(3):
        with whole.w.register_hook(triple):
            graph(flow.tensor(X))
        graph(flow.tensor(X))
    assert len(graph._history) == 2


def test_hook_on_a_captured_tensor():
    w = flow.tensor([0.5, 1.0], requires_grad=True)

    class Captures(Train):
        def build(self, x):
            loss = self.model(x * w)
            loss.backward()
            return w.grad

    graph, x = Captures(Whole(net(flow), lambda h: None)), flow.tensor(X)
    graph.optimizers[0][0].param_groups[0]["lr"] = 0.0
    plain = graph(x).tolist()
    with w.register_hook(lambda g: g * 3):
        assert graph(x).tolist() == [3 * g for g in plain]
    assert graph(x).tolist() == plain


# ---- hook results, and the order of hooks ----------------------------------------------------------------------------

RETURNED = {
    "a number": (lambda g: 3, "must return a tensor, or None to keep the gradient, got an int", "3"),
    "a list": (lambda g: [g], "must return a tensor, or None to keep the gradient, got a list", r"\["),
    "another shape": (lambda g: g.sum(), "changed the shape of the gradient", r"float32\[\]"),
    "another dtype": (lambda g: g.double(), "changed the dtype of the gradient", r"float64\[2\]"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_hook_results_are_checked(name):
    hook, what, returned = RETURNED[name]
    hooks = Hooks(leaf=lambda w: w.register_hook(hook))
    with Cases() as case:
        for mode, run in {"eager": eager, "graph": graph, "job": lambda hooks: job(hooks, tp.Numpy)}.items():
            with case(mode), pytest.raises(MinflowError, match=rf"the hook <lambda> {what}\n") as caught:
                run(hooks)
            with case(f"{mode}: values of the error"):
                assert caught.match(rf"returned +{returned}") and caught.match(r"gradient +float32\[2\]")
                assert caught.match(r"hook +<lambda> at test_hooks_in_modes.py:\d+")


def test_other_hook_results_are_checked():
    cases = [
        (lambda m: m.register_full_backward_hook(lambda m, ins, outs: ins * 2), "must return 1 gradient, got 2"),
        (lambda m: m.register_full_backward_pre_hook(lambda m, outs: (3,)), "must return tensors, .* got an int"),
        (lambda m: m.register_full_backward_hook(lambda m, ins, outs: ins[0].sum()), "changed the shape"),
        (lambda m: m.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True), r"must return \(args, kwargs\)"),
    ]
    for register, what in cases:
        layer = nn.ReLU()
        register(layer)
        with pytest.raises(MinflowError, match=f"the hook <lambda> {what}"):
            layer(flow.ones(2, requires_grad=True)).sum().backward()
    x = flow.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: 3)
    with pytest.raises(GradError, match="must return None, got an int"):
        (x * 2).sum().backward()
    for register in (x.register_hook, (x * 1).grad_fn.register_hook, nn.ReLU().register_forward_hook):
        with pytest.raises(MinflowError, match="a hook must be a function, got an int"):
            register(3)
    optimizer = flow.optim.SGD([x], lr=1.0)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(MinflowError, match=r"must return \(args, kwargs\) or None, got an int"):
        optimizer.step()


def test_tensors_that_cannot_have_hooks():
    x = flow.ones(2, requires_grad=True)
    for register, what in (
        (flow.ones(2).register_hook, "register_hook on a tensor that does not require grad"),
        (flow.ones(2).register_post_accumulate_grad_hook, "on a tensor that does not require grad"),
        ((x * 1).register_post_accumulate_grad_hook, "on a computed tensor, which accumulates no .grad"),
        ((x * 1).grad_fn.next_functions[0][0].register_hook, "a hook on the node of a leaf"),
    ):
        with pytest.raises(GradError, match=what):
            register(lambda g: None)


def test_hook_order_matches_pytorch():
    order = []

    def note(name):
        return lambda g: order.append(name)

    w1, w2 = (flow.ones(2, 2, requires_grad=True) for _ in range(2))
    for w, name in ((w1, "w1"), (w2, "w2")):
        w.register_post_accumulate_grad_hook(note(f"after {name}"))
        w.register_hook(note(name))
    h = flow.ones(1, 2) @ w1
    y = h @ w2
    h.register_hook(note("h")), y.register_hook(note("y"))
    y.sum().backward(retain_graph=True)
    assert order == ["y", "w2", "after w2", "h", "w1", "after w1"]
    order.clear()
    flow.autograd.grad(y.sum(), [w2], retain_graph=True)  # w2 does not depend on h and w1
    assert order == ["y", "w2"]
    order.clear()
    y.sum().backward(inputs=[w1], retain_graph=True)
    assert order == ["y", "h", "w1", "after w1"]
    order.clear()
    flow.autograd.grad(y.sum(), [h])
    assert order == ["y", "h"]


def test_hook_survives_a_change_of_its_leaf():
    def gradient(change):
        layer = nn.Linear(2, 1, bias=False)
        layer.weight.register_hook(lambda g: g * 10)
        change(layer)
        layer(flow.ones(1, 2, dtype=layer.weight.dtype)).sum().backward()
        return layer.weight.grad.tolist()

    assert gradient(lambda m: m.double()) == [[10, 10]]
    assert gradient(lambda m: m.requires_grad_(False).requires_grad_()) == [[10, 10]]
    assert gradient(lambda m: setattr(m.weight, "data", flow.ones(1, 2, dtype=flow.float64))) == [[10, 10]]


def test_optimizer_in_backward():
    w = flow.tensor([1.0, 1.0], requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.5)
    w.register_post_accumulate_grad_hook(lambda p: (optimizer.step(), optimizer.zero_grad()) and None)
    (w * 2).sum().backward()
    assert w.tolist() == [0, 0] and w.grad is None


def test_checkpoint_runs_each_hook_once():
    order, w, x = [], flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    for tensor, name in ((w, "w"), (x, "x"), (h := x * 2, "h")):
        tensor.register_hook(lambda g, name=name: order.append(name))
    flow.utils.checkpoint.checkpoint(lambda v: v * w, h).sum().backward()
    assert order == ["w", "h", "x"]
    whole, graph = graph_of()
    whole.w.register_hook(lambda g: g * 3)
    whole.to(nn.graph.GraphModule).activation_checkpointing = True
    graph(flow.tensor(X))
    assert whole.w.tolist() == eager(Hooks(leaf=lambda w: w.register_hook(lambda g: g * 3)))[1]


def test_node_hooks_get_the_gradients_of_pytorch():
    x, seen = flow.ones(2, requires_grad=True), []
    y = x * flow.tensor([3.0, 3.0])
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].tolist(), ins[1], outs[0].tolist())))
    y.sum().backward()
    assert seen == [([6, 6], None, [2, 2])] and x.grad.tolist() == [6, 6]
