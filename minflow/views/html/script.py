"""HTML that a script takes over where scripts run, and that stays as it is elsewhere.

JupyterLab, Notebook, VS Code, Colab and a page of nbconvert run the script of an output; an untrusted notebook and
GitHub strip it. So the HTML must be complete without it, and the script only adds to it. Read next: `page.py`.
"""

from __future__ import annotations

import json
from typing import Any


def with_script(html: str, source: str, data: Any = None) -> str:
    """The HTML, and a script that gets its element and `data`.

    source: JavaScript whose value is a function `(element, data)`: an arrow function, or statements in a function that
    is called. The element holds `html` alone. If the script raises an error, the element gets its HTML back.
    data: any JSON. No ids: equal arguments give equal HTML.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    source = source.strip().rstrip(";").replace("</script", "<\\/script")
    run = (
        "(()=>{const box=document.currentScript&&document.currentScript.previousElementSibling;if(!box)return;"
        f"const kept=box.innerHTML;try{{({source})(box,{text})}}"
        "catch(error){box.innerHTML=kept;console.error(error)}})()"
    )
    return f"<div><div>{html}</div><script>{run}</script></div>"


def lean(source: str) -> str:
    """The script without lines of comments and indentation, because each output has it."""
    lines = [line.strip() for line in source.splitlines()]
    return "\n".join([line for line in lines if line and not line.startswith("//")])
