"""Kernels of the platform "cupy", one file per family of `core/ops`. Importing this package registers them.

A kernel that returns NotImplemented leaves the call to the reference kernel.
"""

from . import (
    attention as attention,
    clusters as clusters,
    conv as conv,
    cross_entropy as cross_entropy,
    elementwise as elementwise,
    linalg as linalg,
    norms as norms,
    pools as pools,
    random as random,
    scatter as scatter,
    softmax as softmax,
    update as update,
)
