"""Records as HTML that works in dark themes, in saved and in untrusted notebooks.

Read next: `page.py`.
"""
