"""Legacy functions, from OneFlow before eager mode: `flow.math`, `flow.layers`, the lower-case names of `flow.nn`, and
helpers.

They accept Blobs, and most of them eager tensors as well. `overloads.py` is the table of names that a modern function
has too. Read next: `overloads.py`, `arrays.py`.
"""

from ...diagnosis.source_lines import register_public_folder

register_public_folder(__path__[0])
