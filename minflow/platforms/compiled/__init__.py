"""The machine: kernels compiled for this processor, which run in place of NumPy's where they are quicker.

Large graphs and jobs use it by themselves (`policy.py`). For graphs of any size, and for eager code:

    from minflow import machine
    machine.use()                # or the environment: MINFLOW_MACHINE=1

numba compiles once per installation: half a minute in the background, or when `minflow warmup` is run. Results are
those of NumPy within float32's rounding. Read next: `switch.py`, then `codegen/micro_kernels.py`, from which all
products are made.
"""

from .switch import passes as passes, use as use, used as used, warmup as warmup
