"""Equality of two arrays, up to a tolerance or bit for bit, and search for an equal one among many results.

Independent of graphs. Read next: `result.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.backend import Array, backend_of_array, namespace_of, to_host
from ....core.host import HostArray, host_array

# dtype -> default rtol and atol; 0 for others
TOLERANCES = {"bfloat16": (1.6e-2, 1e-5), "float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
MAX_ULPS = 8  # units in the last place of the largest element, by which sums in different orders may differ
MAX_PROBES = 16  # maximum number of elements of an array that are compared first
MAX_CANDIDATES = 20  # maximum number of results of one shape that are compared in full


class Tolerance(NamedTuple):
    """Elementwise tolerance: |a - b| <= atol + rtol * |b|. None: the larger default of the two dtypes.

    exact: every bit counts, so that 0.0 and -0.0 differ, and so do all outputs of an op.
    """

    rtol: float | None = None
    atol: float | None = None
    exact: bool = False

    def limits(self, x: Array, y: Array) -> Array:
        """The allowed difference of each element of x from that of y."""
        size = magnitudes(y)
        return self.allowed_difference((x.dtype, y.dtype), size, maximum(size))

    def allowed_difference(self, dtypes: tuple, size: Array, largest: Array) -> Array:
        """The tolerance of elements of this size. largest: the size of the largest element of their tensor."""
        backend = backend_of_array(size)
        xp = backend.namespace
        defaults = [TOLERANCES.get(str(dtype), (0.0, 0.0)) for dtype in dtypes]
        rtol = max(d[0] for d in defaults) if self.rtol is None else self.rtol
        atol = self.atol
        if atol is None:
            eps = max([float(xp.finfo(dtype).eps) for dtype in dtypes if dtype.kind == "f"], default=0.0)
            atol = xp.maximum(max(d[1] for d in defaults), MAX_ULPS * eps * largest)
        with backend.silent():  # rtol may be infinite
            return atol + rtol * size


EXACT = Tolerance(0.0, 0.0, exact=True)


def compare_arrays(a: Sequence[Array], b: Sequence[Array], tolerance: Tolerance) -> tuple[bool, float]:
    """(equal up to the tolerance, the largest difference).

    For an op that returns elements and indices (max_pool2d) only the elements count: equal ones may have several
    indices.
    """
    if not tolerance.exact and any(x.dtype.kind == "f" for x in a) and len(a) == len(b):
        a, b = zip(*[(x, y) for x, y in zip(a, b) if x.dtype.kind == "f"])
    if [x.shape for x in a] != [x.shape for x in b]:
        return False, float("nan")
    largest, equal = 0.0, True
    for x, y in zip(a, b):
        x, y = on_one_device(x, y)
        if x.dtype == y.dtype and (bits(x) == bits(y)).all():
            continue
        gap = float(maximum(differences(x, y)))
        equal = equal and not tolerance.exact and count_unequal(x, y, tolerance) == 0
        largest = gap if not gap <= largest else largest
    return equal, largest


def on_one_device(x: Array, y: Array) -> tuple[Array, Array]:
    """Both arrays on their device, or on the host if they are on two: a reference may compute elsewhere."""
    same = backend_of_array(x) is backend_of_array(y)
    return (x, y) if same else (to_host(x), to_host(y))


def bits(x: Array) -> Array:
    """The bytes of all elements."""
    return namespace_of(x).ascontiguousarray(x).reshape(-1).view("uint8")


def count_unequal(x: Array, y: Array, tolerance: Tolerance) -> int:
    """The number of elements that are not equal."""
    x, y = on_one_device(x, y)
    return int((~(differences(x, y) <= tolerance.limits(x, y))).sum())


def differences(x: Array, y: Array) -> Array:
    """|x - y| elementwise; 0 where both are NaN or the same infinity, NaN where only one is NaN."""
    backend = backend_of_array(x)
    xp = backend.namespace
    with backend.silent():
        gap = abs(x.astype("float64") - y.astype("float64"))
        same = (x == y) | ((x != x) & (y != y))
    # large integers that differ may be equal as float64
    return xp.where(same, 0.0, xp.where(gap == 0, 1.0, gap))


def magnitudes(x: Array) -> Array:
    """|x|, with 0 for elements that are not finite."""
    xp = namespace_of(x)
    size = abs(x.astype("float64"))
    return xp.where(xp.isfinite(size), size, 0.0)


def maximum(x: Array) -> Any:
    """The largest element of an array without negative ones; 0 if it is empty."""
    return x.max() if x.size else 0.0


class ResultIndex:
    """Finds a result by its elements. A few elements are compared first, and the rest only if these agree, so that
    thousands of different results cost little.
    """

    def __init__(self, results: Sequence[Any], tolerance: Tolerance):
        self.results, self.tolerance = results, tolerance
        self.by_kind: dict[tuple, list[int]] = {}  # (shape, dtype) -> indices in `results`
        for j, arrays in enumerate(results):
            if arrays:
                self.by_kind.setdefault((arrays[0].shape, arrays[0].dtype), []).append(j)
        # the probes of each kind, and the largest size
        self.probes: dict[tuple, tuple[HostArray, HostArray]] = {}

    def find(self, arrays: Sequence[Array]) -> int | None:
        """The index of the first result with the same elements."""
        near: list[tuple[float, int]] = []
        for (shape, dtype), positions in self.by_kind.items() if arrays else ():
            if shape != arrays[0].shape:
                continue
            if (shape, dtype) not in self.probes:
                known = [self.results[j][0] for j in positions]
                largest = host_array([[float(maximum(magnitudes(a)))] for a in known])
                self.probes[shape, dtype] = host_array([probes(a) for a in known]), largest
            known, largest = self.probes[shape, dtype]
            gap = differences(known, probes(arrays[0]))
            limits = self.tolerance.allowed_difference((arrays[0].dtype, dtype), magnitudes(known), largest)
            fits = ((gap == 0) | (gap <= limits)).all(axis=1)
            near += [(float(maximum(gap[k])), positions[k]) for k in fits.nonzero()[0].tolist()]
        for j in sorted(j for _, j in sorted(near)[:MAX_CANDIDATES]):
            if compare_arrays(arrays[:1], self.results[j][:1], self.tolerance)[0]:
                return j
        return None


def probes(x: Array) -> HostArray:
    """A few elements, spread over the whole array. The step is odd, so that they are not all in one column."""
    flat = x.reshape(-1)
    return to_host(flat[:: max(1, flat.size // MAX_PROBES) | 1][:MAX_PROBES]).astype("float64")
