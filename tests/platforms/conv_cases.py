"""Convolutions of any geometry, their arrays and NumPy's results, shared by the tests of both layouts."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from kernel_checks import EPS, doubled, normal

from minflow.core.kernels import HOST_PLATFORMS, select
from minflow.core.ops import conv
from minflow.platforms.compiled.passes.nchw16c import ACTS

ONE, NONE = (1, 1), (0, 0)
DIRECTIONS = {"results", "images", "filters"}


class Case(NamedTuple):
    n: int
    c: int
    size: tuple
    f: int
    kernel: tuple = ONE
    stride: tuple = ONE
    padding: tuple = NONE
    dilation: tuple = ONE
    bias: bool = False
    act: str = ""
    as_they_are: bool = True
    groups: int = 1

    @property
    def geometry(self):
        return self.stride, self.padding, self.dilation

    @property
    def names(self):
        return dict(zip(("stride", "padding", "dilation"), self.geometry), groups=self.groups)

    @property
    def shapes(self):
        """Shapes of the images, filters and results."""
        out = conv.positions(self.size, self.kernel, *self.geometry)
        return (self.n, self.c, *self.size), (self.f, self.c // self.groups, *self.kernel), (self.n, self.f, *out)


def arrays(case, seed=0):
    """Images, filters, cotangents, and a bias or the number 0."""
    rng = np.random.default_rng(seed)
    x, w, g, bias = [normal(rng, *shape) for shape in (*case.shapes, (case.f,))]
    return x, w, g, bias if case.bias else 0


def numpys(case, x, w, g, bias=0, exact=False):
    """Dictionary from direction to NumPy's result."""
    forward, images, filters = [
        select(op, ("reference",)).call if exact else select(op, HOST_PLATFORMS).call
        for op in (conv.conv2d, conv.conv2d_input_grad, conv.conv2d_weight_grad)
    ]
    with np.errstate(all="ignore"):
        y = forward(x, w, **case.names) + np.reshape(bias, (1, -1, 1, 1))
        return {
            "results": {"": y, "relu": np.maximum(y, 0), "relu6": np.clip(y, 0, 6)}[case.act].astype(x.dtype),
            "images": images(g, w, shape=x.shape, **case.names),
            "filters": filters(g, x, shape=w.shape, **case.names),
        }


def check(case, ours, tiled, seed=0):
    """Assert that the largest error is at most 4 times NumPy's, plus some eps of the sum of the products' absolute
    values.

    The sum is 4 times that of the element's own products; within a Winograd tile, 32 times the largest in its image and
    channel, because the intermediate values that cancel there are larger than results of few pixels.

    ours: returns the compiled results by direction; tiled: the directions computed by Winograd's algorithm.
    """
    single = arrays(case, seed)
    double = doubled(single)
    right, usual = numpys(case, *double, exact=True), numpys(case, *single)
    sums = numpys(case._replace(act=""), *map(abs, double), exact=True)
    for direction, found in ours(case, *single).items():
        assert found.dtype == np.float32 and found.shape == right[direction].shape
        error, most = abs(found - right[direction]), abs(usual[direction] - right[direction]).max(initial=0)
        size = sums[direction]
        floor = 32 * size.max((2, 3), keepdims=True) if direction in tiled else 4 * size
        assert (error <= 4 * most + EPS * floor).all(), (case, direction, error.max(), most)


@st.composite
def cases(draw):
    """Filters with sides of 1 to 5 that may overlap the border; often 1x1, and squares, which are candidates for
    Winograd.
    """
    pair = lambda strategy: draw(st.tuples(strategy, strategy))
    kind, channels = draw(st.sampled_from(["one", "square", "any"])), st.integers(1, 70)
    kernel = {"one": ONE, "square": (draw(st.sampled_from([3, 5])),) * 2, "any": pair(st.integers(1, 5))}[kind]
    stride, dilation = (pair(st.integers(1, 3)), pair(st.integers(1, 3))) if kind == "any" else (ONE, ONE)
    padding = NONE if kind == "one" else tuple(draw(st.integers(0, k)) for k in kernel)
    groups, (c, f) = 1, (draw(channels), draw(channels))
    if draw(st.booleans()):
        each, groups = draw(st.sampled_from([(4, 4), (8, 8), (16, 16), (16, 32)])), draw(st.integers(2, 5))
        c, f = each[0] * groups, each[1] * groups
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding)]
    size = tuple(n + draw(st.integers(0, 13)) for n in least)
    return Case(
        draw(st.integers(1, 11)),
        c,
        size,
        f,
        kernel,
        stride,
        padding,
        dilation,
        draw(st.booleans()),
        draw(st.sampled_from(ACTS)),
        draw(st.booleans()),
        groups,
    )
