"""HTML files of the tools for teachers: feedback, the report of a class, slides. Read next: `html_page.py`."""
