"""`python -m tests.names.collect`: record the public names of the installed PyTorch in torch.tsv and torch-modules.tsv.

A line is the page of the name and the name: the exports of `nn`, `nn.functional`, `nn.init`, `nn.utils`, `optim`,
`lr_scheduler`, `utils.data`, `linalg`, `fft` and `special`, and the functions and methods listed by `torch.overrides`.
A line of torch-modules.tsv is a public module and all names that it exports.
"""

from __future__ import annotations

import inspect
from pathlib import Path

FILE = Path(__file__).parent / "torch.tsv"
MODULES = FILE.with_name("torch-modules.tsv")
PAGES = {
    "nn": "nn.modules",
    **{
        page: page
        for page in (
            "nn.functional",
            "nn.init",
            "nn.utils",
            "nn.utils.rnn",
            "optim",
            "optim.lr_scheduler",
            "utils.data",
            "linalg",
            "fft",
            "special",
            "autograd.functional",
        )
    },
}  # page -> the module that lists it


def exported(module) -> list[str]:
    """`__all__`, or the functions defined in the module."""
    own = [name for name, it in vars(module).items() if inspect.isroutine(it)]
    return [
        name
        for name in getattr(module, "__all__", own)
        if name[:1] != "_" and not inspect.ismodule(getattr(module, name, None))
    ]


def collect() -> list[tuple[str, str]]:
    import importlib

    import torch

    rows = {
        (page, f"{page}.{name}")
        for page, module in PAGES.items()
        for name in exported(importlib.import_module(f"torch.{module}"))
    }
    listed = torch.overrides.get_overridable_functions()
    for page, holder, start in (
        ("torch", torch, ""),
        ("torch", torch.functional, ""),
        ("Tensor", torch.Tensor, "Tensor."),
    ):
        names = {f.__name__ for f in listed[holder]} & set(dir(holder))
        rows |= {(page, start + name) for name in names if name[:1] != "_"}
    return sorted(rows)


def collect_modules() -> list[tuple[str, str]]:
    """(module, its names); the names of a module that cannot be imported here are unknown."""
    import importlib
    import pkgutil

    import torch

    found = [info.name for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None)]
    rows = []
    for path in ["torch", *sorted(found)]:
        if "._" in path:
            continue
        try:
            module = importlib.import_module(path)
        except ImportError:
            rows.append((path, ""))
            continue
        own = [
            name
            for name, it in vars(module).items()
            if (inspect.isroutine(it) or inspect.isclass(it)) and getattr(it, "__module__", "") == path
        ]
        names = [
            name
            for name in getattr(module, "__all__", own)
            if path != "torch"
            or name in ("Event", "Generator", "Size", "Stream", "Tensor")
            or not hasattr(torch._C, name)
            or not name[:1].isupper()  # classes of its compiler
        ]
        rows.append((path, " ".join(sorted(name for name in names if name[:1] != "_"))))
    return rows


if __name__ == "__main__":
    FILE.write_text("".join(f"{page}\t{name}\n" for page, name in collect()), encoding="utf-8")
    MODULES.write_text("".join(f"{path}\t{names}\n" for path, names in collect_modules()), encoding="utf-8")
