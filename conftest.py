"""What holds for every test and every notebook: the environment, which kernels of notebooks inherit."""

import os

# Before numpy is loaded. One BLAS thread: the same sums on every machine. No live curves: nobody looks.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["MINFLOW_LIVE"] = "0"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
