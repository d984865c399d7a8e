"""The teacher's tools: `minflow exercises build | grade | mend | report` and `minflow slides`. One file each.

notebook.py reads and writes what they work on. Nothing here is imported by a lesson.
"""
