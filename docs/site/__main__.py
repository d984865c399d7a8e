"""`python -m docs.site`: build the site into `build/site`; open its `index.html`, no server is needed.

Gathers the sources in `build/site-source`, at their paths in the repository, so that their links stay valid:
pages of `docs/`, lessons with their outputs (`lessons.py`), and pages generated from the code: the reference
(`reference.py`), the list of lessons, the glossary of the course and the picture of the packages (`pages.py`).
A warning is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import lessons, pages, reference

TOP = Path(__file__).resolve().parents[2]
SOURCE, RESULT = TOP / "build/site-source", TOP / "build/site"
EXTERNAL_RESOURCE = re.compile(
    r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^"']+|url\(["']?https?://"""
)


def main(argv: list[str] | None = None) -> int:
    """Build the site. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description="Build the documentation site.")
    parser.add_argument("--no-run", action="store_true", help="show the lessons without outputs; takes seconds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="lessons that run at the same time")
    options = parser.parse_args(argv)
    write_sources(SOURCE)
    if not options.no_run and not lessons.run_all(SOURCE, options.jobs):
        return 1
    words = [
        "-b",
        "html",
        "-c",
        str(Path(__file__).parent),
        "-W",
        "--keep-going",
        "-q",
        "-E",
        "-d",
        str(TOP / "build/site-doctrees"),
        "-j",
        str(options.jobs),
        str(SOURCE),
        str(RESULT),
    ]
    shutil.rmtree(RESULT, ignore_errors=True)
    code = subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=TOP).returncode
    if code:
        return code
    for name in pages.pictures():  # Sphinx copies those that Markdown shows, but not those of HTML
        (RESULT / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, RESULT / name)
    sources = [file.relative_to(SOURCE).with_suffix(".html") for file in SOURCE.rglob("*") if pages.is_page(file)]
    if lost := [str(file) for file in sources if not (RESULT / file).exists()]:  # Sphinx can lose a process silently
        print("pages that were not written:", *lost, "Run it again with --jobs 1", sep="\n  ", file=sys.stderr)
        return 1
    if loaded := external_resources(RESULT):
        print("the site would load from other machines:", *loaded, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{RESULT / 'index.html'}: {len(list(RESULT.rglob('*.html')))} pages")
    return 0


def write_sources(source: Path) -> None:
    """Write all sources into a new folder."""
    shutil.rmtree(source, ignore_errors=True)
    written = {**pages.repository_pages(), **pages.generated_pages(), **reference.pages()}
    for name, text in (written | pages.linked_sources(written)).items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in pages.pictures():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, source / name)


def external_resources(folder: Path) -> list[str]:
    """Addresses on other machines from which a page would load something; links to click are ignored."""
    return sorted(
        {
            f"{file.relative_to(folder)}: {found}"
            for file in folder.rglob("*")
            if file.suffix in (".html", ".css")
            for found in EXTERNAL_RESOURCE.findall(file.read_text(encoding="utf-8"))
        }
    )


if __name__ == "__main__":
    sys.exit(main())
