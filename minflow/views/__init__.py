"""Pictures and listings of what runs: `records/graph.py` says what is there, the other files turn records into
text.

Pure functions of plain records; knows core's errors, events, spec, ir and display, and nothing above them.
Read next: `records/graph.py`, then `front.py`, the front door.
"""

BOXES = 25  # in a picture that is opened
