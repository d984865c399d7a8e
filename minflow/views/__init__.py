"""Pictures and listings of tensors, graphs, modules and runs, for notebooks and terminals.

`records/` describes objects for display; the other packages turn records into text, DOT, SVG or HTML.
Pure functions of plain records. Depends on core's errors, events, spec, ir and display, on the compiler's decomposition
of composite operations, and on nothing above them.
Read next: `records/graph.py`, then `front.py`, the entry point.
"""

MAX_BOXES = 25  # default limit of boxes in a picture
