"""The version of minflow, and those of the libraries whose names it follows."""

__version__ = "0.1.0"
FOLLOWED = {"oneflow": "1.0.0", "torch": "2.13.0"}
