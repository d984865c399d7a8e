"""Markers of translated English in prose: docstrings, comments, messages, test names, Markdown and notebooks.

    python -m tests.prose                 # markers per package, and per 1,000 words
    python -m tests.prose minflow/job     # the lines of one folder

A marker is what a regular expression can see; a text without one may still need a second reading.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.sources import TOP

START = r"(?m:^)|(?<=[.:;] )"
RULES = {  # what to write instead -> what a text must not contain
    "n, or as many as": r"\bso many\b",
    "name the code that does not use it": r"\b(?:nobody|somebody)\b",
    "is not a": r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|such|effect|limit)\w+(?= of| that| for|\.|,|;|:)",
    "the noun first: a docstring is a sentence": rf"(?:{START})Of [a-z]",
    "must be X, got Y": (
        r"\bwhere (?:that|this|it|they|one|no|at least|nothing)\b[^.]{0,60}\b(?:wanted|fits?|pays|can)\b"
    ),
    "a noun in place of a clause": (
        r"(?m:^What )(?![^.]*\?)|(?<=[.:;] )What [a-z][^?.\"\n]{0,80}\.|\bWho [a-z][^?.\"\n]{0,80}\."
    ),
    "is, or is in": r"\bstands? (?:in|for|beside|behind|there|here|before|above|below|at)\b"
    r"|\blies? (?:in|beside|side by side|apart|there)\b",
    "American spelling, as in PyTorch": (
        r"(?i:\b(?:un|re|de)?(?:initiali|normali|optimi|recogni|organi|seriali|synchroni|generali|minimi|summari|quanti)"
        r"s(?:e[sd]?|ing|ations?)\b|\b(?:colour|behaviour|neighbour|favour)|\bcentre[sd]?\b|\bgrey|\blicence|\blearnt\b)"
    ),
    "while, or if": r"\bas long as a\b|\bthat it is\b, |\bhad at once\b|\bby itself alone\b",
}
# A file whose text, on one line, has no match of this has no marker: it need not be parsed.
LIKELY = re.compile("|".join([*RULES.values(), r"\b(?:Of|What|Who) ", r"\?\s*\"\"\"", "so_many|nobody|somebody|_no_"]))
QUESTION = "True if ..., for a function that returns a bool"


def package_of(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "minflow" else parts[0]


@cache
def sources() -> tuple[Path, ...]:
    """The files of the repository that hold prose of ours, without translations."""
    names = subprocess.check_output(["git", "ls-files"], cwd=TOP, text=True).splitlines()
    kinds = (".py", ".md", ".ipynb")
    ours = [name for name in names if name.endswith(kinds) and "/zh/" not in name and "/textbook/" not in name]
    return tuple(TOP / name for name in ours if (TOP / name).is_file() and name != "tests/prose.py")


def texts_of_python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node) or ""
            yield (node.body[0].lineno if doc else 1), doc
            if getattr(node, "name", "").startswith("test_"):
                yield node.lineno, node.name.replace("_", " ")
        elif isinstance(node, ast.Call):
            for value in [*node.args, *[word.value for word in node.keywords]]:
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.count(" ") > 3:
                    yield value.lineno, value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def questions(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings of functions that return a bool and that ask instead of saying when it is True."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and getattr(node.returns, "id", "") == "bool":
            doc = ast.get_docstring(node) or ""
            if doc.partition("\n\n")[0].rstrip().endswith("?"):
                yield node.lineno, doc


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring, comment, message and test name; of Markdown and notebooks their paragraphs."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from texts_of_python(text)
    elif file.suffix == ".md":
        yield 1, re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    else:
        for number, cell in enumerate(json.loads(text)["cells"]):
            if cell["cell_type"] == "markdown":
                yield number, "".join(cell["source"])


def markers(file: Path) -> list[str]:
    """A line for each marker of a file: where, the words, and what to write instead."""
    text = file.read_text(encoding="utf-8")
    if not LIKELY.search(re.sub(r"\s*\n[\s#]*", " ", text)):
        return []
    name, found = file.relative_to(TOP).as_posix(), []
    for line, prose in texts(file):
        for instead, rule in RULES.items():
            found += [f"{name}:{line} {match[0]!r}: {instead}" for match in re.finditer(rule, prose)]
    if file.suffix == ".py":
        found += [f"{name}:{line} {doc[:40]!r}: {QUESTION}" for line, doc in questions(text)]
    return found


def main(folders: list[str]) -> None:
    found, words = Counter(), Counter()
    for file in sources():
        name = file.relative_to(TOP).as_posix()
        if folders and not name.startswith(tuple(folders)):
            continue
        lines = markers(file)
        found[package_of(name)] += len(lines)
        words[package_of(name)] += sum(len(text.split()) for _, text in texts(file))
        if folders:
            print(*lines, sep="\n", end="\n" if lines else "")
    for package, count in sorted(found.items(), key=lambda row: -row[1] / max(words[row[0]], 1)):
        print(f"{1000 * count / max(words[package], 1):5.1f} per 1,000 words {count:5}  {package}")


if __name__ == "__main__":
    main(sys.argv[1:])
