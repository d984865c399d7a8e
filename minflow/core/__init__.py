"""The engine: tensors, the dispatch of ops, the tape and the trace.

base/ does not depend on tensors; ops/ has the primitives; functions/ the public functions, methods/ those of a Tensor;
grad/ the public part of autograd; messages/ errors and warnings; backend/ arrays and fast kernels.
Must not depend on threads, files or notebooks. Read next: `spec.py`, `ir.py`, `dispatch.py`, `op.py`, `eager.py`,
`tensor.py`.
"""
