"""Fast kernels in numpy, one file for each family of `core/ops`; importing this package registers them.

`minflow/__init__.py` does, and nothing else may: without that line every program runs, by the reference kernels. Each
is held to its reference by `tests/core/test_ops.py`.
"""

from . import (
    select as select,
    conv as conv,
    index as index,
    norm as norm,
    pool as pool,
    reduce as reduce,
    shape as shape,
    sort as sort,
    update as update,
)
