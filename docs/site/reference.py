"""The reference: every public name once, with its signature and what its docstring says, on pages of one subject each.

Our docstrings are plain text with code in backticks, so they become Markdown in which nothing else is a sign.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import minflow as flow
import minflow_widgets

PACKAGE = Path(flow.__file__).parent

# Room -> its pages, each with the files whose names stand there. What fits none stands on the last page of the room;
# a room that is not here has one page.
GROUPS = {
    "flow": {
        "making tensors": "core/functions/(creation|windows|drawing|typed) core/random",
        "arithmetic and comparing": "core/functions/(elementary|arithmetic) core/ops/(compare|pairs) $",
        "functions of a number": "core/functions/(complex|special|activation) core/ops/(elementwise|special|complex) "
        "nn/functional/activation",
        "over axes": "core/functions/(reduction|quantiles|cumulating|counting|ordering|judging)",
        "shapes and places": "core/functions/(shape|stacking|gathering|placing)",
        "matrices": "core/functions/(matrices|linear_algebra|matrix_products|einsum)",
        "layers as functions": "nn/functional/",
        "job functions": "job/(?!legacy)",
        "job functions, older names": "job/legacy/",
        "gradients, dtypes, errors and the rest": "",
    },
    "flow.nn": {
        "Module, containers, Graph": "nn/(module$|containers|parameter|graph|parallel)",
        "linear and convolution": "nn/modules/(linear|conv|embedding|distance|lazy|attention|transformer|rnn)",
        "activations": "nn/modules/(activation|piecewise)",
        "pooling, padding and shapes": "nn/modules/(pooling|adaptive|padding|resizing|shape)",
        "normalisation and dropout": "nn/modules/(norm|group|instance|batch|dropout)",
        "losses and the rest": "",
    },
    "flow.nn.functional": {
        "activations and dropout": "nn/functional/(activation|piecewise|dropout)",
        "convolution, pooling, shapes": "nn/functional/(linear|conv|pool|adaptive|pad|fold|resiz|embed|vision)",
        "normalisation, recurrence, attention": "nn/functional/(norm|group|rnn|attention|local)",
        "losses and the rest": "",
    },
    "flow.vision.models": {"networks": "vision/models/(?!weights)", "weights": ""},
}
# Chapters of the reference: rooms in the order of reading. Rooms that are named nowhere stand in the last one.
CHAPTERS = {
    "Tensors and functions": ["flow", "flow.Tensor", "flow.linalg", "flow.fft", "flow.special", "flow.random"],
    "Networks": ["flow.nn", "flow.nn.functional", "flow.nn.init", "flow.nn.utils", "flow.nn.utils.rnn", "flow.models"],
    "Training": [
        "flow.optim",
        "flow.optim.lr_scheduler",
        "flow.optim.swa_utils",
        "flow.amp",
        "flow.autograd",
        "flow.func",
        "flow.data",
        "flow.utils.data",
        "minflow_widgets",
    ],
    "Pictures": ["flow.vision"],
    "Other rooms": [],
}


@functools.cache
def rooms() -> dict[str, Any]:
    """Name -> module (or the class Tensor) whose public names are documented."""
    found = {"flow": flow}
    for name, module in [("flow", flow)]:
        found |= inner(module, name)
    return found | {"minflow_widgets": minflow_widgets, "flow.Tensor": flow.Tensor}


def inner(module: ModuleType, name: str, above: tuple[ModuleType, ...] = ()) -> dict[str, ModuleType]:
    found = {}
    for part in dir(module):
        value = getattr(module, part, None)
        known = getattr(value, "__file__", None)  # not what a program of PyTorch's was given for a module
        if isinstance(value, ModuleType) and known and value not in (module, *above):
            found |= {f"{name}.{part}": value} | inner(value, f"{name}.{part}", (module, *above))
    return found


def public(room: str) -> list[str]:
    """The names of a room that stand on its pages: no modules, which are rooms, and no methods of Python's own."""
    holder = rooms()[room]
    names = [name for name in dir(holder) if not isinstance(getattr(holder, name), ModuleType) and name[0] != "_"]
    return [name for name in names if f"{room}.{name}" not in rooms()]


@functools.cache
def first_names() -> dict[int, str]:
    """Object -> the name under which it is explained; its other names point there."""
    found: dict[int, list[str]] = {}
    for room in rooms():
        for name in public(room) if room != "flow.Tensor" else ():
            value = getattr(rooms()[room], name)
            if callable(value) or type(value).__module__.startswith("minflow"):
                found.setdefault(id(value), []).append(f"{room}.{name}")
    return {key: min(names, key=order) for key, names in found.items()}


def order(name: str) -> tuple:
    room, _, last = name.rpartition(".")
    value = getattr(rooms()[room], last)
    known = room in [one for names in CHAPTERS.values() for one in names]
    return not known, getattr(value, "__name__", repr(value).rpartition(".")[2]) != last, room.count("."), name


def pages() -> dict[str, str]:
    """Path -> Markdown of the whole reference."""
    named = {room for names in CHAPTERS.values() for room in names}
    chapters = CHAPTERS | {"Other rooms": sorted(set(rooms()) - named)}
    chapters["Pictures"] = sorted(room for room in rooms() if room.startswith("flow.vision"))
    chapters["Other rooms"] = [room for room in chapters["Other rooms"] if room not in chapters["Pictures"]]
    result = {}
    lines = [
        "# Reference",
        "",
        "Every public name, with its signature and what its docstring says. `import minflow as flow` comes first.",
        "",
    ]
    for chapter, names in chapters.items():
        lines += [f"## {chapter}", "", "```{toctree}", ":maxdepth: 2", ""]
        for room in names:
            mine = room_pages(room)
            result |= {f"reference/{slug}.md": text for slug, text in mine.items()}
            lines.append(next(iter(mine)))
        lines += ["```", ""]
    return result | {"reference/index.md": "\n".join(lines)}


def room_pages(room: str) -> dict[str, str]:
    """Slug -> text of the pages of a room, its first page first."""
    parts: dict[str, list[str]] = {title: [] for title in groups(room)}
    for name in public(room):
        parts[group_of(room, name)].append(name)
    kind = "class" if isinstance(rooms()[room], type) else "module"
    head = [f"# `{room}`", "", f":::{{py:{kind}}} {room}", ":::", "", prose(rooms()[room].__doc__ or ""), ""]
    parts = {title: names for title, names in parts.items() if names}
    if len(parts) == 1:
        (names,) = parts.values()
        return {room: "\n".join([*head, *entries(room, names)])}
    result = {}
    for title, names in parts.items():
        slug = f"{room}-{re.sub(r'[^a-z]+', '-', title.lower()).strip('-')}"
        now = [] if room == "flow.Tensor" else [f":::{{py:currentmodule}} {room}", ":::", ""]
        result[slug] = "\n".join([f"# `{room}`: {title}", "", *now, *entries(room, names)])
    return {room: "\n".join([*head, "```{toctree}", *result, "```", ""])} | result


@functools.cache
def groups(room: str) -> dict[str, str]:
    if room != "flow.Tensor":
        return GROUPS.get(room, {"": ""})
    homes = sorted({home(room, name) for name in public(room)})
    return {place.rpartition("/")[2].replace("_", " "): f"{place}$" for place in homes}


def group_of(room: str, name: str) -> str:
    place = home(room, name)
    for title, patterns in groups(room).items():
        if any(re.match(pattern, place) for pattern in patterns.split()) or not patterns:
            return title
    raise LookupError(f"{room}.{name} of {place} stands on no page")


def home(room: str, name: str) -> str:
    """The file that a name is written in, as `core/functions/shape`."""
    holder = rooms()[room]
    if isinstance(holder, type):
        owner = next(kind for kind in holder.__mro__ if name in vars(kind))
        module = owner.__module__
    else:
        value = getattr(holder, name)
        try:
            path = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
            return path.relative_to(PACKAGE).with_suffix("").as_posix()
        except (TypeError, ValueError):
            module = getattr(value, "__module__", None) or type(value).__module__
    return module.removeprefix("minflow").lstrip(".").replace(".", "/")


def entries(room: str, names: list[str]) -> Iterator[str]:
    for name in names:
        yield from entry(room, name)


def entry(room: str, name: str) -> Iterator[str]:
    """The lines of one name."""
    full, holder = f"{room}.{name}", rooms()[room]
    value = inspect.getattr_static(holder, name) if isinstance(holder, type) else getattr(holder, name)
    value = getattr(value, "__func__", value) if isinstance(holder, type) else value
    first = first_names().get(id(value), full) if room != "flow.Tensor" else full
    kind = kind_of(value, in_class=room == "flow.Tensor")
    yield f"::::{{py:{kind}}} {full if isinstance(holder, type) else name}{signature(value, kind)}"
    if first != full:
        yield f"The same as {{py:obj}}`{first}`."
    else:
        yield prose(inspect.getdoc(value) if callable(value) or isinstance(value, property) else about(value))
        if kind == "class":
            yield from members(value)
    yield from ("::::", "")


def about(value: Any) -> str:
    """Of a value that is no function: what its kind is, if that is ours, else the value."""
    return type(value).__doc__ or "" if type(value).__module__.startswith("minflow") else f"`{value!r}`"


def members(kind: type) -> Iterator[str]:
    """Public methods and properties that a class defines itself; what it inherits stands with the class above."""
    for name, it in vars(kind).items():
        it = getattr(it, "__func__", it)
        if name[0] != "_" and name != "forward" and (inspect.isroutine(it) or isinstance(it, property)):
            what = kind_of(it, in_class=True)
            yield from ("", f":::{{py:{what}}} {name}{signature(it, what)}", prose(inspect.getdoc(it) or ""), ":::")


def kind_of(value: Any, in_class: bool) -> str:
    if isinstance(value, type):
        return "class" if not issubclass(value, Exception) else "exception"
    if callable(value):
        return "method" if in_class else "function"
    return "property" if isinstance(value, property) else "attribute" if in_class else "data"


class Plain(str):
    """Text that stands in a signature as it is."""

    __repr__ = str.__str__


def signature(value: Any, kind: str) -> str:
    """`(x, dim: int = 0) -> Tensor`; "" for what is not called, and for classes that Python itself makes."""
    if kind in ("data", "attribute", "property"):
        return ""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "()" if kind != "exception" else ""
    given = list(found.parameters.values())
    if kind == "method" and given and given[0].name in ("self", "cls"):
        del given[0]
    parameters = [one.replace(annotation=shown(one.annotation), default=value_of(one.default)) for one in given]
    text = str(found.replace(parameters=parameters, return_annotation=shown(found.return_annotation)))
    return " ".join(text.split())


def shown(annotation: Any) -> Any:
    return Plain(annotation) if isinstance(annotation, str) else annotation


def value_of(default: Any) -> Any:
    """A default as one would write it, the same at each build."""
    if default is inspect.Parameter.empty:
        return default
    if callable(default) and hasattr(default, "__name__"):
        return Plain(default.__name__)
    return Plain(re.sub(r"<[^<>]*>", "...", repr(default)))


def prose(doc: str) -> str:
    """A docstring as Markdown: code in backticks and indented blocks are code, lists are lists, all else is text."""
    result = []
    for part in re.split(r"\n[ \t]*\n", inspect.cleandoc(doc)):
        lines = part.split("\n")
        if part.lstrip().startswith(">>>") or all(line.startswith("    ") for line in lines):
            result.append(f"```python\n{inspect.cleandoc(part)}\n```")
        elif part.strip():
            result.append("\n".join(line if not line.strip() else plain(line) for line in lines))
    return "\n\n".join(result)


def plain(line: str) -> str:
    """A line in which only backticks, and a dash that begins a list, are signs."""
    dash = re.match(r"\s*- ", line)
    start = dash[0] if dash else ""
    pieces = re.split(r"(`[^`]+`)", line.removeprefix(start).strip())
    pieces[::2] = [re.sub(r"([\\`*_<>\[\]{}#$|~^&=+%:-])", r"\\\1", piece) for piece in pieces[::2]]
    return start + re.sub(r"^(\d+)([.)])", r"\1\\\2", "".join(pieces))
