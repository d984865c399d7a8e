"""Every static view with only DejaVu, with Liberation and with Chinese fonts, on light and dark pages.

No text exceeds its box or the picture, every text has a readable background, every line is visible on every page, and
nothing fills the page (gallery.mjs reports violations). fontconfig selects the fonts: Chromium gets a folder of fonts
and finds no others.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hostile_views import VIEWS, bundles
from pages import CHROMIUM, NODE, PLAYWRIGHT, SHOTS, shots_folder

from minflow.views.draw import engines

pytestmark = pytest.mark.browser
FONTS = {  # folders, and the substitutes for Helvetica, Arial and the page's own fonts
    "DejaVu alone": (("dejavu",), "DejaVu Sans", "DejaVu Sans Mono"),
    "Liberation": (("liberation*",), "Liberation Sans", "Liberation Mono"),
    "Chinese": (("dejavu", "wqy"), "WenQuanYi Micro Hei", "WenQuanYi Micro Hei Mono"),
}
SANS, MONO = ("sans-serif", "system-ui", "Helvetica", "Arial"), ("monospace",)
NAMES = ("fc1", "encoder.layers.11.attention.output_projection", "卷积层_一.全连接")
CONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>{folders}<cachedir>{cache}</cachedir>{names}</fontconfig>
"""
ALIAS = "<alias binding='same'><family>{}</family><prefer><family>{}</family></prefer></alias>"


@pytest.fixture(scope="module")
def views():
    """[[name of the view, html], ...], drawn by each engine; views that two engines draw alike occur once."""
    before, found = engines.ENGINES, {}
    try:
        for engine in ("layout", "wasi"):
            engines.ENGINES = dict.fromkeys(before, before[engine])
            engines.render_svg.cache_clear()
            for what in VIEWS:
                for name in NAMES:
                    for i, bundle in enumerate(bundles(what, name)):
                        found.setdefault(bundle.get("text/html"), f"{what} / {name} / {i} / {engine}")
    finally:
        engines.ENGINES = before
        engines.render_svg.cache_clear()
    return [[name, html] for html, name in found.items() if html]


@pytest.mark.parametrize("font", FONTS)
def test_views_fit_and_are_readable_everywhere(views, font, tmp_path):
    wanted, sans, mono = FONTS[font]
    folders = [folder for name in wanted for folder in Path("/usr/share/fonts/truetype").glob(name)]
    assert len(folders) >= len(wanted), f"no fonts {wanted}; .ci/run installs them"
    config = tmp_path / "fonts.conf"
    inside = "".join(f"<dir>{folder}</dir>" for folder in folders)
    names = "".join(ALIAS.format(name, there) for group, there in ((SANS, sans), (MONO, mono)) for name in group)
    config.write_text(CONFIG.format(folders=inside, cache=tmp_path / "cache", names=names))
    (tmp_path / "views.json").write_text(json.dumps(views))
    words = [NODE, str(Path(__file__).with_name("gallery.mjs")), str(PLAYWRIGHT), CHROMIUM, str(tmp_path)]
    if SHOTS:
        words.append(str(shots_folder(tmp_path, f"fonts-{font.replace(' ', '-')}")))
    done = subprocess.run(
        words, env={**os.environ, "FONTCONFIG_FILE": str(config)}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert set(seen) == {name for name, _ in views}
    wrong = {name: found for name, found in seen.items() if found}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)[:20000]
