"""Pages that are copied from the repository, and pages generated from the lessons and the code."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
from pathlib import Path

from minflow.exercises.i18n import po
from minflow.exercises.welcome import Lesson, lessons, tours
from minflow.views.draw import theme
from minflow.views.draw.boxes import Box, Diagram, Edge
from minflow.views.draw.engines import render_svg

TOP = Path(__file__).resolve().parents[2]
NOTEBOOKS = TOP / "notebooks"
LINK = re.compile(r"(\]\()([^()\s#:]+)(#[^()\s]*)?(\))")
FENCES = re.compile(r"(^```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
# Caption -> pages. Other pages of docs/ are guides.
CHAPTERS = {
    "Learn": ["docs/install", "notebooks/README", "glossary", "docs/coming-from-pytorch", "docs/coming-from-oneflow"],
    "Understand": ["docs/how-it-works", "docs/architecture", "docs/performance", "docs/differences", "docs/coverage"],
    "Use": ["reference/index"],
    "Teach": ["docs/exercises"],
    "Take part": ["CONTRIBUTING", "docs/glossary", "SECURITY", "CHANGELOG"],
}


def repository_pages() -> dict[str, str]:
    """Path -> text of the Markdown pages and notebooks written by hand; README.md becomes the first page."""
    files = [
        TOP / "README.md",
        TOP / "CONTRIBUTING.md",
        TOP / "SECURITY.md",
        TOP / "CHANGELOG.md",
        *sorted((TOP / "docs").glob("*.md")),
        *sorted((TOP / "docs/teaching").rglob("*.md")),
        *(one.path for one in [*lessons(NOTEBOOKS), *tours(NOTEBOOKS)]),
    ]
    result = {file.relative_to(TOP).as_posix(): page_text(file) for file in files}
    chapters = {caption: list(names) for caption, names in CHAPTERS.items()}
    known = {name for names in chapters.values() for name in names}
    for name in sorted(Path(file).with_suffix("").as_posix() for file in result if file.startswith("docs/")):
        if name not in known:
            chapters["Teach" if name.startswith("docs/teaching/") else "Use"].append(name)
    chapters["Teach"].sort(key=lambda name: not name.endswith("/README"))
    result["index.md"] = result.pop("README.md") + "".join(toctree(*one) for one in chapters.items() if one[1])
    result["docs/how-it-works.md"] = result["docs/how-it-works.md"].replace("<!-- packages -->", packages())
    return result


def toctree(caption: str, names: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])


def page_text(file: Path) -> str:
    """Text of a page, with links to other files rewritten to pages that show those files."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return rewrite_links(text, file.parent)
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = rewrite_links("".join(cell["source"]), file.parent)
    return json.dumps(notebook, ensure_ascii=False)


def rewrite_links(text: str, folder: Path) -> str:
    pieces = FENCES.split(text)
    pieces[::2] = [LINK.sub(lambda found: rewrite_link(found, folder), piece) for piece in pieces[::2]]
    return "".join(pieces)


def rewrite_link(found: re.Match, folder: Path) -> str:
    """Rewrite a link for the site."""
    start, name, anchor, end = found.groups()
    path = Path(os.path.normpath(folder / name))
    back = os.path.relpath(TOP, folder)
    if path == TOP / "README.md":
        return f"{start}{back}/index.md{anchor or ''}{end}"
    if path.is_dir() and (path / "README.md").exists():
        return f"{start}{name.rstrip('/')}/README.md{anchor or ''}{end}"
    if path.exists() and not is_page(path) and path.suffix not in PICTURES:
        return f"{start}{back}/source/{path.relative_to(TOP).as_posix()}.md{end}"
    return found[0]


PICTURES = (".svg", ".png", ".webp")


def is_page(path: Path) -> bool:
    return path.suffix in (".md", ".ipynb")


def linked_sources(written: dict[str, str]) -> dict[str, str]:
    """Pages that show the files which other pages link to: `source/minflow/core/op.py.md`."""
    names = {name for text in written.values() for name in re.findall(r"\]\([./]*/source/([^()\s]+)\.md\)", text)}
    return {f"source/{name}.md": source_page(name) for name in sorted(names)}


def source_page(name: str) -> str:
    """A page that shows a file of the repository, or lists the files of a folder."""
    path = TOP / name
    files = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    text = "\n".join(str(file.relative_to(path)) for file in files) if files else path.read_text(encoding="utf-8")
    fence = "`" * (3 + max(map(len, re.findall(r"^`+", text, re.MULTILINE)), default=0))
    language = {".py": "python", ".toml": "toml", ".yml": "yaml"}.get(Path(name).suffix, "text")
    return f"---\norphan: true\n---\n\n# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def pictures() -> list[str]:
    """Paths of the pictures in `docs/`."""
    return [file.relative_to(TOP).as_posix() for file in (TOP / "docs").rglob("*") if file.suffix in PICTURES]


def generated_pages() -> dict[str, str]:
    """Pages generated from the lessons and the code."""
    return {"notebooks/README.md": course(), "glossary.md": glossary()}


# ---- the course -----------------------------------------------------------------------------------------------------


def course() -> str:
    """notebooks/README.md with a link, the question and the minutes of each notebook."""
    found = {one.path.name: one for one in [*lessons(NOTEBOOKS), *tours(NOTEBOOKS)]}
    lines = rewrite_links((NOTEBOOKS / "README.md").read_text(encoding="utf-8"), NOTEBOOKS).split("\n")
    for i, line in enumerate(lines):
        name = re.match(r"\| `(\w+\.ipynb)` \|", line)
        if name and name[1] in found:
            lines[i] = course_row(found[name[1]]) + line[name.end() :]
        elif re.match(r"\|[^|`]+\|[^`]*$", line) and lines[i + 1].startswith("|---|"):
            head = re.match(r"\|[^|]+\|", line)[0]
            lines[i] = f"{head} its question | minutes |{line[len(head) :]}"
            lines[i + 1] += "---|---|"
    places = [one.path.relative_to(NOTEBOOKS).with_suffix("").as_posix() for one in found.values()]
    return "\n".join([*lines, "```{toctree}", ":hidden:", ":maxdepth: 1", "", *places, "```", ""])


def course_row(one: Lesson) -> str:
    place = one.path.relative_to(NOTEBOOKS).as_posix()
    cells = [f"[{one.number} - {one.title}]({place})", one.question, str(one.minutes or "")]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def lesson_terms(path: Path) -> list[tuple[str, str]]:
    """(word, meaning) pairs of a lesson, from the table in the cell whose id ends in `-words`."""
    for cell in json.loads(path.read_bytes())["cells"]:
        if cell.get("id", "").endswith("-words"):
            rows = re.findall(r"^\|(.+?)(?<!\\)\|(.+)\|\s*$", "".join(cell["source"]), re.MULTILINE)
            return [(word.strip(), meaning.strip()) for word, meaning in rows if not set(word) <= set(" -:")][1:]
    return []


def glossary() -> str:
    """All words of the lessons in alphabetical order, with their Chinese translation if there is one."""
    rows = []
    for one in [*lessons(NOTEBOOKS), *tours(NOTEBOOKS)]:
        file = NOTEBOOKS / "zh" / one.path.relative_to(NOTEBOOKS).with_suffix(".po")
        chinese = {entry.text: entry.translation for entry in po.read(file) if entry.current} if file.exists() else {}
        place = one.path.relative_to(TOP).as_posix()
        rows += [
            (
                re.sub(r"\W", "", word).lower(),
                f"| {word} | {chinese.get(word, '')} | {meaning} | [{one.number}]({place}) |",
            )
            for word, meaning in lesson_terms(one.path)
        ]
    if not rows:
        return "# Glossary\n\nThe lessons have not named a word yet.\n"
    return "\n".join(
        [
            "# Glossary",
            "",
            "Words that the lessons explain, each with its lesson.",
            "",
            "| word | 中文 | meaning | lesson |",
            "|---|---|---|---|",
            *(row for _, row in sorted(rows)),
            "",
        ]
    )


# ---- packages -------------------------------------------------------------------------------------------------------


@functools.cache
def package_imports() -> dict[str, list[str]]:
    """Package -> the packages it imports, from the table in tests/test_layering.py, after transitive reduction."""
    table = importlib.import_module("tests.test_layering").ROOMS
    packages = [
        name
        for name, imported in table.items()
        if (TOP / "minflow" / name.replace(".", "/")).is_dir() and (imported or name == "core")
    ]

    def package(module: str) -> str:
        return max((name for name in packages if f"{module}.".startswith(f"{name}.")), key=len, default="")

    direct = {name: {package(module) for module in table[name]} - {name, ""} for name in packages}
    below: dict[str, set[str]] = {}
    for name in packages:  # in the order of the table: a package follows those that it imports
        below[name] = set().union(*(below[other] | {other} for other in direct[name]))
    return {
        name: sorted(other for other in direct[name] if not any(other in below[middle] for middle in direct[name]))
        for name in packages
    }


def packages_svg() -> str:
    """The graph of the packages as an SVG, arrows from the imported package to the importing one."""
    look = {"fill": theme.PLATE, "color": theme.LINE}
    boxes = tuple(Box(name, (name,), **look) for name in package_imports())
    edges = tuple(Edge(other, name) for name, others in package_imports().items() for other in others)
    svg, engine = render_svg(Diagram(boxes, (), edges, ()), ("wasi", "layout"))
    if engine == "text":
        raise RuntimeError(svg)
    return svg


def packages() -> str:
    """The picture of the packages, followed by a table with the same content."""
    rows = ["| package | what it does | imports |", "|---|---|---|"]
    for name, others in package_imports().items():
        doc = inspect.getdoc(importlib.import_module(f"minflow.{name}")) or ""
        first = " ".join(doc.partition("\n\n")[0].split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {first} | {', '.join(f'`{other}`' for other in others)} |")
    picture = "\n".join(line for line in packages_svg().splitlines() if not line.startswith(("<?xml", "<!DOCTYPE")))
    label = "The packages of minflow; the table below says the same"
    return (
        f'```{{raw}} html\n<figure class="packages" role="img" aria-label="{label}">\n{picture}\n</figure>\n```\n\n'
        + "\n".join(rows)
    )


if __name__ == "__main__":
    (TOP / "docs/packages.svg").write_text(packages_svg(), encoding="utf-8")
