"""`python -m tests.names.collect`: record the public names of the installed PyTorch in torch.tsv.

A line is the page of the name and the name: the exports of `nn`, `nn.functional`, `nn.init`, `nn.utils`, `optim`,
`lr_scheduler`, `utils.data`, `linalg`, `fft` and `special`, and the functions and methods listed by `torch.overrides`.
"""

from __future__ import annotations

import inspect
from pathlib import Path

FILE = Path(__file__).parent / "torch.tsv"
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


if __name__ == "__main__":
    FILE.write_text("".join(f"{page}\t{name}\n" for page, name in collect()), encoding="utf-8")
