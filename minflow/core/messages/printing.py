"""How tensors print: PyTorch's text, with our name. `set_printoptions` changes it for the process."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..backend import Array, namespace, namespace_of, to_host
from ..base.errors import IN_MESSAGE, DTypeError
from ..grad.hooks import Handle, hook_on_node
from ..host import HostArray
from ..ir import INPUTS, OUTPUTS, Node, Source, Value, where_text
from ..mode import MODE
from ..ops.global_tensors import in_world, whole_array

if TYPE_CHECKING:
    from ..tensor import Tensor

MAX_PRINTED = 5_000  # largest number of elements to print of a tensor above the threshold
OPTIONS: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 2**62, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors print, for the process.

    precision: digits after the decimal point.  threshold: number of elements above which the text is abbreviated.
    edgeitems: elements shown at each end of an axis.  linewidth: characters per line.
    profile: "default", "short" or "full".  sci_mode: use exponents; None chooses by the elements.
    Raises DTypeError for values out of range.
    """
    if profile is not None:
        if profile not in PROFILES:
            raise DTypeError(f"no profile {profile!r}", hint=", ".join(PROFILES))
        OPTIONS.update(PROFILES[profile])
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None and not (value >= 0 if isinstance(value, int) else value == float("inf")):
            raise DTypeError(f"set_printoptions: {name} must be an integer of at least 0, got {value!r}")
    passed = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    OPTIONS.update({k: v for k, v in passed.items() if v is not None}, sci_mode=sci_mode)


def formatter(array: HostArray):
    """(function that formats an element, width): all elements get one format, padded to one width, as in PyTorch."""
    if array.dtype.kind == "c":
        (real, first), (imag, second) = formatter(array.real), formatter(array.imag)

        def pair(x: complex) -> str:
            part = imag(x.imag).lstrip()
            return f"{real(x.real)}{'' if part[0] in '+-' else '+'}{part}j"

        return pair, first + second + 1
    if array.dtype.kind != "f":
        width = max((len(str(x)) for x in array.ravel().tolist()), default=1)
        return (lambda x: f"{x!s:>{width}}"), width
    xp = namespace()
    finite = array[xp.isfinite(array)].astype("float64")
    nonzero = abs(finite[finite != 0])
    digits, sci = OPTIONS["precision"], OPTIONS["sci_mode"]
    whole = bool((finite == xp.ceil(finite)).all())
    if sci is None:
        sci = False
        if nonzero.size:
            high, low = nonzero.max(), nonzero.min()
            sci = bool(high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4))

    def form(x: float) -> str:
        if sci:
            return f"{x:.{digits}e}"
        if whole:
            return f"{x:.0f}." if math.isfinite(x) else f"{x:.0f}"
        return f"{x:.{digits}f}"

    width = max((len(form(x)) for x in finite[finite != 0].tolist()), default=1)
    return (lambda x: f"{form(x):>{width}}"), width


def elements_text(array: Array, indent: int) -> str:
    """The elements in nested brackets, abbreviated if there are more than the threshold. Only those are read."""
    edges = edges_of(array)
    shown = namespace_of(array).ix_(*[printed_indices(n, edges) for n in array.shape]) if edges else ...
    block = to_host(array[shown])
    block = block.astype("float32") if block.dtype.name == "bfloat16" else block
    form, width = formatter(block)
    return nested_text(block, array.shape, indent, form, width, edges)


def edges_of(array: Array) -> tuple[int, int] | None:
    """(number of elements to show at the start, at the end) of a long axis, fewer for many axes; None shows all."""
    if array.size <= OPTIONS["threshold"]:
        return None
    edge = OPTIONS["edgeitems"]
    for edges in (edge, edge), *[(n, n) for n in range(min(edge - 1, 3), 0, -1)], (1, 0):
        if math.prod([len(printed_indices(n, edges)) for n in array.shape]) <= MAX_PRINTED:
            break
    return edges


def printed_indices(n: int, edges: tuple[int, int]) -> list[int]:
    """The indices that are shown of an axis of size n."""
    head, tail = edges
    return [*range(head), *range(n - tail, n)] if n > max(head + tail, 1) else [*range(n)]


def nested_text(
    array: HostArray, sizes: tuple[int, ...], indent: int, form, width: int, edges: tuple[int, int] | None
) -> str:
    """The text of the printed elements of a tensor.

    sizes: those of the axes of the tensor.  edges: the number of elements before and after a gap, see `edges_of`.
    """
    if not array.ndim:
        return form(array.item())
    gap = edges[0] if edges and len(array) < sizes[0] else None
    if array.ndim == 1:
        a_line = max(1, (OPTIONS["linewidth"] - indent) // (width + 2))
        parts = [*map(form, array.tolist())]
        if gap is not None:
            parts.insert(gap, " ...")
        lines = [", ".join(parts[i : i + a_line]) for i in range(0, len(parts), a_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [nested_text(row, sizes[1:], indent + 1, form, width, edges) for row in array]
    if gap is not None:
        rows.insert(gap, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def tensor_text(tensor) -> str:
    """`tensor([[1., 1.]], dtype=minflow.float32)`, with grad_fn or requires_grad, and a device other than the CPU. A
    global tensor prints with all elements, its placement and its sbp: all ranks call it.
    """
    name = "Parameter containing:\n" if type(tensor).__name__ == "Parameter" else ""
    opening = "tensor(" if type(tensor).__module__.startswith("minflow.") else f"{type(tensor).__name__}("
    parts = []
    trace, shape = MODE.get().trace, tuple(tensor.spec.shape)
    if tensor.array is None or (trace is not None and trace.is_written(tensor)):  # its array is out of date
        parts += ["...", "is_lazy='True'", f"size={shape}"]
    elif tensor.is_meta or (
        tensor.is_global and (IN_MESSAGE.get() or not in_world(tensor.placement))
    ):  # else all ranks call this
        parts += ["...", f"size={shape}"]
    else:
        array = whole_array(tensor) if tensor.is_global else tensor.array
        parts.append(elements_text(array, len(opening)) if tensor.spec.size else "[]")
        if not tensor.spec.size and shape != (0,):
            parts.append(f"size={shape}")
    if tensor.is_global:
        parts += [f"placement={tensor.placement}", f"sbp={tensor.sbp}"]
    elif tensor.device.type != "cpu":
        parts.append(f"device='{tensor.device}'")
    parts.append(f"dtype={tensor.dtype}")
    fn = tensor.grad_fn
    if fn is not None:
        parts.append(f"grad_fn={fn}")
    elif tensor.requires_grad:
        parts.append("requires_grad=True")
    body = opening + parts[0]
    used = len(body) - body.rfind("\n") + 1
    for part in parts[1:]:
        if used + len(part) + 2 > OPTIONS["linewidth"]:
            body += ",\n" + " " * len(opening) + part
            used = len(opening) + len(part)
        else:
            body += ", " + part
            used += len(part) + 2
    return f"{name}{body})"


class GradFn:
    """The value of `tensor.grad_fn`: the Node that computed the tensor; `next_functions` walks back along the tape."""

    __slots__ = ("node",)

    def __init__(self, node: Node):
        self.node = node

    def name(self) -> str:
        """The name, such as "MulBackward"; "AccumulateGrad" for a leaf, the end of the tape."""
        if isinstance(self.node, Source):
            return "AccumulateGrad"
        return re.sub(r"(?:^|_)(\w)", lambda m: m.group(1).upper(), self.node.op.name) + "Backward"

    def register_hook(self, hook: Callable) -> Handle:
        """Call `hook(grad_inputs, grad_outputs)` after the gradients of this node are computed; both are tuples, with
        None for missing gradients. A tuple that it returns replaces grad_inputs.
        """
        return hook_on_node(self.node, INPUTS, hook, "hook(grad_inputs, grad_outputs)")

    def register_prehook(self, hook: Callable) -> Handle:
        """Call `hook(grad_outputs)` before the gradients of this node are computed. A tuple that it returns replaces
        grad_outputs.
        """
        return hook_on_node(self.node, OUTPUTS, hook, "hook(grad_outputs)")

    @property
    def next_functions(self) -> tuple:
        """`((GradFn, output index), ...)`, one for each input that needs a gradient."""
        values = [x for i, x in enumerate(self.node.inputs) if isinstance(x, Value) and self.node.needs >> i & 1]
        return tuple([(GradFn(v.node), v.index) for v in values])

    @property
    def variable(self) -> Tensor | None:
        """The leaf tensor of which this is the end of the tape; None if it is gone. Other nodes have none."""
        if not isinstance(self.node, Source):
            raise AttributeError(f"{self!r} computed a tensor: only the end of the tape, a leaf, has a variable")
        return self.node.tensor()

    @property
    def where(self) -> str:
        """The line that computed it."""
        return where_text(self.node.where)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the op by PyTorch's name, such as `_saved_dim` of a cat, for walks along the tape."""
        attrs, saved = self.node.attrs, name.removeprefix("_saved_")
        if saved == name or saved not in attrs:
            raise AttributeError(f"{self!r} has no attribute {name}; of its op: {[f'_saved_{it}' for it in attrs]}")
        return attrs[saved]

    def __eq__(self, other) -> bool:
        return isinstance(other, GradFn) and self.node is other.node

    def __hash__(self) -> int:
        return id(self.node)

    def __repr__(self) -> str:
        return f"<{self.name()}>"
