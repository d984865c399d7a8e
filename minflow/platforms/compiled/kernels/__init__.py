"""Compiled kernels by family: each describes one op as tasks. Read next: `gemm.py`."""
