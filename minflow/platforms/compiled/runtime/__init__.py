"""The runtime of compiled kernels: tasks, the threads that run them, and the recorder.

Must not import kernels: it gets them as builders. Read next: `tasks.py`.
"""
