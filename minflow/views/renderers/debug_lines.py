"""A line of a build log as HTML: its kind and path faint, its name bold, its place in the program a link where scripts
run.

Facts that most lines share, such as the device, are left out of them and written once. Read next: `debug_tree.py`.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from ...core.ir import Where, line_number, where_text
from ..html.page import FAINT_STYLE
from ..text.listing import clean

KIND_PATTERN = re.compile(r"^\((MODULE|OPERATOR|PARAMETER|BUFFER|INPUT|OUTPUT|CONFIG): ?([^:(]+)(.*)\)$", re.S)
PHASE_PATTERN = re.compile(r"^\(GRAPH:.*\) start building (\w+(?: \w+)?)\.$", re.S)
GRAPH_PATTERN = re.compile(r"^\(GRAPH:.*\)(?:'s)? (?=\w+ing |makes |total )", re.S)
# what follows the name of a tensor: the facts that may be shared, its size, its dtype
TENSOR_PATTERN = re.compile(r":tensor\((\.\.\.|\[\])(.*?),\s+size=\((.*?),?\),\s+dtype=minflow\.(\w+)(.*)\)$", re.S)
PLACE_PATTERN = re.compile(r"^at (In\[\d+\]:\d+)(?= |$)")  # a line of a cell
# the path before the last part of a name: of a module's input or output, of an operation, of a module or a tensor
PATH_PATTERN = re.compile(r".*-(?=(?:in|out)put[_.][\d._]+$|\w+-\d+$)|.*\.")
PHASES = ("backward", "recompute", "optimizer")
LAZY = "is_lazy='True'"


class Line(NamedTuple):
    """A line of the log.

    where: place in the program that calls the module or the operation. seconds: build time of a module. error: the
    error that ended the build in this module.
    """

    indent: int
    text: str
    where: Where | None = None
    seconds: float = 0.0
    error: str = ""


class SharedFacts(NamedTuple):
    """Facts that lines leave out. operations: device and SBP of most operations; tensors: of all tensors, if not
    the default. note: the sentence that says so.
    """

    operations: str
    tensors: str
    note: str


def shared_facts(texts: Iterable[str]) -> SharedFacts:
    operations: Counter[str] = Counter()
    tensors: Counter[str] = Counter()
    lazy = False
    for text in texts:
        if text.startswith("(OPERATOR"):
            operations[operation_parts(text)[1]] += 1
        elif match := TENSOR_PATTERN.search(text):
            tensors[tensor_facts(match[2])] += 1
            lazy = lazy or LAZY in match[2]
    most = max(operations, key=operations.__getitem__, default="")
    same = next(iter(tensors)) if len(tensors) == 1 else ""
    unless = ", unless a line has others" if len(operations) > 1 else ""
    notes = [f"operations: {most}{unless}"] * bool(most) + [f"tensors: {same}"] * bool(same)
    notes += [f"inputs and outputs of modules: {LAZY}"] * lazy
    return SharedFacts(most, same, "; ".join(notes))


def operation_parts(text: str) -> tuple[str, str, str]:
    """(name, inputs and outputs; its device and SBP; the bytes that it sends) of the line of an operation."""
    at = max(text.rfind(", device="), text.rfind(", placement="))
    if at < 0:
        return text, "", ""
    facts, sends, more = text[at + 2 :].removesuffix(")").partition(", sends ")
    head = text[:at]
    for phase in PHASES:
        head = head.removesuffix(f", {phase}")
    return f"{head})", facts, f"{sends}{more}"


def tensor_facts(text: str) -> str:
    """`device='cuda:0'`, or placement and SBP, from the text between a tensor's dots and its size."""
    return " ".join(text.replace(LAZY, "").split()).replace(", ,", ",").strip(", ")


def spec_of(text: str) -> str:
    """`float32[3, 4]` from the line of a tensor; empty for other lines."""
    match = TENSOR_PATTERN.search(text)
    return f"{match[4]}[{match[3]}]" if match else ""


def is_plain(text: str, facts: SharedFacts) -> bool:
    """True for the line of a tensor that says no more than its size and dtype, and the facts that are written once."""
    match = TENSOR_PATTERN.search(text)
    return match is not None and tensor_facts(match[2]) in ("", facts.tensors)


def line_html(text: str, facts: SharedFacts) -> str:
    """The line without the facts that are written once."""
    sends = ""
    if text.startswith("(OPERATOR"):
        head, own, sends = operation_parts(text)
        text = head if own == facts.operations else f"{head.removesuffix(')')}, {own})" if own else text
    match = KIND_PATTERN.match(text)
    if match is None:
        parts = GRAPH_PATTERN.sub("", PHASE_PATTERN.sub(r"\1", text)).split("\n")
        return "<br>".join(escape(clean(part)) for part in parts)
    kind, name, rest = match.groups()
    if tensor := TENSOR_PATTERN.search(rest):
        own = tensor_facts(tensor[2])
        more = " ".join(tensor[5].split()).strip(", ")
        empty = "empty" if tensor[1] == "[]" else ""
        rest = f": {spec_of(rest)}" + "".join(f", {x}" for x in (empty, own if own != facts.tensors else "", more) if x)
    elif kind == "MODULE":
        rest = rest.replace(":", ": ", 1)
    name = clean(name.strip())
    path = match[0] if (match := PATH_PATTERN.match(name)) else ""
    head = f'<span style="{FAINT_STYLE}">{kind.lower()} {escape(path)}</span><b>{escape(name.removeprefix(path))}</b>'
    return f"{head}{escape(clean(rest))}{escape(sends)}"


def place_html(text: str) -> str:
    """`at In[4]:2 in forward < y = x.exp() >`; its title makes the place of a cell a link where scripts run."""
    match = PLACE_PATTERN.match(text)
    if match is None:
        return escape(clean(text))
    source = re.search(r" < (.*) >$", text)
    return f"at {link_html(match[1], source[1] if source else '')}{escape(clean(text[match.end() :]))}"


def where_html(where: Where, around: Where | None) -> str:
    """`In[4]:2`, with the source line as its title; only an arrow for the line of the row around it."""
    code, number = where[0], line_number(where)
    same = around is not None and (around[0], line_number(around)) == (code, number)
    return link_html(where_text(where), linecache.getline(code.co_filename, number).strip(), "↗" if same else "")


def link_html(place: str, source: str, shown: str = "") -> str:
    title = f"{place}: {source}" if source else place
    return f'<span title="{escape(clean(title), True)}">{shown or escape(clean(place))}</span>'


def seconds_text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms"
