"""The base of the engine, independent of tensors: errors in four parts, dtypes, events, Ctrl-C, rich reprs.

Read next: `errors.py`.
"""

__version__ = "0.1.0"
