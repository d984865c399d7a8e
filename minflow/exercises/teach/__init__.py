"""Tools for teachers: `minflow exercises build | grade | repair | report` and `minflow slides`, one file each.

They read and write notebooks through notebook.py. Lessons import nothing from here. Read next: `build.py`.
"""
