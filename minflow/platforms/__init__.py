"""Platforms run ops on a device: each registers kernels. None may import another. Read next: `core/kernels.py`."""
