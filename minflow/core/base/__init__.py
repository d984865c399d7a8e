"""The base of the engine, which does not know tensors: errors in four parts, dtypes, events, Ctrl-C, rich reprs.

Read next: `errors.py`.
"""
