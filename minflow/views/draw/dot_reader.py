"""DOT text read back as boxes and edges: the part of the language that `dot.py` writes, and a little more.

For our own layout, where no Graphviz is there to read it. Read next: `layout.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'\s+|//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*")|(->|--)|([{}\[\];,=])|([^\s{}\[\];,="]+?(?=->|--|[\s{}\[\];,="]|$))', re.S)


@dataclass
class Box:
    """A node: its lines of text, its attributes, and the frames around it, outermost first."""

    id: str
    lines: list[str]
    attrs: dict[str, str]
    frames: tuple[str, ...]


@dataclass
class Edge:
    source: str
    target: str
    label: str
    attrs: dict[str, str]


@dataclass
class Drawing:
    """boxes by id, edges, and frames: id -> label."""

    boxes: dict[str, Box] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    frames: dict[str, str] = field(default_factory=dict)


def tokens(dot: str) -> list[str]:
    found, at = [], 0
    while at < len(dot):
        match = TOKEN.match(dot, at)
        if match is None:
            raise ValueError(f"DOT text cannot be read from character {at}: {dot[at : at + 20]!r}")
        found += [part for part in match.groups() if part is not None]
        at = max(match.end(), at + 1)
    return found


def plain(token: str) -> str:
    """The text of an identifier: quotes off, escapes undone."""
    if not token.startswith('"'):
        return token
    text = re.sub(r"\\(.)", lambda m: "\n" if m[1] in "nlr" else m[1], token[1:-1], flags=re.S)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text


def read_dot(dot: str) -> Drawing:
    """The drawing that a DOT text describes. Raises ValueError where it cannot be read."""
    words = tokens(dot)
    drawing = Drawing()
    if "{" not in words:
        raise ValueError("DOT text without a body")
    at = words.index("{") + 1
    frames: list[str] = []
    defaults: dict[str, str] = {}
    while at < len(words):
        word = words[at]
        if word == "}":
            if frames:
                frames.pop()
            at += 1
        elif word in (";", ","):
            at += 1
        elif word == "subgraph" or word == "{":
            name = plain(words[at + 1]) if word == "subgraph" and words[at + 1] != "{" else f"frame {len(drawing.frames)}"
            frames.append(name)
            drawing.frames.setdefault(name, "")
            at = words.index("{", at) + 1
        elif word in ("graph", "node", "edge") and words[at + 1] == "[":
            attrs, at = attributes(words, at + 1)
            if word == "graph" and frames and "label" in attrs:
                drawing.frames[frames[-1]] = attrs["label"]
            if word == "node":
                defaults |= attrs
        elif words[at + 1 : at + 2] == ["="]:
            if word == "label" and frames:
                drawing.frames[frames[-1]] = plain(words[at + 2])
            at += 3
        else:
            ids = [plain(word)]
            at += 1
            while at + 1 < len(words) and words[at] in ("->", "--"):
                ids.append(plain(words[at + 1]))
                at += 2
            attrs, at = attributes(words, at)
            for id in ids:
                if id not in drawing.boxes:
                    drawing.boxes[id] = Box(id, [id], dict(defaults), tuple(frames))
            if len(ids) == 1:
                box = drawing.boxes[ids[0]]
                box.attrs |= attrs
                box.frames = tuple(frames) or box.frames
                if "label" in attrs:
                    box.lines = attrs["label"].split("\n")
            drawing.edges += [Edge(a, b, attrs.get("label", ""), attrs) for a, b in zip(ids, ids[1:])]  # noqa: RUF007
    return drawing


def attributes(words: list[str], at: int) -> tuple[dict[str, str], int]:
    """The attributes in brackets at `at`, if there are some, and where to read on."""
    found: dict[str, str] = {}
    while at < len(words) and words[at] == "[":
        at += 1
        while words[at] != "]":
            if words[at] in (",", ";"):
                at += 1
            elif words[at + 1] == "=":
                found[words[at]] = plain(words[at + 2])
                at += 3
            else:
                found[plain(words[at])] = "true"
                at += 1
        at += 1
    return found, at
