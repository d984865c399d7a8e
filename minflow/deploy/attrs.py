"""Encode and decode the attrs of ops as JSON.

JSON values are kept; tuples become lists, a dtype its name, Ellipsis "...", NaN {"float": "nan"}, 1j {"complex": [0.0,
1.0]}, an op in a view path its name. The type of an attr is not in the file: ATTR_KINDS gives it by name, unless the op
says otherwise (`Op.attr_kinds`). A kind is a check as in `checks.py`: (JSON value, place) -> value, or Malformed.
Consistency with the shapes of the inputs is checked later, by the op's shape rule. Read next: `checks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.dynamic_shapes.derived_sizes import SizeFormula, SizeRatio, evaluate_sizes
from ..core.host import HostScalar
from ..core.infer import data_dependent
from ..core.ir import NUMBERS
from ..core.op import OPS, Op
from ..core.ops.shape import check_fits
from ..core.spec import DType, dtype_named, promote
from . import checks
from .checks import (
    MAX_MAGNITUDE,
    Check,
    Malformed,
    check_bool,
    check_choice,
    check_fields,
    check_int,
    check_list,
    check_text,
    choice_of,
    encode_float,
    optional_of,
)

MAX_NDIM = 64  # entries of a shape
MAX_STEPS = 1_000_000  # entries of a sequence of step sizes
MAX_TERMS = 64  # of a SizeFormula
MAX_DEPTH = 8  # nested tuples in an attr of a custom op
# Largest size in bytes of a tensor, including views; and of an empty tensor with its sizes of 0 counted as 1, because
# kernels loop over its other sizes.
MAX_TENSOR_BYTES, MAX_EMPTY_BYTES = 2**40, 2**27


# ---- values as data --------------------------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """The JSON value of an attr. Raises TypeError for a value that cannot be stored."""
    if isinstance(value, HostScalar):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return encode_float(value)
    if type(value) is complex:
        return {"complex": [encode(value.real), encode(value.imag)]}
    if isinstance(value, tuple | list):
        return [encode(x) for x in value]
    if value is Ellipsis:
        return "..."
    if isinstance(value, DType | Op):
        return value.name
    if isinstance(value, Mapping):  # the attrs of a view in a view path
        return {name: encode(x) for name, x in value.items()}
    if isinstance(value, SizeFormula):
        return {"follows": [[factor, list(names)] for factor, names in value.terms]}
    if isinstance(value, SizeRatio):
        return {"ratio": [encode(value.scale), encode(value.top), encode(value.bottom)]}
    raise TypeError(f"{type(value).__name__} is not a value that a file can hold")


def encode_attrs(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attrs of a node as JSON values. Raises TypeError or Malformed for values that `decode_attrs` would not
    restore.
    """
    data = {name: encode(value) for name, value in attrs.items() if name not in NOT_STORED}
    if op.custom and (other := [x for x in leaves(tuple(attrs.values())) if type(x) not in PLAIN]):
        raise TypeError(f"{type(other[0]).__name__} must be a plain value: an attr of a custom operation")
    decode_attrs(op, data)
    return data


def leaves(value: Any) -> list:
    """The leaves of nested tuples."""
    return [leaf for x in value for leaf in leaves(x)] if type(value) is tuple else [value]


# ---- kinds -----------------------------------------------------------------------------------------------------------


def integer(x: Any, place: str, low: int = -MAX_MAGNITUDE) -> Any:
    """An int, or a SizeFormula: an int that depends on the sizes of dynamic axes."""
    return size_formula(x, place) if type(x) is dict else check_int(x, place, low, MAX_MAGNITUDE)


def natural(x: Any, place: str) -> Any:
    return integer(x, place, 0)


def size_formula(x: Any, place: str) -> SizeFormula:
    terms = []
    for i, term in enumerate(check_list(check_fields(x, place, ("follows",))["follows"], place, MAX_TERMS, 1)):
        here = f"{place}.follows[{i}]"
        factor, names = check_list(term, here, 2, 2)
        names = [check_text(name, here, min_length=1) for name in check_list(names, here, MAX_TERMS)]
        terms.append((check_int(factor, here, -MAX_MAGNITUDE, MAX_MAGNITUDE), tuple(names)))
    return SizeFormula(tuple(terms))


def real(x: Any, place: str) -> Any:
    """A float, an int in its place, or a value that depends on dynamic axes."""
    if type(x) is dict and "follows" in x:
        return size_formula(x, place)
    if type(x) is dict and "ratio" in x:
        scale, top, bottom = check_list(check_fields(x, place, ("ratio",))["ratio"], place, 3, 3)
        if type(scale) is dict and "float" not in scale:
            raise Malformed("a float", scale, place)
        return SizeRatio(float(real(scale, place)), size_formula(top, place), size_formula(bottom, place))
    return checks.check_real(x, place)


def number(x: Any, place: str) -> Any:
    """Any Python number."""
    if type(x) is dict and "complex" in x:
        parts = [real(y, place) for y in check_list(check_fields(x, place, ("complex",))["complex"], place, 2, 2)]
        if [type(y) for y in parts] != [float, float]:
            raise Malformed("two floats", x, place)
        return complex(*parts)
    return x if type(x) is bool else real(x, place)


def dtype(x: Any, place: str) -> DType:
    return dtype_named(check_choice(x, place, DType.table))


def tuple_of(kind: Check, max_length: int = MAX_NDIM) -> Check:
    """A tuple whose entries are of this kind."""
    return lambda x, place: tuple([kind(y, f"{place}[{i}]") for i, y in enumerate(check_list(x, place, max_length))])


def pair_of(kind: Check) -> Check:
    """A pair for height and width."""
    return lambda x, place: tuple([kind(y, place) for y in check_list(x, place, 2, 2)])


def index_entry(x: Any, place: str) -> Any:
    """One entry of an index: an int, None, Ellipsis, or a slice as (start, stop, step)."""
    if x is None or type(x) is str:
        return None if x is None else Ellipsis if check_choice(x, place, ("...",)) else x
    if type(x) is not list:
        return integer(x, place)
    start, stop, step = [optional_of(integer)(y, place) for y in check_list(x, place, 3, 3)]
    if step == 0:
        raise Malformed("a slice whose step is not 0", x, place)
    return start, stop, step


def index(x: Any, place: str) -> tuple:
    parts = tuple_of(index_entry, 2 * MAX_NDIM)(x, place)
    if sum([y is Ellipsis for y in parts]) > 1:
        raise Malformed("an index with at most one ...", x, place)
    return parts


def view(x: Any, place: str) -> tuple[Op, dict[str, Any]]:
    """One step of a view path: an op and its attrs."""
    name, attrs = check_list(x, place, 2, 2)
    op = OPS[check_choice(name, place, [name for name, op in OPS.items() if op.is_view and len(op.inputs) == 1])]
    return op, decode_attrs(op, attrs, place)


def plain_value(x: Any, place: str, depth: int = MAX_DEPTH) -> Any:
    """A plain value: None, a string, a number, or a tuple of these."""
    if x is None or type(x) is str:
        return None if x is None else check_text(x, place, MAX_STEPS, lines=True)
    if type(x) is not list:
        return number(x, place)
    if not depth:
        raise Malformed(f"at most {MAX_DEPTH} nested tuples", x, place)
    return tuple([plain_value(y, place, depth - 1) for y in check_list(x, place, MAX_STEPS)])


PLAIN = frozenset({type(None), str, bool, int, float, complex})
SIZES, INTEGERS, WINDOW = tuple_of(natural), tuple_of(integer), pair_of(natural)
AXIS_OR_NONE, AXES_OR_NONE = optional_of(integer), optional_of(INTEGERS)


def with_kind(kind: Check, names: str) -> dict[str, Check]:
    return dict.fromkeys(names.split(), kind)


NOT_STORED = ("device",)  # a file names none: `load_graph` chooses
ATTR_KINDS: dict[str, Check] = {  # attr -> its kind
    **with_kind(
        check_bool,
        """align_corners antialias apart ceil_mode complete corrected count_include_pad decoupled descending
        full include_self inverse invert keepdims log_input log_target maximize nesterov nowhere relu
        replacement reverse right runs swap ta tb unit upper""",
    ),
    **with_kind(integer, "axis blank call diagonal dim dim1 dim2 ignore_index offset"),
    **with_kind(
        natural,
        """bags bins classes downscale_factor groups k minlength n needs num_classes num_samples size step
        upscale_factor""",
    ),
    **with_kind(
        real,
        """alpha atol beta beta1 beta2 correction dampening delta eps etaminus etaplus high input_scale label_smoothing
        lambd largest least low lr_decay m1 m2 m3 margin mean momentum momentum_decay norm_type p rho rtol scale
        smallest std t0 threshold weight_decay""",
    ),
    **with_kind(check_text, "by loss name"),
    **with_kind(SIZES, "output_size shape"),
    **with_kind(INTEGERS, "axes dims shifts"),
    **with_kind(WINDOW, "dilation kernel_size padding stride"),
    "approximate": choice_of("none", "tanh"),
    "dtype": dtype,
    "divisor_override": optional_of(integer),
    "factors": tuple_of(optional_of(real)),
    "index": index,
    "mode": choice_of("nearest", "nearest-exact", "linear", "cubic"),
    "padding_mode": choice_of("zeros", "border", "reflection"),
    "path": tuple_of(view),
    "pooling": choice_of("sum", "mean", "max"),
    "reduce": choice_of("prod", "amax", "amin"),
    "reduction": choice_of("none", "mean", "sum"),
    "sizes": tuple_of(natural, MAX_STEPS),
    "value": number,
    "widths": tuple_of(pair_of(natural)),
}
NAMED_KINDS: dict[str, Check] = {  # the kinds of `Op.attr_kinds`
    "integer": integer,
    "natural": natural,
    "real": real,
    "sizes": SIZES,
    "integer or None": AXIS_OR_NONE,
    "integers or None": AXES_OR_NONE,
    "pairs of integers": tuple_of(pair_of(integer)),
    "padding mode": choice_of("reflect", "replicate", "circular"),
}


def kind_of(op: Op, name: str) -> Check:
    """The kind of an op's attr."""
    if op.custom:
        return plain_value
    return NAMED_KINDS[op.attr_kinds[name]] if name in op.attr_kinds else ATTR_KINDS[name]


def storable(op: Op) -> bool:
    """True if a file can hold the op. False for ops that need values known only at run time (data-dependent shapes,
    foreign memory), and for optimizer rules, which the optimizer recreates.
    """
    return op.storable and op.infer is not data_dependent and "lr" not in op.inputs


def plausible(shape: Sequence[int], dtype: DType) -> bool:
    """True if a tensor of this size can be computed at all. `expand` takes no memory, but its consumers take time."""
    return math.prod(n or 1 for n in shape) * dtype.itemsize <= (MAX_EMPTY_BYTES if 0 in shape else MAX_TENSOR_BYTES)


def check_inputs(op: Op, inputs: Sequence[Any], place: str = "inputs") -> None:
    """Check the inputs of an op (Python numbers, or Specs of tensors): their count, that numbers are allowed, and that
    the dtype can hold them. Raises Malformed, or the error of `check_fits`.
    """
    numbers = [i for i, x in enumerate(inputs) if type(x) in NUMBERS]
    if not inputs if op.variadic else len(inputs) != len(op.inputs):
        raise Malformed(f"{len(op.inputs)} inputs of {op.name}", len(inputs), place)
    any_input = op.elementwise or (op.variadic and op.number_inputs)
    allowed = range(len(inputs)) if any_input else [op.inputs.index(name) for name in op.number_inputs]
    if numbers and (len(numbers) == len(inputs) or not set(numbers) <= {*allowed}):
        raise Malformed(f"a tensor as input {numbers[0]} of {op.name}", inputs[numbers[0]], place)
    if numbers and op.elementwise != "bool" and not op.variadic:
        kinds = [type(x) if type(x) in NUMBERS else x for x in inputs]
        target_dtype = kinds[0].dtype if op.number_inputs == ("src",) else promote(*kinds[-2:])
        for i in numbers:
            check_fits(inputs[i], target_dtype)


def decode_attrs(op: Op, data: Any, place: str = "attrs") -> dict[str, Any]:
    """Decode the attrs of a node: exactly those of the op, each of its kind. Raises Malformed."""
    if not storable(op):
        raise Malformed("an operation that a file can contain", op.name, place)
    optional = [name for name in op.attrs if name == "by"]
    needed = [name for name in op.attrs if name not in (*optional, *NOT_STORED)]
    return {
        name: kind_of(op, name)(x, f"{place}.{name}") for name, x in check_fields(data, place, needed, optional).items()
    }


def attrs_at_sizes(op: Op, attrs: Mapping[str, Any], sizes: Mapping[str, int], place: str = "attrs") -> dict[str, Any]:
    """Attrs at these sizes of the dynamic axes. Raises Malformed if one is no longer of its kind."""
    now = resolve_sizes(attrs, sizes)
    return dict(now) if now == attrs else decode_attrs(op, {name: encode(x) for name, x in now.items()}, place)


def resolve_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """Replace each SizeFormula in a decoded attr by its value at these sizes of the dynamic axes. Raises Malformed for
    absurd values; consistency with the inputs is checked by the op's shape rule.
    """
    return evaluate_sizes(value, sizes, check_range)


def check_range(dependent: SizeFormula | SizeRatio, sizes: Mapping[str, int]) -> None:
    if not dependent.axes <= sizes.keys():
        raise Malformed(f"in range for the dynamic axes {', '.join(sizes)}", str(dependent), "attrs")
    for formula in [dependent.top, dependent.bottom] if isinstance(dependent, SizeRatio) else [dependent]:
        check_int(formula.evaluate(sizes), "attrs", -MAX_MAGNITUDE, MAX_MAGNITUDE)
