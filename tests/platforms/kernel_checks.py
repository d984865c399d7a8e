"""Arrays, geometries, rounding bounds and child processes shared by the tests of compiled kernels."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
from hypothesis import assume, settings, strategies as st

from minflow.core.kernels import KERNELS, select
from minflow.core.ops.conv import positions
from minflow.platforms.compiled import switch
from minflow.platforms.compiled.passes import nchw16c
from minflow.platforms.compiled.runtime.eager import run_compiled
from tests import sampling

EPS = float(np.finfo("f4").eps)


def examples(complete, short):
    """Hypothesis settings: this many examples with `--complete` and in the short test command; deterministic."""
    return settings(max_examples=complete if sampling.complete else short, deadline=None, derandomize=True)


FEW = examples(40, 15)
PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12)) | st.sampled_from(
    [(8, 8), (4, 4), (16, 16), (2, 2), (3, 16), (3, 40)]
)


def printed(program, **environment):
    """Lines and messages printed by a program in a process where only `environment` selects kernels."""
    outer = {name: value for name, value in os.environ.items() if name != "MINFLOW_MACHINE"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**outer, **environment},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def normal(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


def doubled(arrays):
    """float32 as float64."""
    return [a.astype("f8") if isinstance(a, np.ndarray) and a.dtype == np.float32 else a for a in arrays]


def builder_of(op):
    """The builder that is registered for an op."""
    switch.import_all()
    return KERNELS[op, "compiled"].lower.builder


def compiled_call(op):
    """The compiled kernel of an op, which returns None for arrays that it does not support."""
    builder = builder_of(op)

    def call(*arrays, **attrs):
        result = run_compiled(op, builder, *arrays, **attrs)
        return None if result is NotImplemented else result

    return call


def exactly(op, arrays, attrs):
    """The outputs of NumPy's kernel in float64, as a tuple."""
    kernel = select(op, ("reference",)).call
    with np.errstate(all="ignore"):
        found = kernel(*doubled(arrays), **attrs)
    return found if isinstance(found, tuple) else (found,)


def close(ours, right, terms, scale=1e-30):
    """Assert that sums of this many terms are rounded as in float32.

    scale: magnitude of the terms, if most of it cancels.
    """
    scale = max(np.abs(right).max(initial=0), scale)
    assert ours.shape == right.shape
    assert np.abs(ours - right).max(initial=0) <= (4 + math.sqrt(terms)) * EPS * scale


def batch(shape, seed, mean):
    """Images with a mean, cotangents, and a weight and a bias per channel."""
    rng = np.random.default_rng(seed)
    return (
        normal(rng, *shape) * 2 + np.float32(mean),
        normal(rng, *shape),
        normal(rng, shape[1]),
        normal(rng, shape[1]),
    )


def in_blocks(x):
    """Images in NCHW16c, with NaN in the rows beyond the pixels, which no kernel may read."""
    found = nchw16c.in_blocks(x)
    found[:, x.size // max(x.shape[1], 1) :] = np.nan if x.dtype.kind == "f" else 255
    return found


@st.composite
def depthwise_convolutions(draw, batches, channels):
    """(shape of the images, size of the filters, attrs): often 3x3 with a border, otherwise any geometry."""
    size, kernel, stride, dilation = draw(SIZES), draw(PAIR), draw(PAIR), draw(PAIR)
    if draw(st.booleans()):
        kernel, stride, padding, dilation = (3, 3), draw(st.sampled_from([(1, 1), (2, 2)])), (1, 1), (1, 1)
    else:
        padding = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
        kernel = draw(st.sampled_from([kernel, (5, 5)]))
    assume(min(positions(size, kernel, stride, padding, dilation)) > 0)
    n, c = draw(st.sampled_from(batches)), draw(st.sampled_from(channels))
    return (n, c, *size), kernel, dict(stride=stride, padding=padding, dilation=dilation, groups=c)
