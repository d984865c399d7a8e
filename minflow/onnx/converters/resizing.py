"""Converters of interpolation and grid sampling, where ONNX's operators compute the same; elsewhere the decomposition
is exported.
"""

from __future__ import annotations

from ...core.ir import Node
from ...core.ops.interpolation import taps
from ...core.spec import float32, uint8
from ..builder import converter

CUBIC = {False: -0.75, True: -0.5}  # parameter of the cubic kernel, by antialias


def is_resize(node: Node) -> bool:
    """True if Resize computes the same.

    It reads factors as float32. In mode "nearest" it rounds to the same pixels if factors are whole.
    """
    x, a = node.inputs[0].spec, node.attrs
    sizes, single = [*zip(x.shape[2:], a["output_size"], a["factors"])], float32.np.type
    if not a["mode"].startswith("nearest"):
        scaled = [(n, m, single(factor)) for n, m, factor in sizes if factor is not None]
        floors = [int(factor * single(n)) == m == int(float(factor) * n) for n, m, factor in scaled]
        return x.dtype is float32 and all(floors) and not (a["antialias"] and a["align_corners"])
    return x.dtype in (float32, uint8) and all(
        [
            m % n == 0 and factor in (None, m // n) and first.tolist() == [i * n // m for i in range(m)]
            for n, m, factor in sizes
            for ((first, _),) in [taps(n, m, factor, a["mode"], False, single)]
        ]
    )


@converter("interpolate", when=is_resize)
def _(b, node, x):
    a, axes = node.attrs, list(range(2, node.inputs[0].spec.ndim))
    nearest = a["mode"].startswith("nearest")
    options = dict(cubic_coeff_a=CUBIC[a["antialias"]]) if a["mode"] == "cubic" else {}
    if nearest:
        options = dict(nearest_mode="floor")
    places = "asymmetric" if nearest else "align_corners" if a["align_corners"] else "half_pixel"
    options |= dict(exclude_outside=int(a["antialias"]))
    options |= dict(mode=a["mode"].partition("-")[0], coordinate_transformation_mode=places, axes=axes)
    scales = size = None
    if None in a["factors"] or a["align_corners"]:
        size = b.shape(node, "output_size")
    else:
        scales = b.const(a["factors"], "float32")
        b.attr(node, "output_size")  # follows from the input
    return b.op("Resize", x, None, scales, size, antialias=int(a["antialias"]), **options)


@converter("grid_sample", when=lambda node: node.inputs[0].spec.ndim == 4 and node.out_specs[0].dtype is float32)
def _(b, node, x, grid):
    """NaN in the grid counts as -1."""
    a, minus_one = node.attrs, b.const(-1.0, float32)
    grid = b.op("Where", b.op("IsNaN", grid), minus_one, grid)
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a["mode"], a["mode"])
    return b.op("GridSample", x, grid, mode=mode, padding_mode=a["padding_mode"], align_corners=int(a["align_corners"]))
