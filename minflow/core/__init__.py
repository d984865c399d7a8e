"""The engine: tensors, the dispatch of ops, the tape and the trace.

base/ does not know tensors; ops/ are the primitives; functions/ are the public functions and methods/ those of a
Tensor; grad/ is the public part of autograd; messages/ are errors and warnings; backend/ are arrays and fast kernels.
Must not know threads, files or notebooks. Read next: `spec.py`, `ir.py`, `dispatch.py`, `op.py`, `eager.py`,
`tensor.py`.
"""
