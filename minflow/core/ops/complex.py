"""Complex numbers: construction from two real tensors, parts as views, conjugation, and the transform `fft`.

The gradient of a real loss by z = x + iy is dL/dx + i dL/dy, as in PyTorch: the direction of steepest ascent. The
rules here return it directly; those of `add`, `mul`, `exp`, ... multiply by f'(z), and autograd conjugates around them.
An op declares by `domain=` whether it takes complex inputs. Read next: `../functions/complex.py`.
"""

from __future__ import annotations

from ..base.errors import DTypeError, ShapeError
from ..kernels import kernel
from ..op import define
from ..sharding import whole_lines
from ..source_location import fail
from ..spec import Spec, spec_of
from .rules import broadcast_shape, mark, need_axis
from .shape import cast


def need_complex(op: str, x: Spec) -> Spec:
    if not x.dtype.is_complex:
        raise DTypeError(f"{op}: {mark('x')} must be complex, got {x.dtype.name}", hint="flow.complex(x, y)")
    return x


def complex_spec(real: Spec, imag: Spec) -> Spec:
    """The shape rule of complex."""
    for name, x in (("real", real), ("imag", imag)):
        if x.dtype.name not in ("float32", "float64"):
            raise DTypeError(
                f"complex: {mark(name)} must be float32 or float64, got {x.dtype.name}", hint=f"{mark(name)}.float()"
            )
    if real.dtype is not imag.dtype:
        raise DTypeError(
            f"complex: dtypes differ, {real.dtype.name} of {{real}} and {imag.dtype.name} of {{imag}}",
            hint="{imag}.to({real}.dtype)",
        )
    return real.replace(
        shape=broadcast_shape("complex", {"real": real.shape, "imag": imag.shape}), dtype=real.dtype.to_complex()
    )


complex = define(
    "complex(real, imag)",
    complex_spec,
    dict(real=lambda g: real(g), imag=lambda g: imag(g)),
    domain="complex",
    sharding="..., ... -> ...",
    linear=("real, imag",),
    doc="real + i * imag.",
)


@kernel(complex)
def _(xp, real, imag, out=None):
    if out is None:
        out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), f"c{2 * real.itemsize}")
    out.real, out.imag = real, imag
    return out


conj = define(
    "conj(x)",
    lambda x: x if x.dtype.rank else need_complex("conj", x),
    lambda g: conj(g),
    alias_safe=True,
    domain="complex",
    sharding="... -> ...",
    linear=("x",),
    doc="The complex conjugate: the imaginary part negated.",
)
kernel(conj, ufunc="conjugate")

real = define(
    "real(x)",
    lambda x: need_complex("real", x).replace(dtype=x.dtype.to_real()),
    lambda g, x_spec: cast(g, dtype=x_spec.dtype),
    is_view=True,
    domain="complex",
    sharding="... -> ...",
    linear=("x",),
    doc="The real part, a view.",
)
kernel(real, lambda xp, x: x.real)

imag = define(
    "imag(x)",
    lambda x: need_complex("imag", x).replace(dtype=x.dtype.to_real()),
    lambda g: g * 1j,
    is_view=True,
    domain="complex",
    sharding="... -> ...",
    linear=("x",),
    doc="The imaginary part, a view.",
)
kernel(imag, lambda xp, x: x.imag)

view_as_real = define(
    "view_as_real(x)",
    lambda x: need_complex("view_as_real", x).replace(shape=(*x.shape, 2), dtype=x.dtype.to_real()),
    lambda g: view_as_complex(g.contiguous()),
    is_view=True,
    domain="complex",
    sharding="... -> ... .",
    linear=("x",),
    doc="Real and imaginary part along a new last axis, a view.",
)


@kernel(view_as_real)
def _(xp, x):
    part = x.real
    return xp.lib.stride_tricks.as_strided(part, (*x.shape, 2), (*x.strides, part.itemsize))


def view_as_complex_spec(x: Spec) -> Spec:
    """The shape rule of view_as_complex."""
    if x.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"view_as_complex: {{x}} must be float32 or float64, got {x.dtype.name}", hint="{x}.float()")
    if x.shape[-1:] != (2,):
        raise ShapeError(
            f"view_as_complex: the last axis of {{x}} holds real and imaginary part, and its size is 2, "
            f"not {x.shape[-1] if x.ndim else 'none'}",
            hint="flow.complex(real, imag)",
        )
    return x.replace(shape=x.shape[:-1], dtype=x.dtype.to_complex())


view_as_complex = define(
    "view_as_complex(x)",
    view_as_complex_spec,
    lambda g: view_as_real(g),
    is_view=True,
    domain="complex",
    sharding="... . -> ...",
    linear=("x",),
    doc="Pairs (real, imaginary) along the last axis as complex elements, a view.",
)


@kernel(view_as_complex)
def _(xp, x):
    if x.size and x.strides[-1] != x.itemsize:
        what = "view_as_complex: real and imaginary part must be adjacent in memory"
        fail(ShapeError, what, "x.contiguous()", x=spec_of(x))
    return x.view(f"c{2 * x.itemsize}")[..., 0]


def fft_spec(x: Spec, axis: int, inverse: bool) -> Spec:
    need_axis("fft", x, axis)
    if not x.shape[axis]:
        raise ShapeError("fft: the axis must have at least one element", hint="an axis of size 1 or more")
    return need_complex("fft", x)


fft = define(
    "fft(x; axis, inverse)",
    fft_spec,
    lambda g, axis, inverse: fft(g, axis=axis, inverse=inverse),  # the matrix of the transform is symmetric
    domain="holomorphic",
    sharding=whole_lines(2),
    linear=("x",),
    doc="out[k] = sum of x[j] * exp(-2 pi i j k / n) along an axis; inverse: exp(2 pi i j k / n), not divided by n.",
)


@kernel(fft)
def _(xp, x, axis, inverse):
    return xp.fft.ifft(x, axis=axis, norm="forward") if inverse else xp.fft.fft(x, axis=axis)
