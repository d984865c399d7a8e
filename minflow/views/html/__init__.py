"""Records as HTML that survives in dark themes, in saved and in untrusted notebooks.

Read next: `page.py`.
"""
