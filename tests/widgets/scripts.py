"""Run scripts of widgets in node, without a page."""

import json
import shutil
import subprocess

import pytest
from minflow_widgets import frontends

NODE = shutil.which("node")
SCRIPTS = "page_theme.js", "curve/curve_data.js", "curve/legend.js", "curve/curve_panel.js", "curve/buttons.js"
needs_node = pytest.mark.skipif(NODE is None, reason="no node: apt-get install nodejs")


def in_node(code: str, given, *scripts: str):
    """Return the JSON value of JavaScript code with the argument `given`. scripts: those of live curves by default."""
    source = frontends.script(*(scripts or SCRIPTS)) + (
        f"\nconst given = JSON.parse(require('fs').readFileSync(0, 'utf8'));\nconsole.log(JSON.stringify({code}));"
    )
    done = subprocess.run([NODE, "-e", source], input=json.dumps(given), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
