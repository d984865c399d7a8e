"""How tensors print: PyTorch's text, with our name. `set_printoptions` changes it for the process."""

from __future__ import annotations

import re

import numpy as np

from .errors import DTypeError
from .ir import Node, Value, where_text

TYPE_NAMES = {
    "float16": "minflow.HalfTensor", "float32": "minflow.FloatTensor", "float64": "minflow.DoubleTensor", "bool": "minflow.BoolTensor",
    "int8": "minflow.CharTensor", "uint8": "minflow.ByteTensor", "int32": "minflow.IntTensor", "int64": "minflow.LongTensor",
}  # fmt: skip
BY_TYPE_NAME = {text: name for name, text in TYPE_NAMES.items()}

OPTIONS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 2**62, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None) -> None:
    """Digits after the point, how many numbers are too many, how many to show at the edges, characters a line,
    "default" | "short" | "full", and whether to use exponents (None: where it reads better)."""
    if profile is not None:
        if profile not in PROFILES:
            raise DTypeError(f"no profile {profile!r}", hint=", ".join(PROFILES))
        OPTIONS.update(PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    OPTIONS.update({k: v for k, v in given.items() if v is not None}, sci_mode=sci_mode)


def number_format(array: np.ndarray):
    """How each float is written: all alike, as PyTorch does it."""
    finite = array[np.isfinite(array)].astype("float64")
    nonzero = np.abs(finite[finite != 0])
    digits, sci = OPTIONS["precision"], OPTIONS["sci_mode"]
    whole = bool(np.all(finite == np.ceil(finite)))
    if nonzero.size and sci is None:
        high, low = nonzero.max(), nonzero.min()
        sci = bool(high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4) if not whole else bool(high / low > 1000.0 or high > 1.0e8)
    if sci:
        return lambda x: f"{x:.{digits}e}"
    if whole:
        return lambda x: f"{x:.0f}." if np.isfinite(x) else f"{x:.0f}"
    return lambda x: f"{x:.{digits}f}"


def numbers(array: np.ndarray, indent: int) -> str:
    """The numbers in nested brackets."""
    formatter = {}
    if array.dtype.kind == "f":
        form = number_format(shown_part(array))
        width = max((len(form(x)) for x in shown_part(array).ravel()), default=0)
        formatter = {"float_kind": lambda x: f"{form(x):>{width}}" if array.ndim else form(x)}
    with np.printoptions(legacy=False):
        return np.array2string(
            array, separator=", ", prefix=" " * indent, formatter=formatter or None, threshold=OPTIONS["threshold"],
            edgeitems=OPTIONS["edgeitems"], max_line_width=OPTIONS["linewidth"],
        )  # fmt: skip


def shown_part(array: np.ndarray) -> np.ndarray:
    """The numbers that will be printed: all, or those at the edges."""
    edge = OPTIONS["edgeitems"]
    if array.size <= OPTIONS["threshold"]:
        return array
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            array = np.take(array, [*range(edge), *range(n - edge, n)], axis)
    return array


def text(tensor) -> str:
    """`tensor([[1., 1.]], dtype=minflow.float32)`, with grad_fn or requires_grad, and the device when it is not the CPU."""
    name = "Parameter containing:\ntensor" if type(tensor).__name__ == "Parameter" else "tensor"
    parts = []
    if tensor.array is None:
        parts += ["...", f"size={tuple(tensor.spec.shape)}", "is_lazy='True'"]
    else:
        shown = numbers(tensor.array, len("tensor("))
        parts.append("[]" if not tensor.array.size else shown)
        if not tensor.array.size and tensor.spec.shape != (0,):
            parts.append(f"size={tuple(tensor.spec.shape)}")
    if tensor.device.type != "cpu":
        parts.append(f"device='{tensor.device}'")
    parts.append(f"dtype={tensor.dtype}")
    fn = tensor.grad_fn
    if fn is not None:
        parts.append(f"grad_fn={fn}")
    elif tensor.requires_grad:
        parts.append("requires_grad=True")
    body = parts[0]
    line = body.rpartition("\n")[2]
    for part in parts[1:]:
        if len(line) + len(part) + 9 > OPTIONS["linewidth"]:
            body += ",\n       " + part
            line = part
        else:
            body += ", " + part
            line += ", " + part
    return f"{name}({body})"


class GradFn:
    """What `tensor.grad_fn` shows: the Node that computed it, and the way on through `next_functions`."""

    __slots__ = ("node",)

    def __init__(self, node: Node):
        self.node = node

    def name(self) -> str:
        """ "MulBackward"."""
        return re.sub(r"(?:^|_)(\w)", lambda m: m.group(1).upper(), self.node.op.name) + "Backward"

    @property
    def next_functions(self) -> tuple:
        """`((GradFn or None, output number), ...)`, one for each input that wants a gradient."""
        values = [x for i, x in enumerate(self.node.inputs) if isinstance(x, Value) and self.node.needs >> i & 1]
        return tuple([(GradFn(v.node), v.index) for v in values])

    @property
    def where(self) -> str:
        """The line that computed it."""
        return where_text(self.node.where)

    def __eq__(self, other) -> bool:
        return isinstance(other, GradFn) and self.node is other.node

    def __hash__(self) -> int:
        return id(self.node)

    def __repr__(self) -> str:
        return f"<{self.name()}>"
