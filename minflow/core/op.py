"""What an op is, and the one door through which every op runs.

`define` makes an Op from a signature, a shape rule and gradient rules; `kernel` gives it its array code. `apply` asks
the current mode (Eager or Trace, a ContextVar) to run it. `infer` runs the shape rule before any kernel, and errors it
raises get the learner's names, values, module and line here. Knows no arrays and no Tensor class.
Read next: `ops/elementwise.py` for what definitions look like, then `eager.py`.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

from .base.errors import (
    CallError, DivisionError, DTypeError, InternalError, MinflowError, MinflowWarning, OutOfMemoryError,
    OutOfRangeError, ShapeError, TraceError,
)  # fmt: skip
from .ir import NUMBERS, Where, where_text
from .spec import DEPENDS_ON_DEFAULT, Spec, default_dtype, promote

OPS: dict[str, Op] = {}


class Op:
    """A definition: names of inputs, attrs and outputs, the shape rule, the gradient rules, and the kernel.

    inputs, attrs, outputs: names.  infer(*specs, **attrs): Spec or tuple of Specs; a literal is given by its type.
    rules: input number -> (gradient rule, what its arguments ask for).  elementwise: None, "same" (the result has the
    promoted dtype), "float" (integers become the default dtype first) or "bool" (a comparison).
    is_view: the result looks into input 0.  alias_safe: the result may overwrite an input of its own.
    checks: a view whose kernel looks at the numbers and may refuse them.
    variadic: any number of inputs, all with the one rule (which may ask for `position` and `specs`).
    custom: of a learner's own: its kernel may raise.
    """

    custom = False

    def __init__(self, name, inputs, attrs, outputs, infer, rules, elementwise, is_view, alias_safe, second_order, scalar, sbp,
                 examples, doc, checks=False):  # fmt: skip
        self.name, self.inputs, self.attrs, self.outputs, self.infer = name, inputs, attrs, outputs, infer
        self.elementwise, self.is_view, self.alias_safe, self.checks = elementwise, is_view, alias_safe, checks
        self.second_order, self.scalar, self.sbp, self.examples, self.doc = second_order, scalar, sbp, examples, doc
        self.__name__ = self.__qualname__ = name  # as of a function: for help(flow.exp), flow.exp? and whoever asks
        self.__doc__, self.__signature__ = doc, signature_of(inputs, attrs)
        self.many = len(outputs) > 1
        self.variadic = inputs[:1] != [] and inputs[0][0] == "*"
        self.shortcut = elementwise in ("same", "float") and not self.many
        self.rules, self.groups = {}, []  # one rule per input; or one for several inputs that share their work
        for names, rule in rules.items():
            asks = tuple(self.asks(name) for name in inspect.signature(rule).parameters)
            places = tuple(inputs.index(name.strip()) for name in names.split(","))
            if len(places) == 1:
                self.rules[places[0]] = rule, asks
            else:
                self.groups.append((places, sum(1 << i for i in places), rule, asks))
        self.differentiable = sum(1 << i for i in self.rules) | sum(mask for _, mask, _, _ in self.groups)
        if self.variadic and rules:
            self.differentiable = -1
        self.saves = SavedSlots(self)
        self.kernel: Callable | None = None
        self.takes_out = False
        self.joint: Callable | None = None  # one rule for all inputs at once: autograd.Function

    def asks(self, name: str) -> tuple[str, Any]:
        """What a rule's argument name asks for: (kind, number or attr). Outputs count as ~0, ~1, ..."""
        if name == "g":
            return "g", None
        if name in self.inputs:
            return "saved", self.inputs.index(name)
        if name == "out":
            return "saved", ~0
        if name[:3] == "out" and name[3:].isdigit() and int(name[3:]) < len(self.outputs):
            return "saved", ~int(name[3:])
        if name.endswith("_spec") and name[:-5] in self.inputs:
            return "spec", self.inputs.index(name[:-5])
        if name in self.attrs:
            return "attr", name
        if self.variadic and name in ("position", "specs"):
            return name, None
        raise InternalError(
            f"{self.name}: a gradient rule asks for {name!r}, which is no input, output or attr",
            values={"inputs": self.inputs, "attrs": self.attrs},
        )

    def __call__(self, *inputs, **attrs):
        if len(inputs) != len(self.inputs) and not self.variadic:
            inputs = self.named(inputs, attrs)
        if attrs and not self.attrs:
            self.unknown(attrs)
        return apply(self, *inputs, **attrs)

    def unknown(self, attrs: Mapping) -> None:
        """Refuse an attr that the op does not have."""
        for name in attrs.keys() - set(self.attrs):
            wanted = ", ".join((*self.inputs, *[f"{a}=..." for a in self.attrs]))
            raise CallError(f"{self.name} has no argument {name!r}", values={name: describe(attrs[name])}, where=here(),
                            hint=f"{self.name}({wanted})")  # fmt: skip

    def named(self, inputs: tuple, attrs: dict) -> list:
        """The inputs, those missing found among the keywords: by our name, or by PyTorch's `input` and `other`."""
        found = list(inputs)
        for ours, theirs in zip(self.inputs[len(found) :], ("input", "other", "")[len(found) :]):
            name = ours if ours in attrs else theirs
            if name in attrs:
                found.append(attrs.pop(name))
        if len(found) != len(self.inputs):
            wanted = ", ".join(self.inputs)
            fail(DTypeError, f"{self.name}: {len(found)} inputs given, {len(self.inputs)} wanted", f"{self.name}({wanted})")
        return found

    def __repr__(self) -> str:
        return self.name

    def __get__(self, instance, owner=None):
        """Not bound as an attribute of a class; and an object that has this is a routine to `help` and `inspect`."""
        return self

    def __reduce__(self):
        """Copied and pickled as what it is called, like a function."""
        return (op_named, (self.name,)) if OPS.get(self.name) is self else self.__qualname__


def op_named(name: str) -> Op:
    """For pickle."""
    return OPS[name]


def signature_of(inputs: Sequence[str], attrs: Sequence[str]) -> inspect.Signature:
    """Inputs by place or name, attrs by name."""
    p = inspect.Parameter
    found = [p(x.lstrip("*"), p.VAR_POSITIONAL if x[0] == "*" else p.POSITIONAL_OR_KEYWORD) for x in inputs]
    return inspect.Signature(found + [p(x, p.KEYWORD_ONLY) for x in attrs])


class SavedSlots(dict):
    """needs -> what to save: i for input i, ~k for output k. Each combination is worked out once."""

    def __init__(self, op: Op):
        self.op = op

    def __missing__(self, needs: int) -> tuple[int, ...]:
        wanted = [asks for i, (_, asks) in self.op.rules.items() if needs >> i & 1]
        wanted += [asks for _, mask, _, asks in self.op.groups if needs & mask]
        self[needs] = slots = tuple(dict.fromkeys(slot for asks in wanted for kind, slot in asks if kind == "saved"))
        return slots


def define(
    signature: str,
    infer: Callable,
    vjp: Callable | Mapping[str, Callable] | None = None,
    *,
    elementwise: str | None = None,
    is_view: bool = False,
    alias_safe: bool = False,
    checks: bool = False,
    second_order: bool = True,
    scalar: str = "",
    sbp: Sequence = (),
    examples: Sequence = (),
    doc: str = "",
) -> Op:
    """Define an op and list it in OPS.

    signature: `"name(input, input; attr, attr) -> out, out"`; one output, named after the op, if none is said;
    `"cat(*tensors; dim)"` takes any number of inputs.
    vjp: a rule per differentiable input, or a bare rule for the first; a rule's argument names say what it gets: `g`
    (a tuple where there are several outputs), an input's array by name, `x_spec`, `out` or `out0`, an attr. A key
    "x, weight" stands for one rule that gives both gradients, where they share their work.
    """
    head, _, tail = signature.partition(" -> ")
    name, _, names = head.rstrip(")").partition("(")
    inputs, attrs = ([n.strip() for n in part.split(",") if n.strip()] for part in (names + ";").split(";")[:2])
    for x in inputs:
        if x == "g" or x[:3] == "out":
            raise InternalError(f"{name}: an input cannot be called {x!r}: rules use that name", hint="another name")
    outputs = [n.strip() for n in tail.split(",") if n.strip()] or [name]
    rules = {} if vjp is None else vjp if isinstance(vjp, Mapping) else {inputs[0]: vjp}
    op = Op(name, inputs, attrs, outputs, infer, rules, elementwise, is_view, alias_safe or bool(elementwise), second_order,
            scalar, tuple(sbp), tuple(examples), doc, checks)  # fmt: skip
    if name in OPS:
        raise InternalError(f"the op {name!r} is defined twice", hint="another name")
    op.__module__ = sys._getframe(1).f_globals["__name__"]
    OPS[name] = op
    return op


def kernel(op: Op, function: Callable | None = None, *, ufunc: str | None = None):
    """Give an op its array code: a function `(xp, *arrays, **attrs, out=None)`, or a ufunc of numpy by name.

    What a function without `out` returns is copied to where the result is wanted; a view stays a view.
    """
    import numpy as xp

    if ufunc is not None:
        op.kernel, op.takes_out = getattr(xp, ufunc), True
    elif function is None:
        return functools.partial(kernel, op)
    else:
        op.takes_out = not op.is_view and op.infer is not data_dependent
        if op.takes_out and "out" not in inspect.signature(function).parameters:
            function = copied_out(function)
        op.kernel = functools.partial(function, xp)
    return function


def copied_out(function: Callable) -> Callable:
    """A kernel with `out=`, of one that gives new arrays."""

    @functools.wraps(function)
    def written(xp, *arrays, out=None, **attrs):
        found = function(xp, *arrays, **attrs)
        if out is None:
            return found
        for place, result in zip(out, found) if found.__class__ is tuple else ((out, found),):
            xp.copyto(place, result)
        return out

    return written


# ---- the door and its modes --------------------------------------------------------------------------------------


class Mode:
    """How ops run, whether gradients are recorded, and the module we are in. Immutable: `but` makes a changed copy.

    grad: record for backward.  anomaly: check every gradient for NaN.  scope: "LeNet.conv1".
    entered: where the innermost Module was called from.  trace: the Trace that we are in, or None.
    watch: who is told of every call of a Module (nn.Graph, while it builds).  origin: of Nodes, see `ir.Node`.
    seed: the gradient that backward starts from; 1/n where a graph adds up n gradients.
    room: how long `scope` may become before a Module makes sure that Python takes more calls inside each other.
    told: a list that an eager mode adds every op to, or None. What runs with one is put back, and no listener hears of
    it.
    """

    grad, anomaly, scope, entered, trace, watch, origin, seed, told = True, False, "", None, None, None, None, 1, None
    room = 250

    def first(self, value):
        """The Value that the gradient of a leaf is kept under; any other stands for itself."""
        return value

    def but(self, **changes) -> Mode:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other


DEFAULT = Mode()  # eager.py makes it an Eager; a ContextVar wants its default now
MODE: ContextVar = ContextVar("mode", default=DEFAULT)


def apply(op: Op, *inputs, **attrs):
    """The only way to run an op: ask the current mode."""
    try:
        return MODE.get().run(op, inputs, attrs)
    except OverflowError:
        raise outside(op, inputs) from None
    except MinflowError:
        raise
    except RAW as error:
        check_numbers(inputs)
        op.unknown(attrs)
        if of_learner(error):
            raise
        names = op.inputs if not op.variadic else [f"{op.inputs[0][1:]}[{k}]" for k in range(len(inputs))]
        raise raw_error(op.name, error, {**dict(zip(names, inputs)), **attrs}) from error


RAW = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
RAW_KINDS = (
    (MemoryError, OutOfMemoryError), (ZeroDivisionError, DivisionError), ((OverflowError, LookupError), OutOfRangeError),
    (ValueError, ShapeError), (Exception, DTypeError),
)  # fmt: skip


def of_learner(error: BaseException) -> bool:
    """Was it raised by the learner's own code, which we only called? It goes its way as it is."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not OURS[file] and not LIBRARY(file):
            return True
        trace = trace.tb_next
    return False


# a file of numpy, scipy or Python itself, in a folder that may also hold the packages of learners
PYTHON = re.escape(os.path.dirname(os.__file__))
LIBRARY = re.compile(rf"<frozen |<__array|.*site-packages.(numpy|scipy)\b|{PYTHON}.(?!site-packages)").match


def raw_error(name: str, error: BaseException, values: Mapping[str, Any], hint: str = "") -> MinflowError:
    """The four-part error for one that Python or numpy raised."""
    kind = next(ours for raw, ours in RAW_KINDS if isinstance(error, raw))
    if kind is OutOfMemoryError:
        hint = "smaller sizes, or a smaller dtype; expand() repeats without memory"
    said = " ".join(str(error).split()) or type(error).__name__
    found = kind(f"{name}: {said}", values={k: describe(x) for k, x in values.items()}, where=here(), hint=hint)
    found.raw = error
    return found


def check_numbers(inputs: Sequence) -> None:
    """Refuse a tensor that was made while a graph was built and is used elsewhere: it has no numbers."""
    if MODE.get().trace is None:
        for x in inputs:
            if x is not None and getattr(x, "array", x) is None:
                raise symbolic(x)


def symbolic(x: Any) -> TraceError:
    """The error for a symbolic tensor outside the build that made it."""
    return TraceError("a symbolic tensor is used outside the build that made it, where it has no numbers",
                      values={"tensor": describe(x)}, where=here(),
                      hint="return it from build: what the graph gives has numbers; or compute it without the graph")  # fmt: skip


def outside(op: Op, inputs: Sequence) -> MinflowError:
    """The error for a Python integer that the integer dtype of the tensors beside it cannot hold."""
    kind = promote(*[x.__class__ if x.__class__ in NUMBERS else x.spec for x in inputs if x.__class__ in NUMBERS or hasattr(x, "spec")])
    number = max([x for x in inputs if x.__class__ in NUMBERS], key=abs, default="a number")
    return explain(OutOfRangeError(f"{op.name}: {number} does not fit into {kind.name}", hint="x.long() or x.float() first"), op, inputs)


class using:
    """Run the block in `mode`."""

    def __init__(self, mode: Mode):
        self.mode = mode

    def __enter__(self) -> Mode:
        before = MODE.get()
        try:
            self.token = MODE.set(self.mode)
        except BaseException:  # an interrupt just after it was set
            MODE.set(before)
            raise
        return self.mode

    def __exit__(self, *error: object) -> None:
        MODE.reset(self.token)


class Epoch:
    """now: moves with every write to a Module, a Parameter's flag or an optimizer's group: plans look closer only then.

    backwards: how many backward() there were.
    """

    now, backwards = 0, 0


EPOCH = Epoch()


# ---- the shape rule ----------------------------------------------------------------------------------------------

INFERRED: dict = {}  # what infer said, bounded; errors are raised each time anew
INFERRED_LIMIT = 20_000
DEPENDS_ON_DEFAULT.append(INFERRED.clear)


def infer(op: Op, inputs: Sequence, attrs: Mapping):
    """The shape rule, or what it said before: (dtype that the inputs must be cast to, or None; output specs)."""
    specs = tuple([x.__class__ if x.__class__ in NUMBERS else x.spec for x in inputs])
    key = (op, specs, tuple(attrs.items())) if attrs else (op, specs)
    try:
        return INFERRED[key]
    except KeyError:
        pass
    except TypeError:  # an attr without hash (a slice before Python 3.12)
        key = None
    try:
        found = consult(op, specs, attrs)
    except MinflowError as error:
        raise explain(error, op, inputs) from None
    if key is not None and found[1] != (None,):  # what depends on data is asked each time
        if len(INFERRED) >= INFERRED_LIMIT:
            INFERRED.clear()
        INFERRED[key] = found
    return found


def consult(op: Op, specs: tuple, attrs: Mapping):
    if len(specs) == 1 and not isinstance(specs[0], Spec):
        raise DTypeError(f"{op.name}: of {specs[0].__name__}, where a tensor is wanted", hint="flow.tensor(...) around a number")
    if op.elementwise:
        dtype = promote(*specs)
        if op.elementwise == "float" and not dtype.floating:
            dtype = default_dtype()
        if any(isinstance(s, Spec) and s.dtype is not dtype for s in specs):
            return dtype, None
    out = op.infer(*specs, **attrs)
    return None, out if op.many else (out,)


def data_dependent(*specs, **attrs) -> None:
    """The shape rule of an op whose result's shape depends on numbers: eager only, where the result says it."""
    if MODE.get().trace is not None:
        raise TraceError(
            "the shape of the result would depend on numbers, and while a graph is built there are none",
            hint="flow.where(mask, x, 0) keeps the shape; (x * mask).sum() leaves out the rest; or do it before the call",
        )
    return None


# ---- where we are, and errors that say so ------------------------------------------------------------------------

MODULE_CALL: list = []  # the code of Module.__call__, put here by nn: a walk that meets it ends there


class Ours(dict):
    """file name -> is it one of minflow's own? Worked out once for each."""

    def __missing__(self, name: str) -> bool:
        self[name] = found = name.startswith(ROOT)
        return found


ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
OURS = Ours()


def caller(depth: int = 2) -> Where | None:
    """(code, instruction) of the first frame that is not ours, counted from `depth` frames up.

    A Module's own caller was stored when it was entered, so the walk ends at the nearest Module.__call__.
    """
    frame = sys._getframe(depth)
    while OURS[frame.f_code.co_filename]:
        if frame.f_code in MODULE_CALL:
            return MODE.get().entered
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def here() -> str:
    """ "in LeNet.fc1, called at In[9]:5": the fourth part of an error."""
    scope, line = MODE.get().scope, where_text(caller(2))
    return f"in {scope}, called at {line}" if scope else f"at {line}"


def name_of(x: Any, otherwise: str) -> str:
    """The learner's name of an input: "fc1.weight" for a Parameter inside fc1, else the given name."""
    label = getattr(x, "label", "")
    if not label:
        return otherwise
    module = MODE.get().scope.rpartition(".")[2]
    return f"{module}.{label}" if module else label


def describe(x: Any) -> str:
    """A tensor by its spec and, on a tape, the line that made it; anything else by its repr."""
    spec = getattr(x, "spec", None)
    if spec is None:
        text = " ".join(repr(x).split())
        return text if len(text) <= 80 else text[:77] + "..."
    node = x.value.node if getattr(x, "value", None) is not None else None
    if getattr(x, "array", x) is None and node is not None and not node.inputs and getattr(node, "name", ""):
        return f"{spec}  ({node.op} {node.name})"
    return f"{spec}  (made at {where_text(node.where)})" if node is not None and node.where else str(spec)


def explain(error: MinflowError, op: Op, inputs: Sequence) -> MinflowError:
    """Fill in what a shape rule could not know: names, values, module and line."""
    marks = [f"{op.inputs[0][1:]}[{i}]" for i in range(len(inputs))] if op.variadic else op.inputs
    names = {mark: name_of(x, mark) for mark, x in zip(marks, inputs)}
    if len(set(names.values())) < len(names):
        names = {mark: mark for mark in names}
    error.renamed(names)
    if not error.values:
        error.values = {names[mark]: describe(x) for mark, x in zip(marks, inputs)}
    error.where = error.where or here()
    return error


def fail(kind: type[MinflowError], what: str, hint: str = "", /, **values) -> NoReturn:
    """Raise a four-part error: the values are told by name, the module and the line are those of the learner."""
    raise kind(what, values={name_of(x, name): describe(x) for name, x in values.items()}, where=here(), hint=hint)


WARNED: set = set()


class Notices:
    """on: are likely mistakes told? See `messages/notices.py`."""

    on = os.environ.get("MINFLOW_NOTICES", "1") != "0"


NOTICES = Notices()


def warn(what: str, hint: str = "", /, **values) -> None:
    """One warning for each line of the learner's: the same four parts as an error."""
    if NOTICES.on:
        tell(what, hint, values, caller(2), here())


def tell(what: str, hint: str, values: Mapping, where: Where | None, place: str, kind: str = "") -> None:
    """A warning at a line of the learner's, once for each line and kind."""
    key = kind or what.partition(":")[0], where
    if key in WARNED or not NOTICES.on:
        return
    if len(WARNED) > 10_000:
        WARNED.clear()
    WARNED.add(key)
    text = MinflowError(what, values={name_of(x, n): describe(x) for n, x in values.items()}, where=place, hint=hint)
    code, instruction = where or (None, 0)
    line = next((n for start, end, n in code.co_lines() if start <= instruction < end and n), code.co_firstlineno) if code else 1
    warnings.warn_explicit(str(text), MinflowWarning, code.co_filename if code else "minflow", line or 1)


def check_number(op: Op, x: Any) -> None:
    """Refuse what is neither a tensor nor a number."""
    fail(
        DTypeError,
        f"{op.name}: an input is {type(x).__name__}, neither a tensor nor a number",
        "flow.tensor(...) makes a tensor of lists and arrays",
        input=x,
    )
