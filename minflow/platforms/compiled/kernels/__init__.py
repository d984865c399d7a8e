"""Compiled kernels by family: each module builds the tasks of some ops. Read next: `gemm.py`."""
