"""The runtime of compiled kernels: tasks, the threads that run them, and what they record. Read next: `tasks.py`."""
