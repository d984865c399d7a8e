"""Platforms: how ops run on a device. Each registers kernels; none knows another. Read next: `compiled/__init__.py`."""
