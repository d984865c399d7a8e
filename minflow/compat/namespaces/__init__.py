"""Namespaces for GPUs and clusters, such as `minflow.backends` and `minflow.distributed`, for programs that use them.

Calls are ignored, answered for one process on one CPU, or refused. Each file is one namespace; `../../addresses.py`
maps the module paths that programs import to these files. Read next: `backends.py`.
"""
