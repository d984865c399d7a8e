"""Backward: one algorithm for the tape and for a traced graph, written in ops.

Gradient rules are ordinary programs on Tensors, run by the current mode; so gradients can be differentiated again and a
traced backward is ordinary nodes. Un-broadcasting and un-promotion happen once, in `fit`.
Read next: `eager.py` and `trace.py`, which restore what rules need (`restore`) and know whose leaf a Value is (`leaf`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from . import events
from .errors import GradError, NonFiniteError, ShapeError
from .ir import Freed, Node, Value, outputs_of, toposort, where_text
from .op import MODE, NUMBERS, Mode, Op, caller, describe, fail, name_of
from .ops.elementwise import add
from .ops.shape import cast, clone, full, sum_to
from .rebind import in_place
from .spec import Spec


# ---- the backward pass -------------------------------------------------------------------------------------------


def backprop(roots: Sequence, seeds: Sequence, retain_graph: bool, create_graph: bool, wanted: Iterable[Value] = ()):
    """Gradients by Value: of every leaf that the roots depend on, and of the values in `wanted`."""
    where, wanted = caller(3), set(wanted)
    grads: dict[Value, object] = {}
    token = MODE.set(MODE.get().but(grad=create_graph))
    mode = MODE.get()
    try:
        for root, seed in zip(roots, seeds):
            accumulate(grads, root.value, seed)
        order = toposort([root.value.node for root in roots])
        while order:
            node = order.pop()
            values = outputs_of(node)
            if node.hooks:
                run_hooks(node, values, grads)
            if not node.needs:
                continue  # a leaf keeps its gradient in `grads`
            gs = [grads.get(v) if v in wanted else grads.pop(v, None) for v in values]
            if all(g is None for g in gs):
                continue
            if node.saved.__class__ is Freed:
                raise second_backward(node)
            for i, gi in input_gradients(mode, node, gs):
                if gi is None:
                    continue
                value = node.inputs[i]
                if gi.spec is not value.spec:
                    gi = fit(gi, value.spec)
                if mode.anomaly and gi.array is not None and np.isnan(gi.array).any():
                    raise anomaly(node, i, gi, gs)
                accumulate(grads, value, gi)
            if not retain_graph and node.saved:
                node.saved = Freed(where)
                if node.op.joint is not None:
                    node.attrs["ctx"].kept = ()
    finally:
        MODE.reset(token)
    return grads


def accumulate(grads: dict, value: Value, g) -> None:
    grads[value] = add(grads[value], g) if value in grads else g


def input_gradients(mode: Mode, node: Node, gs: list):
    """(input number, gradient) for each input of a node that wants one."""
    op, needs, saved = node.op, node.needs, node.saved
    if op.joint is not None:
        yield from op.joint(node, gs)
        return
    slots = op.saves[needs]
    if op.variadic:
        rule, asks = op.rules[0]
        specs = [x.spec if isinstance(x, Value) else x for x in node.inputs]
        for i, value in enumerate(node.inputs):
            if needs >> i & 1:
                yield i, rule(*[i if kind == "position" else specs if kind == "specs" else
                                argument(mode, node, kind, key, gs, saved, slots) for kind, key in asks])  # fmt: skip
        return
    for i, (rule, asks) in op.rules.items():
        if needs >> i & 1:
            yield i, rule(*[argument(mode, node, kind, key, gs, saved, slots) for kind, key in asks])


def argument(mode: Mode, node: Node, kind: str, key, gs: list, saved, slots):
    """What one argument of a rule stands for."""
    if kind == "g":
        return gs[0] if len(gs) == 1 else tuple(gs)
    if kind == "attr":
        return node.attrs[key]
    x = node.inputs[key] if key >= 0 else None
    if kind == "spec":
        return x.spec if x.__class__ is Value else x
    return x if x.__class__ in NUMBERS else mode.restore(node, key, saved and saved[slots.index(key)])


def fit(g, spec: Spec):
    """Un-broadcast and un-promote, here and nowhere else."""
    if g.shape != spec.shape:
        g = sum_to(g, shape=spec.shape)
    return g if g.dtype is spec.dtype else cast(g, dtype=spec.dtype)


def run_hooks(node: Node, values: list[Value], grads: dict) -> None:
    for index, hooks in node.hooks.items():
        for hook in tuple(hooks.values()):
            g = grads.get(values[index])
            if g is None:
                break
            replaced = hook(g)
            if replaced is not None:
                grads[values[index]] = replaced


def second_backward(node: Node) -> GradError:
    first = where_text(node.saved.where)
    return GradError(
        f"backward a second time: what {node.op} saved was freed by the first backward, at {first}",
        values={"op": f"{node.op}, made at {where_text(node.where)}", "first backward": first},
        where=f"at {where_text(caller(4))}",
        hint="loss.backward(retain_graph=True) in the first call; or compute the loss anew before the second",
    )


def anomaly(node: Node, i: int, gi, gs) -> NonFiniteError:
    before = any(g is not None and g.array is not None and np.isnan(g.array).any() for g in gs)
    name = node.op.inputs[0][1:] if node.op.variadic else node.op.inputs[i]
    return NonFiniteError(
        f"the gradient of {node.op} with respect to {name} has {int(np.isnan(gi.array).sum())} NaN of {gi.array.size} numbers",
        values={"op": f"{node.op}, made at {where_text(node.where)}", "gradient": gi.spec, "module": node.scope or "-",
                "gradient that came in": "had NaN already" if before else "had none"},
        where=f"at {where_text(caller(4))}",
        hint="look at the numbers that went into that line: log or sqrt of 0, 0/0, or values that have grown without bound",
    )  # fmt: skip


# ---- the public functions ----------------------------------------------------------------------------------------


def as_tuple(x) -> tuple:
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def seeds_for(outputs: Sequence, gradients: Sequence, verb: str) -> list:
    """The cotangents to start from: given ones, or 1 for a scalar."""
    seeds = []
    for out, g in zip(outputs, gradients):
        if not out.needs:
            raise no_gradient(out, verb)
        if g is None:
            if out.spec.size != 1:
                fail(
                    GradError,
                    f"{verb}: only a scalar has one gradient, and this tensor has {out.spec.size} numbers",
                    "reduce it first: .sum() or .mean(); or pass gradient=, a tensor of the same shape",
                    output=out,
                )
            g = full(shape=out.shape, value=1, dtype=out.dtype)
        else:
            g = MODE.get().tensor_of(g)
            if g.shape != out.shape:
                fail(ShapeError, f"{verb}: the gradient given has shape {g.shape}, the tensor has {out.shape}",
                     "the gradient has a number for each number of the tensor", output=out, gradient=g)  # fmt: skip
            g = g if g.dtype is out.dtype else cast(g, dtype=out.dtype)
        seeds.append(g)
    return seeds


def no_gradient(out, verb: str) -> GradError:
    return GradError(
        f"{verb}: this tensor was not computed from anything that requires grad",
        values={name_of(out, "output"): describe(out)},
        where=f"at {where_text(caller(4))}",
        hint=(
            "requires_grad=True on what you want gradients of; it is lost by .detach(), .item(), .numpy(), float(), "
            "under no_grad, and by making a new tensor from numbers"
        ),
    )


def backward(tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None) -> None:
    """Add d tensors / d leaf to `.grad` of every leaf (or of `inputs` alone).

    grad_tensors: cotangents, needed where a tensor is not a scalar.  retain_graph: keep what was saved, for another backward
    (default: create_graph).  create_graph: record the backward itself, for second derivatives.
    Raises GradError: nothing requires grad, not a scalar, a second backward, or a saved value was changed in place.
    """
    mode = MODE.get()
    outputs = [mode.own(t) for t in as_tuple(tensors)]
    given = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    seeds = seeds_for(outputs, given, "backward")
    only = None if inputs is None else [mode.own(x) for x in as_tuple(inputs)]
    wanted = [x.value for x in only or () if x.value is not None]
    grads = backprop(outputs, seeds, create_graph if retain_graph is None else retain_graph, create_graph, wanted)
    taken: set[int] = {id(seed) for seed in seeds}
    for value, g in grads.items():
        leaf = mode.leaf(value) if only is None else next((x for x in only if x.value == value), None)
        if leaf is not None:
            store(leaf, g, taken, create_graph)
    if events.LISTENERS:
        events.emit(events.BackwardDone(len(grads), where_text(caller(3))))


def store(leaf, g, taken: set[int], create_graph: bool) -> None:
    """Add g to a leaf's .grad. No two leaves share an array as .grad, and none is a view."""
    if leaf.gradient is not None:
        leaf.gradient.mixed = leaf.gradient.spent  # a step has used it already: optim warns if it is used again
        if create_graph:
            leaf.gradient = add(leaf.gradient, g)
        else:
            with no_grad():
                in_place(add, leaf.gradient, g)
    else:
        if g.alias is not None or id(g) in taken or (g.array is not None and g.array.base is not None):
            g = clone(g)
        taken.add(id(g))
        leaf.gradient = g


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False) -> tuple:
    """d outputs / d inputs, a tuple with a tensor for each input, without touching any `.grad`.

    allow_unused: give None for an input that the outputs do not depend on (otherwise a GradError names it).
    """
    mode = MODE.get()
    outs = [mode.own(t) for t in as_tuple(outputs)]
    sources = [mode.own(x) for x in as_tuple(inputs)]
    for i, x in enumerate(sources):
        if not x.needs:
            fail(GradError, f"grad: input {i} does not require grad", "x.requires_grad_() before computing the output", input=x)
    given = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outs)
    seeds = seeds_for(outs, given, "grad")
    found = backprop(outs, seeds, create_graph if retain_graph is None else retain_graph, create_graph, [x.value for x in sources])
    results = tuple([found.get(x.value) for x in sources])
    for i, (x, g) in enumerate(zip(sources, results)):
        if g is None and not allow_unused:
            fail(GradError, f"grad: the outputs do not depend on input {i}", "allow_unused=True gives None for it", input=x)
    return results


class GradMode:
    """Turns the recording of gradients on or off: as a context, or as a decorator of a function."""

    wanted = True

    def __init__(self):
        self.tokens: list = []

    def __enter__(self):
        self.tokens.append(MODE.set(MODE.get().but(grad=self.wanted)))
        return self

    def __exit__(self, *error):
        MODE.reset(self.tokens.pop())

    def __call__(self, function):
        import functools
        import inspect

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args, **kwargs):
                source = function(*args, **kwargs)
                while True:  # the mode holds inside the generator's own steps, not in the caller's between them
                    with self.clone():
                        try:
                            item = next(source)
                        except StopIteration as stop:
                            return stop.value
                    yield item

            return generator

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def clone(self):
        twin = type(self).__new__(type(self))
        twin.wanted, twin.tokens = self.wanted, []
        return twin


class no_grad(GradMode):
    """Within it nothing is recorded: `with flow.no_grad(): ...`, or `@flow.no_grad()` on a function."""

    wanted = False

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is None:
            return self
        self.tokens = []
        return self(function)  # @flow.no_grad without the parentheses

    def __init__(self, function=None):
        super().__init__()


class inference_mode(no_grad):
    """The same as `no_grad`; `inference_mode(False)` changes nothing."""

    def __new__(cls, mode=True):
        self = super().__new__(cls) if not callable(mode) else super().__new__(cls, mode)
        if isinstance(mode, bool) and not mode:
            self.wanted = MODE.get().grad
        return self

    def __init__(self, mode=True):
        GradMode.__init__(self)


class enable_grad(GradMode):
    """Within it gradients are recorded, also inside `no_grad`."""

    wanted = True


class set_grad_enabled(GradMode):
    """Turn recording on or off, at once; as a context, until its end."""

    def __init__(self, mode: bool):
        super().__init__()
        self.wanted = bool(mode)
        self.tokens.append(MODE.set(MODE.get().but(grad=self.wanted)))

    def __enter__(self):
        return self

    def __call__(self, function):
        MODE.reset(self.tokens.pop())  # as a decorator it holds inside the function only
        return super().__call__(function)

    def clone(self):
        twin = GradMode()
        twin.wanted = self.wanted
        return twin


def is_grad_enabled() -> bool:
    """Are gradients recorded now?"""
    return MODE.get().grad


class detect_anomaly(GradMode):
    """Within it backward checks every gradient and stops at the first NaN, naming the op and the line that made it."""

    def __init__(self, check_nan: bool = True):
        super().__init__()
        self.check = check_nan

    def __enter__(self):
        self.tokens.append(MODE.set(MODE.get().but(anomaly=self.check)))
        return self

    def clone(self):
        return detect_anomaly(self.check)


# ---- gradients of one's own --------------------------------------------------------------------------------------


class Context:
    """What `Function.forward` leaves for `backward`: `save_for_backward(*tensors)`, `saved_tensors`, any attribute.

    needs_input_grad: a bool per argument of forward.
    """

    def __init__(self):
        self.kept: tuple = ()
        self.outputs: tuple = ()
        self.differentiable: dict[int, bool] = {}
        self.materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self.node: Node | None = None

    def save_for_backward(self, *tensors) -> None:
        self.kept = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        self.differentiable = {id(t): False for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """False: backward gets None, not zeros, for an output that no gradient came to."""
        self.materialize = value

    @property
    def saved_tensors(self) -> tuple:
        if self.node is not None and self.node.saved.__class__ is Freed:
            raise second_backward(self.node)
        mode = MODE.get()
        return tuple([mode.revive(self.node, entry) if isinstance(entry, tuple) else entry for entry in self.kept])


class Function:
    """An operation with a gradient of one's own.

    Subclass it with static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, and call `Sub.apply(*args)`.
    backward returns a gradient (or None) for each argument of forward. It is written on Tensors, so it can itself be
    differentiated.
    """

    @staticmethod
    def forward(ctx, *args):
        raise GradError("this Function has no forward", hint="@staticmethod def forward(ctx, x): ...")

    @staticmethod
    def backward(ctx, *grads):
        raise GradError("this Function has no backward", hint="@staticmethod def backward(ctx, grad): ...")

    @classmethod
    def apply(cls, *args):
        mode, ctx = MODE.get(), Context()
        places = [i for i, x in enumerate(args) if hasattr(x, "spec")]
        tensors = [mode.own(args[i]) for i in places]
        ctx.needs_input_grad = tuple([bool(getattr(x, "needs", False)) for x in args])
        with no_grad():
            results = cls.forward(ctx, *args)
        outs = as_tuple(results)
        for i, out in enumerate(outs):
            if not hasattr(out, "spec"):
                fail(GradError, f"{cls.__name__}.forward: result {i} is {type(out).__name__}, not a tensor",
                     "forward returns a tensor or a tuple of tensors", result=out)  # fmt: skip
        bound = mode.bind(joint_op(cls, len(outs), places, len(args)), [mode.own(out) for out in outs], tensors, ctx)
        return tuple(bound) if isinstance(results, list | tuple) else bound[0]


def joint_op(cls: type[Function], count: int, places: list[int], arity: int) -> Op:
    """The op of one application: inputs are forward's results, then its tensors; the results pass through."""

    def kernel(*arrays, ctx, out=None):
        if out is None:
            return [a.copy() for a in arrays[:count]] if count > 1 else arrays[0].copy()
        for place, a in zip(out if count > 1 else [out], arrays):
            np.copyto(place, a)
        return out

    def joint(node: Node, gs: list):
        ctx = node.attrs["ctx"]
        ctx.node = node
        try:
            if ctx.materialize:
                gs = [full(shape=s.shape, value=0, dtype=s.dtype) if g is None else g for g, s in zip(gs, node.out_specs)]
            found = as_tuple(cls.backward(ctx, *gs))
        finally:
            ctx.node = None
        if len(found) != arity and any(g is not None for g in found[arity:]) or len(found) < arity:
            raise GradError(
                f"{cls.__name__}.backward returned {len(found)} gradients for the {arity} arguments of forward",
                where=f"made at {where_text(node.where)}",
                hint="one for each argument, None where there is none",
            )
        for position, place in enumerate(places):
            i = count + position
            if node.needs >> i & 1 and found[place] is not None:
                g, spec = found[place], node.inputs[i].spec
                if g.shape != spec.shape:
                    raise ShapeError(
                        f"{cls.__name__}.backward: gradient {place} has shape {g.shape}, argument {place} of forward has {spec.shape}",
                        where=f"made at {where_text(node.where)}",
                        hint="a gradient has the shape of what it is the gradient of",
                    )
                yield i, g

    outputs = [f"out{k}" for k in range(count)]
    op = Op(cls.__name__, ["*tensors"], ["ctx"], outputs, None, {}, None, False, False, True, "", (), (), cls.__doc__ or "")
    op.kernel, op.takes_out, op.joint, op.differentiable = kernel, True, joint, -1 << count
    return op


# ---- numeric checks ----------------------------------------------------------------------------------------------


def gradcheck(function, inputs, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True) -> bool:
    """Compare the gradients of `function(*inputs)` with central differences, number by number.

    inputs: float64 tensors; those that require grad are checked.  Returns True, or raises GradError with the first
    number that differs (returns False if not raise_exception).
    """
    inputs = as_tuple(inputs)
    checked = [i for i, x in enumerate(inputs) if getattr(x, "requires_grad", False)]
    for i in checked:
        if inputs[i].dtype.itemsize < 8:
            fail(GradError, f"gradcheck: input {i} is {inputs[i].dtype.name}, too coarse for differences of {eps}",
                 "flow.tensor(..., dtype=flow.float64, requires_grad=True)", input=inputs[i])  # fmt: skip
    outputs = as_tuple(function(*inputs))
    for k, out in enumerate(outputs):
        if not getattr(out, "needs", False):
            continue
        for flat in range(out.spec.size):
            seed = np.zeros(out.shape)
            seed.flat[flat] = 1
            analytic = grad(out, [inputs[i] for i in checked], MODE.get().tensor_of(seed), retain_graph=True, allow_unused=True)
            for i, g in zip(checked, analytic):
                column = np.zeros(inputs[i].shape) if g is None else g.numpy()
                wrong = compare(function, inputs, i, k, flat, column, eps, atol, rtol)
                if wrong is not None and raise_exception:
                    place, numeric, mine = wrong
                    raise GradError(
                        f"gradcheck: d output {k}[{flat}] / d input {i}{list(place)} is {mine:.6g}, differences say {numeric:.6g}",
                        values={"input": inputs[i].spec, "output": out.spec, "difference": f"{abs(mine - numeric):.3g}"},
                        hint="look at the gradient rule of what touches this input",
                    )
                if wrong is not None:
                    return False
    return True


def compare(function, inputs, i: int, k: int, flat: int, column, eps, atol, rtol):
    """None, or (place, numeric, analytic) of the first number that differs."""
    for place in np.ndindex(*inputs[i].shape):
        moved = []
        for h in (eps, -eps):
            array = inputs[i].detach().numpy().copy()
            array[place] += h
            shifted = MODE.get().tensor_of(array)
            shifted.requires_grad = True
            out = as_tuple(function(*[shifted if j == i else x for j, x in enumerate(inputs)]))[k]
            moved.append(float(out.detach().numpy().flat[flat]))
        numeric = (moved[0] - moved[1]) / (2 * eps)
        if not abs(numeric - column[place]) <= atol + rtol * abs(numeric):
            return place, numeric, float(column[place])
    return None


def gradgradcheck(function, inputs, **options) -> bool:
    """`gradcheck` of the gradient of `function`: second derivatives."""
    inputs = as_tuple(inputs)
    checked = [x for x in inputs if getattr(x, "requires_grad", False)]

    def first(*xs):
        wanted = [x for x in xs if getattr(x, "requires_grad", False)]
        out = as_tuple(function(*xs))
        total = [(o * o).sum() if isinstance(o.spec, Spec) else o for o in out if o.needs]
        found = grad(total, wanted, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None and g.needs])

    return gradcheck(first, inputs, **options) if checked else True


def hook_on(tensor, hook):
    """Run `hook(grad)` when the gradient of `tensor` is known; what it returns, if anything, takes its place."""
    if not tensor.needs:
        fail(GradError, "register_hook on a tensor that does not require grad", "x.requires_grad_() first", tensor=tensor)
    node, index = tensor.value.node, tensor.value.index
    if node.hooks is None:
        node.hooks = {}
    hooks = node.hooks.setdefault(index, {})
    handle = Handle(hooks)
    hooks[handle.number] = hook
    return handle


class Handle:
    """What registering a hook gives: `remove()` takes the hook out again; also a context."""

    count = 0

    def __init__(self, hooks: dict):
        Handle.count += 1
        self.hooks, self.number = hooks, Handle.count

    def remove(self) -> None:
        self.hooks.pop(self.number, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


