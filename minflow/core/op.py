"""Definitions of ops: `define` makes an Op from a signature, a shape rule and gradient rules.

Independent of arrays and of Tensor. Read next: `ops/elementwise.py` for examples; `kernels.py`, the code of ops.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from .base.errors import CallError, DTypeError, InternalError
from .base.out import run_into, wants_out
from .base.signatures import argument_names
from .dispatch import apply
from .infer import data_dependent
from .kernels import CALLS, kernel
from .mode import DEFAULT
from .source_location import describe, fail, here

if TYPE_CHECKING:
    from .tensor import Tensor

OPS: dict[str, Op] = {}
INPUT_NAMES = ("input", "x", "a", "x1"), ("other", "x2", "n"), ()  # of the first inputs, in PyTorch and NumPy


class Op:
    """The definition of an op: everything that is known about it, except its kernels (`kernels.py`).

    inputs, attrs, outputs: names.  infer(*specs, **attrs): Spec or tuple of Specs; a Python number is passed as its
    type.  vjp: names of inputs -> gradient rule, see `define`.
    elementwise: None, "same" (the result has the promoted dtype), "float" (integers are converted to the default dtype
    first) or "bool" (a comparison).
    is_view: the result shares the storage of input 0.  alias_safe: the result may overwrite an input of the op;
    if it is not given, True for elementwise ops.
    moves: the result is on the device that the attr `device` names.
    checks: a view whose kernel reads the elements and may refuse them.
    second_order: False if the gradient has no gradient.
    domain: "real" (complex tensors are refused), "holomorphic" (the op has a complex derivative, or none: autograd
    conjugates around the rules) or "complex" (the rules give complex gradients themselves); views take all dtypes.
    dtype_agnostic: the op runs in bfloat16 without a cast, since it only moves elements, or since its decomposition
    decides in which dtype it computes; if it is not given, True for views and composite ops.
    version: version of its semantics, which a saved graph records; see `deploy/versions.py`.
    cached_view: a view with one attr whose gradient needs no elements; eager code caches its output spec and its
    specialized kernel.
    always_infer: the shape rule refuses some dtypes, so eager code asks it even if all inputs have one spec.
    scalar: the formula of one element, see `scalar.py`.
    autocast: "lower" if autocast runs the op in its lower dtype, "float32" if in float32, "parts" if it runs the ops
    of the decomposition one by one.
    macs, flops: work of one call, from (*output specs, *input specs, **attrs): multiply-accumulates, or other
    floating-point operations; a number of flops is per element of the largest tensor. An elementwise op with a formula
    needs neither.  reads_rows: reads only as much of its first input as it returns.
    attr_kinds: attr -> its kind in a file, if attrs of this name have another one elsewhere (`deploy/attrs.py`).
    joins: an update rule that computes each element by itself, so that calls with equal numbers may run as one on the
    joined arrays.
    number_inputs: inputs of an op that is not elementwise which may be Python numbers.
    host_inputs: inputs that the op reads on the CPU, even if the others are on another device; an output of the same
    name is on the CPU too.  moved_inputs: inputs that may be on the CPU, from which each call copies them to the device
    of the others; so may 0-d tensors.
    sharding: labels of the axes of all inputs and outputs (`sharding.py`): a pattern, or a function (*specs, **attrs)
    that returns one. None for the default: all tensors whole on each rank; of an elementwise op, any axis split.
    rows: a function (*specs, **attrs) that returns more rows, which labels cannot state.
    linear: groups of inputs, "x" or "x, y", that may be partial sums while the others are whole; or a function.
    local_attrs: the attr that is the shape of the result; "part" for kernels that take `part=`, the shape of the global
    result and the first index of this rank's part; or a function (attrs, local input specs, local output specs) that
    returns the attrs of the op on local arrays that differ.
    on_ranks: a function (**attrs) that returns a function (*inputs, **attrs) of other ops, which runs in place of the
    op on global tensors; or None.
    distributes: the result has another distribution than the inputs: the shape rule states it.
    communicates: the kernel exchanges arrays with other ranks, which run it, too.
    storable: False if a file cannot hold the op, since it needs values known only at run time.
    examples: the inputs that it is tested with.  doc: its docstring.
    decompose: for a composite op, the function (*inputs, **attrs) of other ops that defines its result and gradient.
    A platform may have a kernel for it; elsewhere the decomposition runs. It is pure, draws no random numbers, and
    returns new tensors.  unread: inputs whose elements no gradient depends on, so that a tape does not keep them, and a
    program may write them before backward.  gradient_of: the composite op whose gradients this one computes.
    slow_on_numpy: True if a call on large arrays is worth loading platforms that are faster than NumPy; or a function
    of the inputs and outputs, arrays or specs, that returns True if this call is.
    custom: defined by a user, so its kernel may raise.
    inline_kernel, custom_backward: the kernel, and the gradients of all inputs at once, of one call of a Function.

    Derived from these:
    many: it has several outputs.  variadic: takes any number of inputs; all share one rule, which may ask for
    `position` and `specs`.
    takes_out: kernels write into an array that is given; False for views and data-dependent shapes.
    composite: True if it runs as its decomposition where no platform has a kernel.  gradient: of a composite op, the
    op that computes its gradients.
    fast_path: the smallest `Spec.plain` for which NumPy's own result is right when all inputs have that spec, or 0;
    None for a view that `Eager.view` makes.
    rules: input -> (rule, sources of its arguments).  joint_rules: the same of rules for several inputs, which share
    work.  differentiable: bit mask of the inputs that have a rule.  saves: which arrays the rules need.
    """

    name: str
    inputs: list[str]
    attrs: list[str]
    outputs: list[str]
    infer: Any
    vjp: Mapping[str, Callable]
    # facts, and what holds for an op that does not state them
    elementwise: str | None = None
    is_view: bool = False
    alias_safe: bool | None = None
    checks: bool = False
    second_order: bool = True
    domain: str = "real"
    dtype_agnostic: bool | None = None
    version: int = 1
    cached_view: bool = False
    always_infer: bool = False
    scalar: Callable | None = None
    autocast: str | None = None
    macs: Callable | None = None
    flops: int | Callable | None = None
    reads_rows: bool = False
    attr_kinds: Mapping[str, str] = {}
    host_inputs: Sequence[str] = ()
    moved_inputs: Sequence[str] = ()
    moves: bool = False
    number_inputs: Sequence[str] = ()
    joins: bool = False
    sharding: str | Callable | None = None
    rows: Callable | None = None
    linear: Sequence[str] | Callable = ()
    local_attrs: str | Callable = ""
    on_ranks: Callable | None = None
    distributes: bool = False
    communicates: bool = False
    storable: bool = True
    slow_on_numpy: bool | Callable = False
    examples: Sequence = ()
    doc: str = ""
    decompose: Callable | None = None
    unread: Sequence[str] = ()
    gradient_of: Op | None = None
    custom: bool = False
    inline_kernel: Callable | None = None
    custom_backward: Callable | None = None

    many: bool
    variadic: bool
    takes_out: bool
    composite: bool
    gradient: Op
    fast_path: int | None
    rules: dict[int, tuple]
    joint_rules: list[tuple]
    differentiable: int
    saves: SavedSlots

    def __init__(
        self,
        name: str,
        inputs: list[str],
        attrs: list[str],
        outputs: list[str],
        infer: Any,
        vjp: Mapping[str, Callable] | None = None,
        **facts: Any,
    ):
        if unknown := facts.keys() - FACTS.keys():
            raise InternalError(f"{name}: an op has no fact {min(unknown)!r}", hint=f"one of {', '.join(FACTS)}")
        known = vars(self)  # assignments are refused
        known.update(FACTS, **facts)
        known.update(name=name, inputs=inputs, attrs=attrs, outputs=outputs, infer=infer, vjp=vjp or {})
        known["__name__"] = known["__qualname__"] = name  # like a function, for help(flow.exp) and flow.exp?
        known["__doc__"] = self.doc
        if self.alias_safe is None:
            known["alias_safe"] = bool(self.elementwise)
        if self.dtype_agnostic is None:
            known["dtype_agnostic"] = self.is_view or self.decompose is not None
        if self.is_view:
            known["domain"] = "holomorphic" if self.domain == "real" else self.domain
        known["many"] = len(outputs) > 1
        known["variadic"] = inputs[:1] != [] and inputs[0][0] == "*"
        known["takes_out"] = not self.is_view and infer is not data_dependent
        fast = self.elementwise in ("same", "float") and not self.many and not self.always_infer
        known["fast_path"] = None if self.cached_view else fast + (fast and bool(self.slow_on_numpy))
        known["rules"], known["joint_rules"] = {}, []
        for names, rule in self.vjp.items():
            sources = tuple(self.argument_source(source) for source in argument_names(rule))
            places = tuple(inputs.index(one.strip()) for one in names.split(","))
            if len(places) == 1:
                self.rules[places[0]] = rule, sources
            else:
                self.joint_rules.append((places, sum(1 << i for i in places), rule, sources))
        masks = [*[1 << i for i in self.rules], *[mask for _, mask, _, _ in self.joint_rules]]
        known["differentiable"] = -1 if self.variadic and self.vjp else sum(masks)
        known["composite"] = self.decompose is not None or self.gradient_of is not None
        if self.decompose is not None:
            known["differentiable"] = (1 << len(inputs)) - 1
        if self.custom_backward is not None:
            known["differentiable"] = -1 << len(self.outputs)  # of all inputs after the results of forward
        known["saves"] = SavedSlots(self)

    def __setattr__(self, name: str, value: Any) -> None:
        raise InternalError(f"{self.name}: an op is frozen: {name} cannot be set", hint="a fact in its definition")

    @property
    def kernel(self) -> Callable:
        """The old name of `kernels.CALLS[op]`, which copies of reading tour R1 use."""
        warnings.warn("op.kernel is now minflow.core.kernels.CALLS[op]", DeprecationWarning, stacklevel=2)
        return CALLS[self]

    @property
    def __signature__(self) -> inspect.Signature:
        """Inputs by position or name, attrs by name."""
        p = inspect.Parameter
        places = [p(x.lstrip("*"), p.VAR_POSITIONAL if x[0] == "*" else p.POSITIONAL_OR_KEYWORD) for x in self.inputs]
        return inspect.Signature(places + [p(x, p.KEYWORD_ONLY) for x in self.attrs])

    def argument_source(self, name: str) -> tuple[str, Any]:
        """The source of a rule's argument, by its name: (kind, index or attr). Outputs have the indices ~0, ~1, ..."""
        if name == "g":
            return "g", None
        if name in self.inputs:
            return "saved", self.inputs.index(name)
        if name == "out" or (name[:3] == "out" and name[3:].isdigit() and int(name[3:]) < len(self.outputs)):
            return "saved", ~int(name[3:] or 0)
        if name.endswith("_or_out") and name[:-7] in self.inputs:
            return "input_or_output", self.inputs.index(name[:-7])
        if name.endswith("_spec") and name[:-5] in self.inputs:
            return "spec", self.inputs.index(name[:-5])
        if name in self.attrs:
            return "attr", name
        if self.variadic and name in ("position", "specs"):
            return name, None
        raise InternalError(
            f"{self.name}: a gradient rule asks for {name!r}, which is not an input, output or attr",
            values={"inputs": self.inputs, "attrs": self.attrs},
        )

    def __call__(self, *inputs: Any, **attrs: Any) -> Tensor | Any:  # Any: a tuple, if it has several outputs
        if len(inputs) != len(self.inputs) and not self.variadic:
            inputs = self.complete_inputs(inputs, attrs)
        if attrs and not self.attrs:
            if wants_out(self.name, attrs):
                return run_into(self.name, self, inputs, attrs)
            self.refuse_unknown_attrs(attrs)
        return apply(self, *inputs, **attrs)

    def refuse_unknown_attrs(self, attrs: Mapping) -> None:
        """Raise CallError for an attr that the op does not have."""
        for name in attrs.keys() - set(self.attrs):
            wanted = ", ".join((*self.inputs, *[f"{a}=..." for a in self.attrs]))
            raise CallError(
                f"{self.name} has no argument {name!r}",
                values={name: describe(attrs[name])},
                where=here(),
                hint=f"{self.name}({wanted})",
            )

    def complete_inputs(self, inputs: tuple, attrs: dict) -> tuple:
        """All inputs: missing ones are taken from the keywords, by our name or by those of PyTorch and NumPy."""
        result = list(inputs)
        for ours, theirs in zip(self.inputs[len(result) :], INPUT_NAMES[len(result) :]):
            if (name := next((n for n in (ours, *theirs) if n in attrs), "")) in attrs:
                result.append(attrs.pop(name))
        if len(result) != len(self.inputs):
            wanted = ", ".join(self.inputs)
            what = f"{self.name}: takes {len(self.inputs)} input{'s' * (len(self.inputs) != 1)}, got {len(result)}"
            fail(DTypeError, what, f"{self.name}({wanted})")
        return tuple(result)

    def __repr__(self) -> str:
        return self.name

    def __get__(self, instance, owner=None):
        """Stay unbound as an attribute of a class. `help` and `inspect` take an object with `__get__` for a routine."""
        return self

    def __reduce__(self):
        """Copy and pickle by name, like a function."""
        return (op_named, (self.name,)) if OPS.get(self.name) is self else self.__qualname__


class NamedOp(Op):
    """An op that `define` makes. A call of it enters `Op.__call__` under its own name, which debuggers and tracebacks
    show: the first step into `flow.exp(x)` is in `exp`.
    """

    __slots__ = ("__call__",)

    def __init__(self, name: str, *args: Any, **facts: Any):
        super().__init__(name, *args, **facts)
        code = Op.__call__.__code__.replace(co_name=name, co_qualname=name)
        call = FunctionType(code, Op.__call__.__globals__, name)
        object.__setattr__(self, "__call__", MethodType(call, self))


FACTS = {name: getattr(Op, name) for name in Op.__annotations__ if hasattr(Op, name)}


def op_named(name: str) -> Op:
    """The op of this name; pickle calls it."""
    return OPS[name]


class SavedSlots(dict):
    """Cache: needs -> slots to save, i for input i and ~k for output k."""

    def __init__(self, op: Op):
        self.op = op

    def __missing__(self, needs: int) -> tuple[int, ...]:
        if self.op.decompose is not None:
            self[needs] = slots = tuple([i for i, name in enumerate(self.op.inputs) if name not in self.op.unread])
            return slots
        wanted = [sources for i, (_, sources) in self.op.rules.items() if needs >> i & 1]
        wanted += [sources for _, mask, _, sources in self.op.joint_rules if needs & mask]
        self[needs] = slots = tuple(
            dict.fromkeys(slot for sources in wanted for kind, slot in sources if kind in ("saved", "input_or_output"))
        )
        return slots


def parse_signature(signature: str) -> tuple[str, list[str], list[str], list[str]]:
    """The name, inputs, attrs and outputs of `"name(input, input; attr) -> out, out"`."""
    head, _, tail = signature.partition(" -> ")
    name, _, names = head.rstrip(")").partition("(")
    inputs, attrs = ([n.strip() for n in part.split(",") if n.strip()] for part in (names + ";").split(";")[:2])
    for x in inputs:
        if x == "g" or x[:3] == "out":
            raise InternalError(f"{name}: an input cannot be called {x!r}: rules use that name", hint="another name")
    return name, inputs, attrs, [n.strip() for n in tail.split(",") if n.strip()] or [name]


def define(
    signature: str,
    infer: Callable | None = None,
    vjp: Callable | Mapping[str, Callable] | None = None,
    *,
    module: str = "",
    **facts: Any,
) -> Op:
    """Define an op and add it to OPS.

    signature: `"name(input, input; attr, attr) -> out, out"`; without an arrow the op has one output, named after it.
    `"cat(*tensors; dim)"` takes any number of inputs.
    vjp: a rule per differentiable input, or a bare rule for the first. The names of a rule's arguments choose their
    values: `g` (a tuple if there are several outputs), an input by name, `x_spec`, `out` or `out0`, an attr, or
    `x_or_out` if the rule is right with either (the tape saves x, a graph the result). A rule names exactly what
    PyTorch saves, so that a program may write everything else in place. A key "x, weight" is one rule for both
    gradients, which shares work.
    module: where `help` finds the op, by default the caller's.  facts: the other fields of Op, by name.

    infer may be None for a composite op: its decomposition is then traced.
    With `decompose=`, also defines the op of its gradients, `name_grad(grad, *inputs; *attrs, needs)`: one for each
    input; those outside of the bit mask `needs` are unspecified.
    """
    name, inputs, attrs, outputs = parse_signature(signature)
    rules = {} if vjp is None else vjp if isinstance(vjp, Mapping) else {inputs[0]: vjp}
    op = NamedOp(name, inputs, attrs, outputs, infer, rules, **facts)
    if infer is None:
        vars(op)["infer"] = lambda *specs, **attrs: DEFAULT.infer_decomposed(op, specs, attrs)
    if name in OPS:
        raise InternalError(f"the op {name!r} is defined twice", hint="another name")
    vars(op)["__module__"] = module or sys._getframe(1).f_globals["__name__"]
    OPS[name] = op
    if op.composite:
        kernel(op, lambda xp, *arrays, **attrs: DEFAULT.run_decomposed(op, arrays, attrs))
    if op.decompose is not None:
        vars(op)["gradient"] = define_gradient(op)
    return op


def define_gradient(op: Op) -> Op:
    """Define the op of the gradients of a composite op."""
    grads = ["grad"] if not op.many else [f"grad_{name}" for name in op.outputs]
    signature = f"{op.name}_grad({', '.join([*grads, *op.inputs])}; {', '.join([*op.attrs, 'needs'])}) -> " + ", ".join(
        [f"g_{name}" for name in op.inputs]
    )

    def infer(*specs: Any, needs: int, **attrs: Any) -> Any:
        tensors = sum([1 << i for i, s in enumerate(specs[len(grads) :]) if not isinstance(s, type)])
        if needs & ~tensors:
            raise CallError(
                f"{op.name}_grad: needs must be a mask of bits of {tensors:b} (inputs that are tensors), got {needs:b}",
                hint="bit i for the gradient of input i",
            )
        number = specs[0].replace(shape=())
        found = tuple([number if isinstance(s, type) else s for s in specs[len(grads) :]])
        return found if len(found) > 1 else found[0]

    return define(
        signature,
        infer,
        module=op.__module__,
        gradient_of=op,
        attr_kinds=op.attr_kinds,
        number_inputs=op.number_inputs,
        dtype_agnostic=op.dtype_agnostic,
        domain=op.domain,
        autocast=op.autocast,
        slow_on_numpy=op.slow_on_numpy,
        doc=f"The gradients of {op.name}; those of inputs outside of the bit mask `needs` are unspecified.",
    )
