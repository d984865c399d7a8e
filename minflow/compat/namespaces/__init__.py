"""Namespaces for GPUs and clusters, such as `minflow.backends` and `minflow.distributed`, for programs that use them.

Calls are ignored, answered for one process on one CPU, or refused. Each file is one namespace; Read next:
`../../import_aliases.py`, which maps the module paths that programs import to these files; `backends.py`.
"""
