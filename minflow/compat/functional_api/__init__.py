"""The functions of `oneflow._C` that the public namespaces do not have, or have with other arguments.

`flow._C` looks a name up here first, then in `nn.functional`, `flow` and `linalg`. Read next: `reordered.py`.
"""
