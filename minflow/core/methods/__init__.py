"""The methods of Tensor that call a function or an op: `x.sum(1)` is `functions.sum(x, 1)`, and is documented there.

Most are rows of `forwarded.py`. `../tensor.py` defines Tensor itself. Read next: `operators.py`.
"""
