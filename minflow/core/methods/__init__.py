"""The one-line methods of Tensor: one mixin for each family, as in `ops/` and `functions/`.

`x.sum(1)` is `functions.sum(x, 1)`, and is documented there. `../tensor.py` defines Tensor itself.
Read next: `operators.py`.
"""
