"""Calls with dtypes, and complex tensors. Read next: `calls.py`."""

from __future__ import annotations

from .draw import Draw

DTYPES = "L.float32 L.float64 L.float16 L.bfloat16 L.int64 L.int32 L.int16 L.int8 L.uint8 L.bool L.complex64"
WHERE = "a class of tensors: tests/core/test_typed.py"
CONSTRUCTORS = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()


def parts(d: Draw):
    """Two float tensors of one shape and dtype."""
    x = d.floats()
    dtype = x.dtype if x.dtype != "float16" else "float32"
    return [str(d.tensor(x.shape, dtype)) for _ in range(2)], {}


def complex_or_real(d: Draw):
    """A tensor of floats, or one of complex numbers made of two."""
    if d.chance(0.4):
        return [str(d.first())], {}
    a, b = parts(d)[0]
    return [f"L.complex({a}, {b})"], {}


NAMES = "real imag conj angle resolve_conj resolve_neg is_conj is_complex conj_physical".split()
CALLS = {
    "complex": parts,
    "polar": parts,
    "can_cast": lambda d: ([d.of(DTYPES), d.of(DTYPES)], {}),
    "promote_types": lambda d: ([d.of(DTYPES), d.of(DTYPES)], {}),
    "view_as_real": lambda d: ([f"L.complex({', '.join(parts(d)[0])})"], {}),
    "view_as_complex": lambda d: ([str(d.tensor(d.one((2,), (3, 2), (0, 2)), d.one("float32", "float64")))], {}),
    "adjoint": lambda d: ([str(d.tensor(d.one((2, 3), (2, 2, 3), (0, 2))))], {}),
    **dict.fromkeys([*NAMES, *(f"Tensor.{n}" for n in NAMES)], complex_or_real),
}
UNCALLED = {
    "lerp_": "OneFlow's: PyTorch has the method alone",
    "Tensor.imag": "refuses real numbers; the function imag is called",
    "Tensor.bfloat16": "NumPy has no such dtype: tests/core/test_bfloat16.py",
    "Tensor.cast": "OneFlow's: PyTorch has none",
    **{f"{name}Tensor": WHERE for name in CONSTRUCTORS},
    "set_default_tensor_type": "sets the process: tests/core/test_typed.py",
    "is_autocast_enabled": "asks the process: tests/core/test_autocast.py",
    "get_autocast_dtype": "asks the process: tests/core/test_autocast.py",
}
