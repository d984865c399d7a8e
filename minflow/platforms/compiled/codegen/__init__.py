"""Code generation for compiled kernels: LLVM instructions on vectors of 16 elements, and numba. Read `llvm.py` next."""
