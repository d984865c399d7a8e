"""Code generation for compiled kernels: LLVM IR on vectors of 16 elements, and numba.

Must not know the ops, nor how tasks run: those are in `runtime/` and `kernels/`. Read next: `llvm.py`.
"""
