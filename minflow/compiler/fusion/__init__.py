"""Fusion and layout passes: they replace groups of nodes by one node that is faster to run.

The compiled platform has kernels for the new ops; NumPy runs them too, as the reference. Passes must not depend on any
platform.

Read in this order: `nchw16c.py`, ops on images in blocks of channels, then `layout.py`, which inserts them.
`copy_elision.py`, `gemm_epilogue.py` and `elementwise_fusion.py` are independent passes.
"""
