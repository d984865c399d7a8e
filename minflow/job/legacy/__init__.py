"""The functions of the job functions' generation: `flow.math`, `flow.layers`, `flow.nn`'s lower-case names, and
what belongs to them.

They hold for Blobs, most of them for eager tensors as well. `overloads.py` is the table of names that a modern function
has too. Read next: `overloads.py`, `arrays.py`.
"""

from ...diagnosis.source_lines import public_functions

public_functions(__path__[0])
