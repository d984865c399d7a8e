"""Calls of the kernels of the platform "cupy" on sizes that no block and no warp divides, by the name of the op.

Each kernel has a line here, in alphabetical order. `test_cuda_kernels.py` runs it in each float dtype, with the
examples of the op. Elementwise ops need no line.
"""

from minflow.core.ops.examples import case, floats

RAGGED = {
    "softmax": [case(floats(*shape), dim=len(shape) - 1) for shape in [(3, 5), (2, 33), (2, 3, 257), (1, 1000)]],
}
