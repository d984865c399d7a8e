"""The machine: kernels compiled for this processor, which run in place of NumPy's where they are quicker.

    from minflow import machine
    machine.use()                # or the environment: MINFLOW_MACHINE=1

It needs numba (`pip install "minflow[machine]"`), which compiles once per installation: some seconds at the first use,
or when `minflow warmup` is run. Results are those of NumPy within float32's rounding, eager and graph the same bits.
Read next: `start.py`, then `micro.py`, from which all products are made.
"""

from .start import passes as passes, use as use, used as used, warmup as warmup
