"""Sphinx settings of the site. `python -m docs.site` (see `__main__.py`) gathers the sources and runs Sphinx."""

import re
from html import escape

from docutils.nodes import NodeVisitor, SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.util.logging import getLogger

project = "minflow"
author = "the minflow authors"
copyright = author
extensions = ["myst_nb"]
exclude_patterns: list[str] = []
nitpicky = True  # every link has a target
suppress_warnings = ["myst.header"]  # lessons use a smaller heading for every exercise

# Nothing is loaded from another machine: no inventories, no fonts, only the scripts of Sphinx and the theme.
html_theme = "furo"
html_title = "minflow"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["accessibility.js"]
html_copy_source = False
html_show_search_summary = False  # it would fetch each page, which browsers refuse for local files
html_show_sphinx = False
html_last_updated_fmt = None
smartquotes = False  # `"` in prose is often code
nb_ipywidgets_js: dict = {}
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_allow_digits = False  # a price is not a formula
myst_dmath_allow_space = False

nb_execution_mode = "off"  # `lessons.py` has run them, each once, in parallel
nb_merge_streams = True
# Prefer the form of an output that a page without a kernel can show.
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None),
    ("html", "image/svg+xml", 10),
    ("html", "text/html", 20),
    ("html", "image/png", 30),
    ("html", "text/plain", 90),
]


def mathml(node, as_block: bool) -> str:
    """A formula as MathML. One that cannot be parsed is a warning, and appears as source text."""
    try:
        return tex2mathml(re.sub(r"\\dots\b", r"\\ldots", node.astext()), as_block=as_block)
    except MathError as error:
        getLogger("sphinx.math").warning("%s in the formula %s", error, node.astext(), location=node)
        return f"<code>{escape(node.astext())}</code>"


def inline(self: NodeVisitor, node) -> None:
    self.body.append(mathml(node, as_block=False))
    raise SkipNode


def display(self: NodeVisitor, node) -> None:
    self.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>\n')
    raise SkipNode


def unlink_annotations(app, doctree) -> None:
    """Remove links from signatures: `int` in an annotation is Python's, but would link to our dtype of that name."""
    for signature in doctree.findall(desc_signature):
        for link in list(signature.findall(pending_xref)):
            link.replace_self(link.children)


def setup(app):
    """Register MathML, which browsers draw natively, for formulas."""
    app.connect("doctree-read", unlink_annotations)
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
