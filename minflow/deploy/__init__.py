"""A trained graph leaves home: saved with its computation, and run again without the code that made it.

`program.py` says what is saved, `document.py` writes and checks it as data, `replay.py` runs it, `folder.py` keeps the
files; `checks.py` says what is wrong in one. Read next: `program.py`.
"""
