"""Custom autograd functions, eager and traced: `Function.forward` and `Function.backward`.

Read next: `../autograd.py`, which calls `Op.custom_backward` for all gradients of such a node at once.
"""

from __future__ import annotations

import functools
from typing import Any

from ..autograd import as_tuple, second_backward_error
from ..base.errors import GradError, ShapeError, with_article
from ..ir import FreedMarker, Node, where_text
from ..mode import MODE
from ..op import Op
from ..ops.shape import zeros_of
from ..overrides import overrides, with_class
from ..source_location import describe, fail, warn
from ..spec import Spec
from .modes import no_grad


class Context:
    """Passes data from `Function.forward` to `backward`: `save_for_backward(*tensors)`, and any attribute.

    needs_input_grad: a bool per argument of forward.
    """

    def __init__(self):
        self.saved: tuple = ()
        self.dirty: tuple = ()
        self.constant: tuple = ()
        self.materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self.node: Node | None = None

    def save_for_backward(self, *tensors) -> None:
        """Save inputs, results or other tensors for backward, which reads them from `saved_tensors`."""
        self.saved = only_tensors("save_for_backward", tensors, "ctx.x = x for what is not a tensor", or_none=True)

    def save_for_forward(self, *tensors) -> None:
        """Raise GradError: `jvp` is not called here, so it needs no tensors."""
        what = "ctx.save_for_forward keeps tensors for jvp, which is not called here"
        fail(GradError, what, "leave it out: func.jvp computes its result from backward")

    def mark_dirty(self, *tensors) -> None:
        """Declare which inputs forward writes in place. It must return them, and `apply` returns the same tensors."""
        self.dirty = only_tensors("mark_dirty", tensors, "the inputs that forward writes in place")

    def mark_non_differentiable(self, *tensors) -> None:
        """Declare which results have no gradient."""
        self.constant = only_tensors("mark_non_differentiable", tensors, "results of forward, such as indices")

    def set_materialize_grads(self, value: bool) -> None:
        """With False, backward gets None in place of zeros for an output without a gradient."""
        self.materialize = value

    @property
    def saved_tensors(self) -> tuple:
        if self.node is not None and self.node.saved.__class__ is FreedMarker:
            raise second_backward_error(self.node)
        mode = MODE.get()
        return tuple([mode.revive(self.node, entry) if isinstance(entry, tuple) else entry for entry in self.saved])


def only_tensors(verb: str, values: tuple, hint: str, or_none: bool = False) -> tuple:
    """The values, if all are tensors; else raise GradError. or_none: allow None."""
    for i, value in enumerate(values):
        if not hasattr(value, "spec") and not (or_none and value is None):
            what = f"ctx.{verb}: argument {i} must be a tensor, got {with_article(value)}"
            fail(GradError, what, hint, argument=value)
    return values


def once_differentiable(backward):
    """Decorator, below `@staticmethod`, for a backward that is not differentiable: a second derivative is refused."""

    @functools.wraps(backward)
    def wrapped(ctx, *grads):
        with no_grad():
            result = backward(ctx, *grads)
        if not MODE.get().grad or not any(g is not None and g.requires_grad for g in grads):
            return result
        places = [i for i, g in enumerate(as_tuple(result)) if g is not None]
        outs = list(as_tuple(result))
        last = OnceDifferentiable.apply(tuple([outs[i] for i in places]), *[g for g in grads if g is not None])
        for i, out in zip(places, as_tuple(last)):
            outs[i] = out
        return tuple(outs)

    return wrapped


class Function:
    """Base class of operations with a custom gradient.

    Subclass it with static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, and call `Sub.apply(*args)`.
    Alternatively split forward into `forward(*args)` and `setup_context(ctx, inputs, output)`.
    backward returns a gradient (or None) for each argument of forward. It is written in tensor ops, so it can itself
    be differentiated.
    """

    FunctionCtx = Context

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, instead in NOT_CALLED.items():
            if name in vars(cls):
                warn(f"{cls.__name__}.{name} is not called here", instead)
        if "vjp" in vars(cls):  # PyTorch's other name for backward
            if "backward" in vars(cls):
                what = f"{cls.__name__} defines both backward and vjp, which is one method with two names"
                fail(GradError, what, "one of them", vjp=vars(cls)["vjp"])
            cls.backward = vars(cls)["vjp"]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save in ctx what backward needs; called after a `forward` that does not take ctx."""

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Override: compute the results from the arguments."""
        raise GradError("this Function has no forward", hint="@staticmethod def forward(ctx, x): ...")

    @staticmethod
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Override: compute the gradients of the arguments of `forward` from those of its results."""
        raise GradError("this Function has no backward", hint="@staticmethod def backward(ctx, grad): ...")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward` on the arguments, with `backward` as its gradient."""
        mode, ctx = MODE.get(), Context()
        places = [i for i, x in enumerate(args) if hasattr(x, "spec")]
        tensors = [mode.resolve(args[i]) for i in places]
        wanted = {place: x._needs for place, x in zip(places, tensors)}
        ctx.needs_input_grad = tuple([wanted.get(i, False) for i in range(len(args))])
        with no_grad():
            if cls.setup_context is Function.setup_context:
                results = cls.forward(ctx, *args)
            else:
                results = cls.forward(*args)
                cls.setup_context(ctx, args, results)
        outs = as_tuple(results)
        for i, out in enumerate(outs):
            if not hasattr(out, "spec"):
                what = f"{cls.__name__}.forward: result {i} is {type(out).__name__}, not a tensor"
                fail(GradError, what, "forward returns a tensor or a tuple of tensors", result=out)
        written = check_dirty(cls, ctx, args, outs)
        flags = [not any(out is t for t in ctx.constant) for out in outs]
        bound = mode.bind(
            function_op(cls, len(outs), places, len(args)),
            [mode.resolve(out) for out in outs],
            tensors,
            ctx,
            flags,
            written,
        )
        for i, out in enumerate(outs):
            if overrides(type(out)) and type(bound[i]) is not type(out):
                bound[i] = with_class(bound[i], type(out))
        return tuple(bound) if isinstance(results, list | tuple) else bound[0]


# methods that PyTorch calls on a Function and minflow does not
NOT_CALLED = {
    "jvp": "leave it out: func.jvp computes its result from backward",
    "vmap": "leave it out: func.vmap calls forward once for each entry",
}


def check_dirty(cls: type[Function], ctx: Context, args: tuple, outs: tuple) -> dict[int, Any]:
    """Map the index of a result to the input that forward wrote in place and returned."""
    for t in ctx.dirty:
        if not any(t is x for x in args):
            warn(
                f"{cls.__name__}.forward: mark_dirty of a tensor that is not an argument has no effect",
                "ctx.mark_dirty(x) for an argument x that forward writes in place",
            )
        elif not any(t is out for out in outs):
            what = f"{cls.__name__}.forward: an argument is marked dirty and not returned"
            fail(GradError, what, "return it: x.mul_(2); ctx.mark_dirty(x); return x", argument=t)
    dirty = [t for t in ctx.dirty if any(t is x for x in args)]
    return {i: out for i, out in enumerate(outs) if any(out is t for t in dirty)}


class OnceDifferentiable(Function):
    """Passes through the gradients of a once_differentiable backward, and has no gradient itself."""

    @staticmethod
    def forward(ctx: Any, gradients: tuple, *grads: Any) -> tuple:
        return gradients

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise GradError(
            "this backward is once_differentiable, so it has no second derivative",
            hint="write backward in tensors, without once_differentiable",
        )


FunctionCtx = Context


def function_op(cls: type[Function], count: int, places: list[int], arity: int) -> Op:
    """The op of one application. Its inputs are the results of `forward`, which it returns, then its tensors.

    count: number of results.  places: the arguments of forward that are tensors.  arity: number of its arguments.
    """

    def kernel(*arrays, ctx, out=None):
        if out is None:
            return [a.copy() for a in arrays[:count]] if count > 1 else arrays[0].copy()
        for place, a in zip(out if count > 1 else [out], arrays):
            place[...] = a
        return out

    def custom_backward(node: Node, gs: list):
        result = run_backward(cls, node, gs)
        check_gradients(cls, node, result, arity)
        for i, place in enumerate(places, start=count):
            if node.needs >> i & 1 and result[place] is not None:
                check_gradient_shape(cls, node, place, result[place].spec, node.inputs[i].spec)
                yield i, result[place]

    outputs = [f"out{k}" for k in range(count)]
    return Op(
        cls.__name__,
        ["*tensors"],
        ["ctx"],
        outputs,
        None,
        doc=cls.__doc__ or "",
        inline_kernel=kernel,
        custom_backward=custom_backward,
    )


def run_backward(cls: type[Function], node: Node, gs: list) -> tuple:
    """Call `backward` of a Function with the gradients of its results; return its gradients as a tuple."""
    ctx = node.attrs["ctx"]
    ctx.node = node
    try:
        if ctx.materialize:
            gs = [zeros_of(s) if g is None else g for g, s in zip(gs, node.out_specs)]
        return as_tuple(cls.backward(ctx, *gs))
    finally:
        ctx.node = None


def check_gradients(cls: type[Function], node: Node, result: tuple, arity: int) -> None:
    """Raise GradError if `backward` returned something else than one tensor or None for each argument of forward."""
    for i, g in enumerate(result):
        if g is not None and not hasattr(g, "spec"):
            raise GradError(
                f"{cls.__name__}.backward: gradient {i} must be a tensor or None, got {with_article(g)}",
                values={"gradient": describe(g)},
                where=f"created at {where_text(node.where)}",
                hint="a tensor of the shape of that argument, or None if it has no gradient",
            )
    if (len(result) != arity and any(g is not None for g in result[arity:])) or len(result) < arity:
        raise GradError(
            f"{cls.__name__}.backward returned {len(result)} gradients for the {arity} arguments of forward",
            where=f"created at {where_text(node.where)}",
            hint="return one for each argument, None for those without a gradient",
        )


def check_gradient_shape(cls: type[Function], node: Node, place: int, found: Spec, wanted: Spec) -> None:
    """Raise ShapeError if the gradient of an argument cannot be summed to the shape of that argument."""
    shape, wider = wanted.shape, found.shape
    if len(shape) > len(wider) or any(n not in (1, m) for n, m in zip(shape[::-1], wider[::-1])):
        raise ShapeError(
            f"{cls.__name__}.backward: gradient {place} has shape {wider}, argument {place} of forward has {shape}",
            where=f"created at {where_text(node.where)}",
            hint="return a gradient of the shape of its argument",
        )
