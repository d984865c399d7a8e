"""The methods of Tensor that are one line each: a mixin for each family, as in `ops/` and `functions/`.

`x.sum(1)` is `functions.sum(x, 1)`; what it computes is said there. `../tensor.py` holds what a Tensor is.
Read next: `operators.py`.
"""
