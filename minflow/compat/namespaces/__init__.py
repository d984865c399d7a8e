"""Namespaces for GPUs and clusters that programs use, such as `minflow.backends` and `minflow.distributed`.

Calls are accepted without effect, answered for one process on one CPU, or refused. Each file is one namespace;
`../../addresses.py` maps the paths that programs import to it. Read next: `backends.py`.
"""
