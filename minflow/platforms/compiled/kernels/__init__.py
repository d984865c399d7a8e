"""Compiled kernels by family: each module builds the tasks of some ops, and has a builder of each op's name.

Builders get arrays at fixed addresses; they must not know if eager mode or a plan calls them. Read next: `gemm.py`.
"""
