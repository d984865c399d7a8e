"""The platform "numpy": the backend of the CPU, and fast kernels, one file per family of `core/ops`.

Importing this package registers them. Only `minflow/__init__.py` may import it; without the kernels every program still
runs, on the reference kernels.
`tests/core/test_ops.py` compares each kernel with its reference.
"""

from . import (
    backend as backend,
    conv as conv,
    index as index,
    norm as norm,
    pool as pool,
    reduce as reduce,
    select as select,
    shape as shape,
    sort as sort,
    update as update,
)
