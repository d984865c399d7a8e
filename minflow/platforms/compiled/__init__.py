"""Kernels compiled for this processor ("the machine"), which run in place of NumPy's if they are faster.

Large graphs and jobs, and calls of eager code on large arrays, use them by default (`policy.py`). For any size:

    from minflow import machine
    machine.use()                # or the environment: MINFLOW_MACHINE=1

numba compiles once per installation: half a minute in the background, or during `minflow warmup`. Results are those of
NumPy within float32 rounding. Read next: `switch.py`, then `codegen/micro_kernels.py`, the core of all products.
"""

from .switch import passes as passes, use as use, used as used, warmup as warmup
