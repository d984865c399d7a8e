"""Builder of an ONNX model: nodes and initializers under construction.

A converter translates one minflow op to ONNX ops: the decorator `converter("relu")` registers it in CONVERTERS. It is
called with a Builder, the Node, and one name per input (a Python number for a literal), and returns the name of its
result, or a tuple of names. Independent of files. Read next: `converters/arithmetic.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ..core.backend import is_array, to_host
from ..core.base.errors import InternalError
from ..core.host import HostArray, host_array
from ..core.ir import Node, Value
from ..core.spec import DType, Spec, as_dtype

OPSET = 18
CONVERTERS: dict[str, Callable] = {}
CONDITIONS: dict[str, Callable[[Node], bool]] = {}  # composite op -> True if its converter supports a node


def converter(*ops: str, when: Callable[[Node], bool] | None = None) -> Callable:
    """Register the decorated function as the converter of these ops.

    when: a condition for composite ops; a node that does not fulfil it is exported as its decomposition.
    """

    def listed(function: Callable) -> Callable:
        for op in ops:
            if op in CONVERTERS:
                raise InternalError(f"{op} has two converters", values={"file": function.__module__}, hint="keep one")
            CONVERTERS[op] = function
            if when is not None:
                CONDITIONS[op] = when
        return function

    return listed


def has_converter(node: Node) -> bool:
    name = str(node.op)
    return name in CONVERTERS and (name not in CONDITIONS or CONDITIONS[name](node))


class UnsupportedNode(Exception):
    """Raised by a converter that cannot translate a node. `model.py` catches and reports all of them in one error."""

    def __init__(self, why: str, hint: str = ""):
        super().__init__(why)
        self.why, self.hint = why, hint


class OnnxNode(NamedTuple):
    """One node of the ONNX model: names of its inputs and outputs, and the minflow node that it belongs to."""

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    node: Node | None


class Builder:
    """An ONNX model under construction.

    nodes: in order.  arrays: initializers by name.  names: value -> its name.  axes: name of a dynamic axis ->
    (name of the input, its axis).  size_dependent: see Program.  dynamic: value -> its sizes, if some depend on such an
    axis.
    read: the outputs, and the inputs of all emitted nodes.  updating: nodes needed by the update of a state.
    """

    def __init__(
        self, axes: Mapping | None = None, size_dependent: Mapping | None = None, dynamic: Mapping | None = None
    ):
        self.axes, self.size_dependent, self.dynamic = axes or {}, size_dependent or {}, dynamic or {}
        self.names: dict[Value, str] = {}
        self.read_values: set[Value] = set()
        self.updating: set[Node] = set()
        self.read_attrs: set[tuple[Node, str]] = set()  # attrs that a converter has read with `attr`
        self.nodes: list[OnnxNode] = []
        self.arrays: dict[str, HostArray] = {}
        self.constants: dict[tuple, str] = {}  # contents of a constant -> its name
        self.constant_names: set[str] = set()
        self.sizes: dict[Any, str] = {}  # size that depends on dynamic axes -> name of the value that holds it
        self.used_names: set[str] = set()
        self.node: Node | None = None
        self.prefix = ""  # prefix of new names: the current node's name

    def unique_name(self, name: str) -> str:
        """An unused name: this one, or with a number appended."""
        unique, number = name, 0
        while unique in self.used_names:
            number += 1
            unique = f"{name}_{number}"
        self.used_names.add(unique)
        return unique

    # ---- called by converters ----------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: str | None, outputs: int = 1, **attributes) -> Any:
        """Append a node of this kind. inputs: names, or None for an omitted optional input. Attributes that are None
        are omitted. Returns the name of its output, or a tuple of several.
        """
        name = self.unique_name(f"{self.prefix}/{kind}" if self.prefix else kind)
        names = [name] if outputs == 1 else [self.unique_name(f"{name}.{i}") for i in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.append(kind, name, ["" if x is None else x for x in inputs], names, attributes)
        return names[0] if outputs == 1 else tuple(names)

    def append(self, kind: str, name: str, inputs: list[str], outputs: list[str], attributes: dict) -> None:
        self.nodes.append(OnnxNode(kind, name, inputs, outputs, attributes, self.node))

    def const(self, value: Any, dtype: DType | str | None = None) -> str:
        """The name of an initializer with these elements; equal initializers are shared. Integers are int64 and floats
        float32, unless a dtype is given.
        """
        array = host_array(to_host(value) if is_array(value) else value)
        if dtype is not None:
            array = array.astype(as_dtype(dtype).np, copy=False)
        elif not is_array(value):
            array = array.astype({"f": "float32", "i": "int64"}.get(array.dtype.kind, array.dtype), copy=False)
        key = array.dtype.str, array.dtype.name, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = name = self.unique_name("constant")
            self.constant_names.add(name)
            self.arrays[name] = array
        return self.constants[key]

    def value(self, x: str | bool | int | float, dtype: DType | str) -> str:
        """The name of an input; for a Python number, of a constant of this dtype."""
        return x if isinstance(x, str) else self.const(x, dtype)

    def cast(self, x: str, dtype: DType | str, of: DType | None = None) -> str:
        """Cast x. of: dtype of x, to omit a cast to the same dtype."""
        return x if dtype is of else self.op("Cast", x, to=onnx_type(as_dtype(dtype)))

    def sizes_of(self, value: Value) -> tuple:
        """The sizes of a value; a size that depends on dynamic axes is a SizeOf."""
        return self.dynamic.get(value, value.spec.shape)

    def attr(self, node: Node, name: str) -> Any:
        """An attr in which values that depend on dynamic axes are a SizeFormula. `node.attrs[name]` has only the values
        of the example, so a converter that does not use this method is refused if the attr depends on the axes.
        """
        self.read_attrs.add((node, name))
        return self.size_dependent.get(node, {}).get(name, node.attrs[name])

    def is_used(self, node: Node, output: int) -> bool:
        """True if an emitted node or a result reads this output."""
        return Value(node, output, node.out_specs[output]) in self.read_values

    def static_spec(self, value: Value, *axes: int) -> Spec:
        """The spec of an input whose sizes (or those of these axes) are static; otherwise refuse the node."""
        if any(not isinstance(n, int) for axis, n in enumerate(self.sizes_of(value)) if not axes or axis in axes):
            what = f"its ONNX converter needs static sizes, and {value.spec} depends on {', '.join(self.axes)}"
            self.refuse(what, "leave that axis out of dynamic")
        return value.spec

    def shape(self, node: Node, attr: str = "shape", unknown: bool = False) -> str:
        """A shape attr as a value: constant, or computed from the input sizes if it depends on dynamic axes. unknown:
        True if -1 may replace a single dynamic size (Reshape).
        """
        return self.size_vector(self.attr(node, attr), unknown)

    def size_vector(self, dims: Sequence, unknown: bool = False) -> str:
        """These sizes as a 1-d int64 value; see `shape`."""
        moving = [i for i, n in enumerate(dims) if not isinstance(n, int)]
        if not moving:
            return self.const(dims, "int64")
        if unknown and len(moving) == 1 and 0 not in dims:
            return self.const([-1 if i == moving[0] else n for i, n in enumerate(dims)])
        parts = [self.const([n]) if isinstance(n, int) else self.size(n) for n in dims]
        return self.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def size(self, n: Any) -> str:
        """A size that depends on dynamic axes, as an int64 value of shape [1]."""
        if n not in self.sizes:
            self.sizes[n] = self.runtime_size(n) if hasattr(n, "axis") else self.runtime_sum(n.terms)
        return self.sizes[n]

    def runtime_size(self, n: Any) -> str:
        return self.op("Gather", self.op("Shape", self.names[n.value]), self.const([n.axis]))

    def runtime_sum(self, terms: Sequence) -> str:
        """Sum of products. terms: (factor, names of axes) for each."""
        total = None
        for factor, names in terms:
            term = self.const([factor]) if factor != 1 or not names else None
            for name in names:
                axis = self.axis_size(name)
                term = axis if term is None else self.op("Mul", term, axis)
            total = term if total is None else self.op("Add", total, term)
        return self.const([0]) if total is None else total

    def number(self, n: Any, dtype: DType) -> str:
        """A number that depends on dynamic axes (SizeFormula or SizeRatio), as a 0-d value."""
        if not hasattr(n, "scale"):
            return self.cast(self.op("Squeeze", self.size(n)), dtype)
        top, bottom = [self.number(part, dtype) for part in (n.top, n.bottom)]
        return self.op("Mul", self.const(n.scale, dtype), self.op("Div", top, bottom))

    def axis_size(self, name: str) -> str:
        """The size of a dynamic axis, as an int64 value of shape [1]."""
        if name not in self.sizes:
            source, axis = self.axes[name]
            self.sizes[name] = self.op("Gather", self.op("Shape", source), self.const([axis]))
        return self.sizes[name]

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        """Refuse the node. `why` continues the op's name: "dropout: draws random numbers"."""
        raise UnsupportedNode(why, hint)

    def refuse_newer_opset(self, kind: str, opset: int, hint: str = "") -> NoReturn:
        """Refuse the node because its ONNX converter needs a later opset than the one that is written."""
        self.refuse(f"needs {kind} of opset {opset}, and minflow writes opset {OPSET}", hint)


def onnx_type(dtype: DType) -> int:
    """ONNX's enum value of a dtype."""
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(dtype.np)
