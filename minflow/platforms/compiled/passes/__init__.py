"""Fusion and layout passes: they replace groups of nodes by one node that is faster to run.

The kernels of this platform run the new ops; each has a reference kernel, too. Passes must not import kernels.

Read in this order: `nchw16c.py`, ops on images in blocks of channels, then `layout.py`, which inserts them.
`copy_elision.py`, `gemm_epilogue.py` and `elementwise_fusion.py` are independent passes.
"""
