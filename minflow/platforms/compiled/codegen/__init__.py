"""Code generation for the compiled kernels: LLVM intrinsics, vector types, micro-kernels, and the compiler."""
