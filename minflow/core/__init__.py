"""The engine: what a Tensor is, the one door that every operation goes through, the tape, and the trace.

base/ knows no tensor; ops/ are the primitives, functions/ what users call, methods/ the same on a Tensor; grad/ what is
public about gradients; messages/ what is said of likely mistakes; backend/ the kernels by name.
Knows no thread, no file and no notebook. Read next: `spec.py`, `ir.py`, `dispatch.py`, `op.py`, `eager.py`,
`tensor.py`.
"""
