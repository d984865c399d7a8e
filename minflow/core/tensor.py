"""Tensor: an array with its Spec, and on a tape or in a trace a Value.

A symbolic tensor (while tracing) has no array. Methods call `functions/`; `eager.py` and `trace.py` record ops.
Read next: `methods/operators.py`, `methods/forwarded.py`, `functions/arithmetic.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from . import autograd, functions as F
from .backend import OPEN, TENSOR_TYPES, Array, backend_of, backend_of_array, is_available, to_host
from .base.display import Display
from .base.dtypes import is_dtype
from .base.errors import DeviceError, DTypeError, GradError, NonFiniteError, OutOfRangeError, ShapeError, TraceError
from .dispatch import apply, refuse_symbolic
from .functionalize import (
    Alias,
    contiguous,
    is_contiguous,
    lend,
    make_view,
    read_only,
    stride_probe,
    view_path,
    with_own_version,
    write_into,
)
from .functions.fill import Place, finish, place_of
from .functions.memory_format import Layout, strided, view_in_format
from .functions.sparse import SPARSE_TYPES
from .functions.tensor_types import data_or_shape, parse_type, type_of
from .grad.hooks import Handle, hook_on, post_accumulate_on
from .host import HostArray, HostScalar, host_array
from .in_flight import IN_FLIGHT, before_read
from .ir import LEAF, Source, Value, VersionCounter
from .messages import printing
from .messages.no_gradient import record_read
from .messages.suggestions import hint_methods
from .messages.symbolic_reads import symbolic_read_error
from .messages.wrong_arguments import unreadable_or
from .methods.adapted import Adapted
from .methods.complex import Complex
from .methods.creation import Creation
from .methods.dtypes import DTypes
from .methods.forwarded import Forwarded
from .methods.global_tensors import GlobalTensors
from .methods.in_place import InPlace
from .methods.interop import Interop, deepcopy_of_computed
from .methods.operators import Operators, comparable
from .methods.shapes import Shapes
from .methods.sparse import Sparse
from .methods.subclasses import Subclasses
from .mode import DEFAULT, MODE, bump_mutations
from .ops import shape as s
from .ops.global_tensors import local_part, whole_array
from .source_location import fail
from .spec import Device, DType, Spec, as_dtype, bfloat16, cpu, default_dtype, spec_of
from .streams import Stream, copy_without_waiting
from .symbolic_shapes import SymInt, fixed, symbols_in

if TYPE_CHECKING:
    from .base.dtypes import DTypeLike
    from .base.placement import Placement, Sbp, SbpLike


# attributes that a copy creates anew
OWN_ATTRIBUTES = frozenset(("array", "spec", "_value", "_needs", "_alias", "_version_counter", "_gradient", "_hooks"))


class Size(tuple):
    """The shape of a tensor: a tuple of ints that prints as `minflow.Size([2, 3])`."""

    def numel(self) -> int:
        """Product of the sizes."""
        n = 1
        for size in self:
            n *= size
        return n

    def __getitem__(self, index: Any) -> Any:
        result = super().__getitem__(index)
        return Size(result) if isinstance(index, slice) else result

    def __add__(self, other: tuple) -> Size:
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: tuple) -> Size:
        return Size(tuple(other) + tuple(self))

    def __repr__(self) -> str:
        return f"minflow.Size({list(self)})"


@hint_methods
class Tensor(
    Operators,
    Forwarded,
    Adapted,
    Shapes,
    InPlace,
    Creation,
    DTypes,
    Complex,
    GlobalTensors,
    Interop,
    Sparse,
    Subclasses,
    Display,
):
    """An n-dimensional array of one dtype that remembers how it was computed.

    Make one with `flow.tensor([[1., 2.], [3., 4.]])`; `Tensor(2, 3)` is an uninitialized float32 tensor of that shape.
    array: the numpy array, None while tracing.  spec: shape, dtype and device.  needs: True if it needs a gradient.
    _value: its Value on the tape or in the graph.  alias: of a view, its relation to the base.  version_counter: counts
    writes to the storage.
    """

    array: Any  # of the array library of its device; None while tracing
    spec: Spec
    _value: Value | None = None  # class attributes as defaults cost nothing per tensor
    _alias: Alias | None = None
    _version_counter: VersionCounter | None = None
    _gradient: Tensor | None = None
    _needs = False
    _has_optimizer = False  # of a parameter: it belongs to an optimizer
    _label = ""  # its attribute name in a Module
    _copied: tuple | None = None  # of a view with elements of other ranks: (writes, Value) of its base at that time
    _has_leaf_views = False  # while tracing: a view of it was made a leaf
    _retains: Callable | None = None  # the hook of `retain_grad`
    _hooks: dict | None = None  # of a leaf: `Node.hooks` of its Source
    _used_by_step = False  # of a gradient: an optimizer step has used it
    _graph_name = ""  # the name of the nn.Graph that returned it
    _accumulated_after_step = False  # of a gradient: a backward accumulated into it after a step had used it

    def __init__(
        self,
        array: Any = (),
        spec: Spec | None = None,
        value: Value | None = None,
        needs: bool = True,
        *more: Any,
        device: Device | str | None = None,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
    ):
        if spec.__class__ is not Spec:
            if "spec" in vars(self):  # `__new__` of a program's class has made it
                return
            twin = from_numbers(place_of(device, placement, sbp), array, spec, value, needs, more)
            array, spec, value, needs = twin.array, twin.spec, twin._value, twin._needs
            self._version_counter, self._alias = twin._version_counter, twin._alias
        else:
            self._alias = self._version_counter = None
        self.array, self.spec, self._value, self._needs = array, spec, value, value is not None and needs

    # ---- shape, dtype, device ------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The sizes of all axes, as a `minflow.Size`."""
        return Size(self.spec.shape)

    @property
    def dtype(self) -> DType:
        """The data type of its elements."""
        return self.spec.dtype

    @property
    def device(self) -> Device:
        """The device that holds its elements."""
        return self.spec.device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.spec.ndim

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.spec.nbytes

    @property
    def layout(self) -> Layout:
        """The memory layout: `flow.strided`; for programs, a sparse tensor has `flow.sparse_coo`."""
        return strided

    is_cuda = property(lambda self: self.spec.device.type == "cuda", doc="True if it is on a GPU.")
    is_lazy = property(lambda self: self.array is None, doc="True for a symbolic tensor, which a graph will compute.")

    @property
    def is_leaf(self) -> bool:
        """True if it was not computed by a recorded op, or does not require grad."""
        if not self.requires_grad or self._value is None or isinstance(self._value.node, Source):
            return True
        return self.array is None and MODE.get().leaf(self._value) is self

    def size(self, dim: int | None = None) -> Any:
        """The sizes of all axes, or the size of axis `dim`."""
        if dim is None:
            return self.shape
        F.check_min_axes("size", self)
        return self.spec.shape[F.normalize_axis(dim, self.ndim, self)]

    def dim(self) -> int:
        """Number of axes."""
        return self.spec.ndim

    ndimension = dim

    def numel(self) -> int:
        """Number of elements."""
        return self.spec.size

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self.spec.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Distance between neighboring elements along each axis, or along `dim`, in elements (not bytes)."""
        if self.array is None:
            list(map(fixed, symbols_in(view_path(self))))
        array = stride_probe(self)
        strides = tuple(n // max(array.itemsize, 1) for n in array.strides)
        if dim is None:
            return strides
        F.check_min_axes("stride", self)
        return strides[F.normalize_axis(dim, self.ndim, self)]

    def storage_offset(self) -> int:
        """Position of its first element in the storage, in elements."""
        if self.array is None:
            list(map(fixed, symbols_in(view_path(self))))
        array = stride_probe(self)
        if array is self.array:
            base = self._alias.base.array if self._alias else array
        else:  # it has only the strides
            base = array
            while getattr(base, "base", None) is not None:
                base = base.base
        mine, first = [backend_of_array(x).byte_bounds(x)[0] for x in (array, base)]
        return (mine - first) // self.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        array = self._read_array("data_ptr") if self.array is None else lend(self)
        return backend_of_array(array).byte_bounds(array)[0]

    def is_contiguous(self, memory_format: Layout | None = None) -> bool:
        """True if its elements are contiguous in memory, in C order or in the order of `memory_format`."""
        view = self if memory_format is None else view_in_format(self, memory_format)
        return view is not None and is_contiguous(view)

    def get_device(self) -> int:
        """Index of its GPU; -1 on the CPU."""
        return self.device.index if self.is_cuda else -1

    def __len__(self) -> int:
        if not self.ndim:
            fail(DTypeError, "len() of a 0-d tensor", "it has one element: tensor.numel() is 1", tensor=self)
        return self.spec.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            hint = "it is one number: tensor.item() reads it outside of a graph"
            fail(DTypeError, "iteration over a 0-d tensor", hint, tensor=self)
        return iter(F.unbind(self))

    def __contains__(self, element: Any) -> bool:
        if not comparable(element) or isinstance(element, HostArray):
            what = f"in: {type(element).__name__} in a tensor"
            fail(DTypeError, what, "a number or a tensor on the left", element=element, tensor=self)
        return bool((self == element).any())

    def __hash__(self) -> int:
        return id(self)

    # ---- gradients -----------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """True if gradients are computed for it: a leaf for which this was set, or a result computed from one."""
        return MODE.get().resolve(self)._needs if self._alias is not None else self._needs

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        (SPARSE_TYPES[0] if self.is_sparse else Tensor).requires_grad_(self, wanted)  # not that of a program's class

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Turn gradients of this leaf on or off, in place. Raises GradError for dtypes without gradients, and when
        turned off for a computed tensor.
        """
        if requires_grad and not self.spec.differentiable:
            what = f"only floating tensors can require grad, not {self.dtype.name}"
            fail(GradError, what, "x.float() first", tensor=self)
        if not requires_grad and not self.is_leaf:
            what = "requires_grad can be turned off for leaves only, and this tensor was computed"
            fail(GradError, what, ".detach()", tensor=self)
        if self.array is None and (mode := MODE.get()).trace is not None:  # while a graph is built: its Value stays
            self._needs = bool(requires_grad)
            mode.leaves[self._value] = self
            if self._alias is not None and self._alias.path:
                self._alias.base._has_leaf_views = True
        elif bool(requires_grad) is not self._needs:
            bump_mutations()
            self._needs = bool(requires_grad)
            self._value = leaf_value(self) if requires_grad else None
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated, of this tensor's shape and dtype; None before the first."""
        return self._grad_owner()._gradient

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        if g is not None and (not isinstance(g, Tensor) or g.spec is not self.spec):
            fail(ShapeError, "a gradient has the shape, dtype and device of its tensor", "", tensor=self, grad=g)
        self._grad_owner()._gradient = g

    def _grad_owner(self) -> Tensor:
        """The tensor that stores `.grad`: while tracing, the symbol, so that the real parameter stays concrete."""
        mode = MODE.get()
        return mode.resolve(self) if mode.trace else self

    @property
    def grad_fn(self) -> printing.GradFn | None:
        """The Node that computed this tensor, shown as `<MulBackward>`; None for leaves."""
        value = MODE.get().resolve(self)._value
        return None if value is None or isinstance(value.node, Source) else printing.GradFn(value.node)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add d self / d leaf to `.grad` of every leaf that this tensor was computed from. See `autograd.backward`."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Make backward fill `.grad` of this computed tensor too."""
        tensor = self._grad_owner()
        if not tensor.requires_grad:
            fail(GradError, "retain_grad() of a tensor that requires no gradient", "x.requires_grad_() first", x=self)
        if not tensor.is_leaf:
            autograd.retain(tensor)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call `hook(grad)` when the gradient of this tensor is known; a tensor that it returns replaces the gradient.

        A graph records what the hook computes; registering or removing a hook later makes it compile a new plan.
        """
        return hook_on(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(tensor)` after a backward has added to `.grad` of this leaf; the hook must return None."""
        return post_accumulate_on(self, hook)

    def detach(self) -> Tensor:
        """The same storage, outside the tape."""
        return apply(s.detach, self)

    def detach_(self) -> Tensor:
        """Take this tensor off the tape, in place."""
        self._value, self._needs = None if self.array is not None else self.detach()._value, False
        return self

    @property
    def data(self) -> Tensor:
        """The same storage, outside the tape; the tape does not see writes through it."""
        if (trace := MODE.get().trace) is not None:
            return trace.as_data(with_own_version(apply(s.detach, self)))
        twin = new_tensor(self.array, self.spec)
        make_view(DEFAULT, twin, self, s.detach, {})
        return with_own_version(twin)

    @data.setter
    def data(self, other: Tensor) -> None:
        """Use the storage of another tensor from now on."""
        if not isinstance(other, Tensor):
            fail(DTypeError, "x.data = ... takes a tensor", "flow.tensor(...)", value=other)
        if MODE.get().trace is not None:
            what = "x.data = ... while a graph is built: x would have no elements after it"
            hint = "with flow.no_grad(): x.copy_(other), which the graph repeats at each call"
            fail(TraceError, what, hint, x=self, other=other)
        if self.spec is not other.spec and self._needs and not self.is_leaf:
            what = "x.data = ... of a computed tensor with a gradient must keep its shape and dtype"
            fail(GradError, what, "x = other, or x.detach() first", x=self, other=other)
        bump_mutations()
        twin = other.data
        self.array, self._version_counter, self._alias = twin.array, twin._version_counter, twin._alias
        if self.spec is not other.spec:
            self.spec = other.spec
            self._value = leaf_value(self) if self._needs else None

    # ---- elements ------------------------------------------------------------------------------------------------

    def _read_array(self, verb: str) -> HostArray:
        """The elements on the host, for the method `verb`: on the CPU its own array, elsewhere and of a global tensor a
        copy.
        """
        note_read(self, verb)
        if self.spec.placement is not None:
            return whole_array(self)
        return self.array if self.spec.device is cpu else to_host(self.array)

    def _lent_array(self, verb: str) -> Array:
        """The array of this tensor, for another library, which may write to it. verb: what reads it."""
        note_read(self, verb)
        return lend(self)

    def numpy(self, *, force: bool = False) -> HostArray:
        """A numpy array that shares this tensor's memory; read-only if the tensor requires grad, unless `force`.
        `force` also copies from another device. Raises DeviceError there without it. All ranks call it for a global
        tensor, and each gets a copy of all elements.
        """
        if self.spec.device is not cpu and not force and self.is_local and not self.is_meta:
            fail(DeviceError, f"numpy() of a tensor on {self.spec.device}", "x.cpu().numpy()", tensor=self)
        array = self._read_array("numpy")
        if self.spec.dtype is bfloat16:
            fail(DTypeError, "numpy() of bfloat16, which numpy does not have", "x.float().numpy()", tensor=self)
        if self.spec.device is not cpu or self.is_global:
            return array
        return lend(self) if force or not self.requires_grad else read_only(array)

    def item(self) -> bool | int | float:
        """The element of a tensor with one element, as a Python number. Raises ShapeError for more."""
        if self.spec.size != 1 and self.array is not None:
            what = f"item() of a tensor with {self.spec.size} elements"
            fail(ShapeError, what, ".tolist(), or .mean().item()", tensor=self)
        return self._read_array("item").item()

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self._read_array("tolist").tolist()

    def _scalar_element(self, verb: str) -> Any:
        """Its only element as a Python number, for the method `verb`. Raises ShapeError for several elements."""
        if self.spec.size != 1 and self.array is not None:
            hint = ".any() or .all()" if verb == "bool" else ".item() of one element, or .tolist()"
            what = f"{verb}() of a tensor with {self.spec.size} elements has no single answer"
            fail(ShapeError, what, hint, tensor=self)
        if self.spec.dtype.is_complex and verb in ("float", "int"):
            fail(DTypeError, f"{verb}() of a complex number", "x.real, x.imag or x.abs()", tensor=self)
        return self._read_array(verb).item()

    def __bool__(self) -> bool:
        return bool(self._scalar_element("bool"))

    def __float__(self) -> float:
        return float(self._scalar_element("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar_element("complex"))

    def __int__(self) -> int:
        number = self._scalar_element("int")
        if number != number or number in (float("inf"), float("-inf")):
            fail(NonFiniteError, f"int() of {number}, which is not a whole number", ".item()", tensor=self)
        return int(number)

    def __index__(self) -> int:
        if self.spec.dtype.rank > 1 and self.array is not None:
            fail(DTypeError, f"a {self.dtype.name} tensor cannot be an index", ".long()", tensor=self)
        return int(self._scalar_element("index"))

    def __round__(self, digits: int = 0) -> Tensor:
        return F.round(self, decimals=digits)

    def __format__(self, form: str) -> str:
        """Format one element as a number (`f"{loss:>7f}"`), several as their text."""
        if self.array is None and form[-1:] in tuple("bcdeEfFgGnoxX%"):
            self._read_array("format")
        number = self.array is not None and self.spec.size == 1 and (form or not self.ndim)
        return format(self.item() if number else str(self), form)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return printing.tensor_text(self)

    def __deepcopy__(self, memo: dict) -> Self:
        """A copy of the elements; tensors that shared an array share its copy. The tape is not copied."""
        if self.requires_grad and not self.is_leaf:
            return deepcopy_of_computed(self)
        note_read(self, "deepcopy")
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in OWN_ATTRIBUTES})
        array = self.array
        kept = memo.setdefault(("array", id(array)), (array, backend_of_array(array).copy(array)))  # keeps its id valid
        twin.array, twin.spec = kept[1], self.spec
        if self._needs:
            twin._needs, twin._value = True, leaf_value(twin)
        if self._gradient is not None:
            twin._gradient = copy.deepcopy(self._gradient, memo)
        return twin

    def __copy__(self) -> Tensor:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.pop("_hooks", None)
        if self._needs and self.is_leaf:
            twin._value = leaf_value(twin)
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle the elements and requires_grad, never the tape; used between processes."""
        extra = {k: v for k, v in self.__dict__.items() if k not in OWN_ATTRIBUTES}
        return unpickle, (
            type(self),
            host_array(self._read_array("pickle")),
            self._needs,
            extra,
            self.spec.device,
            self.spec.placement,
            self.spec.sbp,
        )

    # ---- dtype and device ----------------------------------------------------------------------------------------

    def to(
        self,
        *args: Any,
        dtype: DTypeLike | None = None,
        device: Device | str | int | None = None,
        copy: bool = False,
        non_blocking: bool = False,
        memory_format: Layout | None = None,
    ) -> Tensor:
        """Convert to another dtype, to another device, or to those of another tensor. Returns self if nothing changes
        and not `copy`. non_blocking: copy a pinned tensor without waiting, and without another copy on the host: it
        must not be written before.  memory_format: accepted without effect.
        """
        for x in args:
            if dtype is not None and isinstance(x, Tensor | DType):
                second = x.dtype if isinstance(x, Tensor) else x
                what = f"to() takes one dtype, not {as_dtype(dtype).name} and {second.name}"
                fail(DTypeError, what, "x.to(flow.float64), or x.to(other)", argument=x)
            if isinstance(x, Tensor):
                dtype, device = x.dtype, x.device
            elif x is None or x is Tensor:  # Tensor: OneFlow's way from a graph's proxy to the tensor, here itself
                continue
            elif is_dtype(x):
                dtype = x
            elif isinstance(x, bool):
                copy = x
            elif isinstance(x, str | int | Device):
                device = x
            else:
                what = f"to() takes a dtype, a device or a tensor, not {type(x).__name__}"
                fail(DTypeError, what, "x.to(flow.float64)", argument=x)
        result = self
        if device is not None and Device(device) is not self.device:
            backend_of(target := Device(device))
            if non_blocking and target is not cpu and self.is_pinned() and not self.requires_grad:
                array = copy_without_waiting(self._read_array("to"), target)
                result = new_tensor(array, self.spec.replace(device=target))
            else:
                result = s.copy_to(self, device=target)
        if dtype is not None and as_dtype(dtype) is not self.dtype:
            return s.cast(result, dtype=as_dtype(dtype))
        return s.clone(self) if copy and result is self else result

    def type(self, dtype: Any = None) -> Any:
        """Convert to a type: a dtype, flow.FloatTensor, "minflow.FloatTensor" or flow.Tensor (the default dtype).
        Without an argument, return the name of this tensor's type.
        """
        if dtype is None:
            return type_of(self)
        dtype, kind = parse_type(dtype)
        return self.to(dtype, device=kind or None)

    def type_as(self, other: Tensor) -> Tensor:
        """Convert to the dtype of another tensor."""
        F.shape_of("type_as", other)  # checks that it is a tensor
        return self.to(other.dtype)

    def cpu(self, memory_format: Layout | None = None) -> Tensor:
        """Copy to the CPU; returns self if it is already there."""
        return self.to(device="cpu")

    def cuda(
        self, device: Device | str | int | None = None, non_blocking: bool = False, memory_format: Layout | None = None
    ) -> Tensor:
        """Copy to a GPU. Raises DeviceError if there is none."""
        place = Device("cuda", device) if device is None or isinstance(device, int) else device
        return self.to(device=place, non_blocking=non_blocking)

    def pin_memory(self, device: Device | str | None = None) -> Tensor:
        """Copy to pinned memory, from which `to(..., non_blocking=True)` copies to a GPU beside the program. Returns
        self without a GPU, and for a tensor that is there, is pinned or requires grad.
        """
        if self.device is not cpu or self.requires_grad or not is_available("cuda") or self.is_pinned():
            return self
        return new_tensor(backend_of(Device("cuda")).pinned(self._read_array("pin_memory")), self.spec)

    def record_stream(self, s: Stream) -> None:
        """Keep the memory of this tensor of a GPU, after its last use in Python, until the work that a stream has then
        has ended: needed if another stream than the one that computed it reads it.
        """
        if self.device.type == "cuda":
            s.keep(self.array)

    def share_memory_(self) -> Tensor:
        """Return self: other processes get a copy."""
        return self

    def is_pinned(self, device: Device | str | None = None) -> bool:
        """True if `pin_memory` has made this tensor."""
        gpu, known = OPEN.get(Device("cuda")), isinstance(self.array, HostArray) and MODE.get().trace is None
        return known and gpu is not None and gpu.is_pinned(self.array)

    def is_shared(self) -> bool:
        """False: other processes get a copy."""
        return False

    def clone(self, *, memory_format: Layout | None = None) -> Tensor:
        """A copy; gradients flow through it to this tensor."""
        return apply(s.clone, self)

    def contiguous(self, memory_format: Layout | None = None) -> Tensor:
        """A tensor of the same elements, contiguous in C order; self if it is contiguous."""
        return contiguous(self)

    # ---- indexing ------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        try:
            basic = basic_index(index)
            return F.advanced_getitem(self, index) if basic is None else apply(s.getitem, self, index=basic)
        except Exception as error:
            raise unreadable_or(error, "x[index]", index=index)  # noqa: B904 (its cause is set)

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            basic = basic_index(index)
            if basic is not None:
                write_into(apply(s.getitem, self, index=basic), value)
            else:
                write_into(self, F.assign_indexed(self, index, value))
        except Exception as error:
            raise unreadable_or(error, "x[index] = value", index=index, value=value)  # noqa: B904 (its cause is set)


blank = object.__new__


def new_tensor(array: Any, spec: Spec, value: Value | None = None) -> Tensor:
    """Tensor(array, spec, value), without checks of the arguments.

    Attributes that every op reads are set on the instance: Python finds them there three times as fast as in the class.
    """
    tensor = blank(Tensor)
    tensor.array = array
    tensor.spec = spec
    tensor._alias = tensor._version_counter = None
    tensor._value, tensor._needs = value, value is not None
    return tensor


def from_numbers(place: Place, first: Any, *rest: Any) -> Tensor:
    """The tensor of `Tensor(2, 3)` and `Tensor([1., 2.])`, in the default dtype; `Tensor(other)` shares its storage."""
    sizes = [first, *[x for x in rest[:2] if x is not None], *([rest[2]] if rest[2] is not True else []), *rest[3]]
    return finish(data_or_shape("Tensor", tuple(sizes), default_dtype()), place, False)


def note_read(tensor: Tensor, verb: str) -> None:
    """Note a read by the method `verb` in a trace; wait for the steps in flight that write the tensor. Raises
    TraceError for a symbolic tensor.
    """
    if IN_FLIGHT:
        before_read(tensor)
    if tensor.array is None:
        refuse_symbolic((tensor,))
        raise symbolic_read_error(tensor, verb)
    if (trace := MODE.get().trace) is not None:
        trace.read(tensor, verb)
    elif tensor._needs:
        record_read(tensor, verb)


def unpickle(
    kind: type[Tensor],
    array: HostArray,
    needs: bool,
    extra: dict,
    device: Device = cpu,
    placement: Placement | None = None,
    sbp: tuple[Sbp, ...] | None = None,
) -> Tensor:
    tensor, spec = object.__new__(kind), spec_of(array).replace(device=device, placement=placement, sbp=sbp)
    if placement is not None:
        array = local_part(array, spec)
    tensor.array = array if device is cpu else backend_of(device).from_host(array)
    tensor.spec = spec if placement is not None else spec_of(tensor.array)
    tensor.__dict__.update(extra)
    if needs:
        tensor._needs, tensor._value = True, leaf_value(tensor)
    return tensor


def leaf_value(tensor: Tensor) -> Value:
    """The Value of a new leaf, with the hooks of the tensor."""
    source = Source(LEAF, tensor.spec, tensor)
    source.hooks = tensor._hooks
    return Value(source, 0, tensor.spec)


TENSOR_TYPES.append(Tensor)
INT_OR_NONE = {int, type(None)}  # the classes of start, stop and step of most slices


def basic_index(index: Any) -> tuple | None:
    """The index as the attr of getitem (slices as hashable tuples), or None if it contains arrays or lists."""
    if index.__class__ is int:
        return (index,)
    parts: list[Any] = []
    for i in index if index.__class__ is tuple else (index,):
        if i.__class__ is slice:
            part: tuple[Any, ...] = i.start, i.stop, i.step
            start, stop, step = part
            if not (start.__class__ in INT_OR_NONE and stop.__class__ in INT_OR_NONE and step.__class__ in INT_OR_NONE):
                start, stop, step = part = tuple([x if x is None else x.__index__() for x in part])
            parts.append(part)
            if step is not None and step < 1:
                fail(OutOfRangeError, f"a slice with step {i.step}", "flow.flip(x, [0]) reverses an axis", step=i.step)
        elif i is None or i is Ellipsis or i.__class__ is int or type(i) is SymInt:
            parts.append(i)
        elif isinstance(i, Integral) and isinstance(i, HostScalar):
            parts.append(int(i))
        elif isinstance(i, Tensor) and not i.ndim and i.spec.dtype.rank == 1 and i.array is not None:
            parts.append(int(i._read_array("index")))
        else:
            return None
    return tuple(parts)
