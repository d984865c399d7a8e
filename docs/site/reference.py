"""Reference pages: every public name once, with its signature and docstring, grouped by subject.

Docstrings are plain text with code in backticks; all other characters are escaped for Markdown.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import minflow_widgets

import minflow as flow
from minflow.core.methods.forwarded import METHODS, Forwarded

PACKAGE = Path(flow.__file__).parent

# Namespace -> its pages, each with the files whose names it lists. Names that match no pattern are on the last page; a
# namespace without an entry has one page.
GROUPS = {
    "flow": {
        "making tensors": "core/functions/(creation|windows|sampling|random|fill|tensor_types) core/random",
        "arithmetic and comparing": "core/functions/(elementary|arithmetic) core/ops/(compare|binary) $",
        "functions of a number": "core/functions/(complex|special|activation) core/ops/(elementwise|special|complex) "
        "nn/functional/activation",
        "over axes": "core/functions/(reduction|quantiles|cumulative|counting|sorting|metrics|stft)",
        "shapes and places": "core/functions/(shape|joining|gather|scatter|indexing|repeat)",
        "matrices": "core/functions/(matrices|linear_algebra|matrix_products|einsum|sparse)",
        "in place": "core/in_place_functions",
        "layers as functions": "nn/functional/ compat/torch_functions",
        "job functions": "job/(?!legacy)",
        "job functions, older names": "job/legacy/",
        "gradients, ranks": "core/(grad/|autograd|base/placement) distributed/ func$",
        "dtypes and memory": "core/base/dtypes core/spec core/functions/(memory_format|storages)",
        "errors and the rest": "",
    },
    "flow.nn": {
        "Module, containers, Graph": "nn/(module$|containers|parameter|graph|parallel)",
        "linear and convolution": "nn/modules/(linear|conv|embedding|distance|lazy|attention|transformer|rnn)",
        "activations": "nn/modules/(activation|piecewise)",
        "pooling, padding and shapes": "nn/modules/(pooling|adaptive|padding|resizing|shape)",
        "normalization and dropout": "nn/modules/(norm|group|instance|batch|dropout)",
        "losses and the rest": "",
    },
    "flow.nn.functional": {
        "activations and dropout": "nn/functional/(activation|piecewise|dropout)",
        "convolution, pooling, shapes": "nn/functional/(linear|conv|pool|adaptive|unpool|pad|unfold) "
        "nn/functional/(interpolation|grid|shape|embed)",
        "normalization, recurrence, attention": "nn/functional/(norm|group|rnn|attention|local)",
        "losses and the rest": "",
    },
    "flow.vision.models": {"networks": "vision/models/(?!weights)", "weights": ""},
}
# Chapters of the reference, in reading order. The last one has all namespaces that no other chapter lists.
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
    "Other namespaces": [],
}


@functools.cache
def namespaces() -> dict[str, Any]:
    """Name -> module (or the class Tensor) whose public names are documented."""
    found = {"flow": flow}
    for name, module in [("flow", flow)]:
        found |= nested_namespaces(module, name)
    return found | {"minflow_widgets": minflow_widgets, "flow.Tensor": flow.Tensor}


def nested_namespaces(module: ModuleType, name: str, above: tuple[ModuleType, ...] = ()) -> dict[str, ModuleType]:
    found = {}
    for part in dir(module):
        value = getattr(module, part, None)
        known = getattr(value, "__file__", None)  # skips objects that replace modules of PyTorch
        if isinstance(value, ModuleType) and known and value not in (module, *above):
            found |= {f"{name}.{part}": value} | nested_namespaces(value, f"{name}.{part}", (module, *above))
    return found


def public_names(namespace: str) -> list[str]:
    """Names that the pages of a namespace list: no modules, which are namespaces themselves, and no special methods."""
    holder = namespaces()[namespace]
    names = [name for name in dir(holder) if not isinstance(getattr(holder, name), ModuleType) and name[0] != "_"]
    return [name for name in names if f"{namespace}.{name}" not in namespaces()]


@functools.cache
def documented_names() -> dict[int, str]:
    """Object id -> the name under which it is documented; entries of its other names refer to that."""
    found: dict[int, list[str]] = {}
    for namespace in namespaces():
        for name in public_names(namespace) if namespace != "flow.Tensor" else ():
            value = getattr(namespaces()[namespace], name)
            if callable(value) or type(value).__module__.startswith("minflow"):
                found.setdefault(id(value), []).append(f"{namespace}.{name}")
    return {key: min(names, key=name_sort_key) for key, names in found.items()}


def name_sort_key(name: str) -> tuple:
    namespace, _, last = name.rpartition(".")
    value = getattr(namespaces()[namespace], last)
    known = namespace in [one for names in CHAPTERS.values() for one in names]
    return not known, getattr(value, "__name__", repr(value).rpartition(".")[2]) != last, namespace.count("."), name


def pages() -> dict[str, str]:
    """Path -> Markdown of the whole reference."""
    named = {namespace for names in CHAPTERS.values() for namespace in names}
    chapters = CHAPTERS | {"Other namespaces": sorted(set(namespaces()) - named)}
    chapters["Pictures"] = sorted(name for name in namespaces() if name.startswith("flow.vision"))
    chapters["Other namespaces"] = [name for name in chapters["Other namespaces"] if name not in chapters["Pictures"]]
    result = {}
    lines = [
        "# Reference",
        "",
        "Every public name, with its signature and docstring. Programs begin with `import minflow as flow`.",
        "",
    ]
    for chapter, names in chapters.items():
        lines += [f"## {chapter}", "", "```{toctree}", ":maxdepth: 2", ""]
        for namespace in names:
            mine = namespace_pages(namespace)
            result |= {f"reference/{slug}.md": text for slug, text in mine.items()}
            lines.append(next(iter(mine)))
        lines += ["```", ""]
    return result | {"reference/index.md": "\n".join(lines)}


def namespace_pages(namespace: str) -> dict[str, str]:
    """Slug -> text of the pages of a namespace, the first page first."""
    parts: dict[str, list[str]] = {title: [] for title in groups(namespace)}
    for name in public_names(namespace):
        parts[group_of(namespace, name)].append(name)
    holder = namespaces()[namespace]
    kind = "class" if isinstance(holder, type) else "module"
    head = [
        f"# `{namespace}`",
        "",
        f":::{{py:{kind}}} {namespace}",
        ":::",
        "",
        docstring_to_markdown(holder.__doc__ or ""),
        "",
    ]
    parts = {title: names for title, names in parts.items() if names}
    if len(parts) == 1:
        (names,) = parts.values()
        return {namespace: "\n".join([*head, *entries(namespace, names)])}
    result = {}
    for title, names in parts.items():
        slug = f"{namespace}-{re.sub(r'[^a-z]+', '-', title.lower()).strip('-')}"
        now = [] if namespace == "flow.Tensor" else [f":::{{py:currentmodule}} {namespace}", ":::", ""]
        result[slug] = "\n".join([f"# `{namespace}`: {title}", "", *now, *entries(namespace, names)])
    return {namespace: "\n".join([*head, "```{toctree}", *result, "```", ""])} | result


@functools.cache
def groups(namespace: str) -> dict[str, str]:
    if namespace != "flow.Tensor":
        return GROUPS.get(namespace, {"": ""})
    homes = sorted({defining_file(namespace, name) for name in public_names(namespace)})
    return {place.rpartition("/")[2].replace("_", " "): f"{place}$" for place in homes}


def group_of(namespace: str, name: str) -> str:
    place = defining_file(namespace, name)
    for title, patterns in groups(namespace).items():
        if any(re.match(pattern, place) for pattern in patterns.split()) or not patterns:
            return title
    raise LookupError(f"{namespace}.{name} of {place} is on no page")


def defining_file(namespace: str, name: str) -> str:
    """The file that defines a name, such as `core/functions/shape`; of a row of a table of methods, with its topic."""
    holder = namespaces()[namespace]
    if isinstance(holder, type):
        owner = next(kind for kind in holder.__mro__ if name in vars(kind))
        module = owner.__module__
        if owner is Forwarded:
            base = name.removesuffix("_")
            topic = next((topic for topic, names in METHODS.items() if base in names.split()), "others in place")
            module = f"{module}/{topic.replace(' ', '_')}"
    else:
        value = getattr(holder, name)
        try:
            path = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
            return path.relative_to(PACKAGE).with_suffix("").as_posix()
        except (TypeError, ValueError):
            module = getattr(value, "__module__", None) or type(value).__module__
    return module.removeprefix("minflow").lstrip(".").replace(".", "/")


def entries(namespace: str, names: list[str]) -> Iterator[str]:
    for name in names:
        yield from entry(namespace, name)


def entry(namespace: str, name: str) -> Iterator[str]:
    """The lines of the entry of one name."""
    full, holder = f"{namespace}.{name}", namespaces()[namespace]
    value = inspect.getattr_static(holder, name) if isinstance(holder, type) else getattr(holder, name)
    value = getattr(value, "__func__", value) if isinstance(holder, type) else value
    first = documented_names().get(id(value), full) if namespace != "flow.Tensor" else full
    kind = kind_of(value, in_class=namespace == "flow.Tensor")
    yield f"::::{{py:{kind}}} {full if isinstance(holder, type) else name}{signature(value, kind)}"
    if first != full:
        yield f"The same as {{py:obj}}`{first}`."
    else:
        yield docstring_to_markdown(
            inspect.getdoc(value) if callable(value) or isinstance(value, property) else value_description(value)
        )
        if kind == "class":
            yield from class_members(value)
    yield from ("::::", "")


def value_description(value: Any) -> str:
    """The entry of a value that is not callable: the docstring of its class if minflow defines it, else its repr."""
    return type(value).__doc__ or "" if type(value).__module__.startswith("minflow") else f"`{value!r}`"


def class_members(kind: type) -> Iterator[str]:
    """Public methods and properties that a class defines itself; inherited ones are listed with their class."""
    for name, it in vars(kind).items():
        it = getattr(it, "__func__", it)
        if name[0] != "_" and name != "forward" and (inspect.isroutine(it) or isinstance(it, property)):
            what = kind_of(it, in_class=True)
            yield from (
                "",
                f":::{{py:{what}}} {name}{signature(it, what)}",
                docstring_to_markdown(inspect.getdoc(it) or ""),
                ":::",
            )


def kind_of(value: Any, in_class: bool) -> str:
    if isinstance(value, type):
        return "class" if not issubclass(value, Exception) else "exception"
    if callable(value):
        return "method" if in_class else "function"
    return "property" if isinstance(value, property) else "attribute" if in_class else "data"


class UnquotedText(str):
    """Text that a signature shows without quotes."""

    __repr__ = str.__str__


def signature(value: Any, kind: str) -> str:
    """`(x, dim: int = 0) -> Tensor`; "" for values that are not called, and for exceptions without one."""
    if kind in ("data", "attribute", "property"):
        return ""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "()" if kind != "exception" else ""
    given = list(found.parameters.values())
    if kind == "method" and given and given[0].name in ("self", "cls"):
        del given[0]
    parameters = [
        one.replace(annotation=annotation_text(one.annotation), default=default_text(one.default)) for one in given
    ]
    text = str(found.replace(parameters=parameters, return_annotation=annotation_text(found.return_annotation)))
    return " ".join(text.split())


def annotation_text(annotation: Any) -> Any:
    return UnquotedText(annotation) if isinstance(annotation, str) else annotation


def default_text(default: Any) -> Any:
    """A default as source code, identical in each build."""
    if default is inspect.Parameter.empty:
        return default
    if callable(default) and hasattr(default, "__name__"):
        return UnquotedText(default.__name__)
    return UnquotedText(re.sub(r"<[^<>]*>", "...", repr(default)))


def docstring_to_markdown(doc: str) -> str:
    """Convert a docstring to Markdown: backticks and indented blocks are code, dashes begin lists, the rest is text."""
    result = []
    for part in re.split(r"\n[ \t]*\n", inspect.cleandoc(doc)):
        lines = part.split("\n")
        if part.lstrip().startswith(">>>") or all(line.startswith("    ") for line in lines):
            result.append(f"```python\n{inspect.cleandoc(part)}\n```")
        elif part.strip():
            result.append("\n".join(line if not line.strip() else escape_markdown(line) for line in lines))
    return "\n\n".join(result)


def escape_markdown(line: str) -> str:
    """Escape a line, except for backticks and a dash that begins a list item."""
    dash = re.match(r"\s*- ", line)
    start = dash[0] if dash else ""
    pieces = re.split(r"(`[^`]+`)", line.removeprefix(start).strip())
    pieces[::2] = [re.sub(r"([\\`*_<>\[\]{}#$|~^&=+%:-])", r"\\\1", piece) for piece in pieces[::2]]
    return start + re.sub(r"^(\d+)([.)])", r"\1\\\2", "".join(pieces))
