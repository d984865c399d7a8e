"""The kernels that run in eager code, with the platform of each; `graph.plan` lists those of a graph.

Read next: `../core/kernels.py`, which selects them; `../views/text/plan.py`, their table.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.kernels import observed
from ..core.spec import spec_of

if TYPE_CHECKING:
    from ..views.text.reports import Report


def kernels(function: Callable, /, *args: Any, **kwargs: Any) -> Report:
    """Call a function in eager mode, and list the kernels that ran with the platform of each.

        flow.kernels(model, x)
        flow.kernels(lambda: loss_fn(model(x), y).backward())

    The platform is "compiled" (kernels compiled for this processor), "fused" (the parts of a composite op as one
    compiled loop), "numpy" (fast NumPy code) or "reference" (the code in the definition of the op); the first one whose
    kernel supports the arrays runs. Calls of an op with the same shapes are one row. Views run no kernel. The kernels
    of an nn.Graph are in `graph.plan`, and not listed here.

    A table in a notebook, text in a terminal; `.record.calls` has the rows. The result of the function is discarded.
    """
    from ..views.records.reports import KernelCall, KernelListing
    from ..views.text.reports import Report

    counts: Counter[tuple] = Counter()
    thread = threading.get_ident()

    def observe(op: Any, platform: str, arrays: tuple, result: Any) -> None:
        if threading.get_ident() == thread and not op.is_view:
            outputs = result if op.many else (result,)
            counts[op.name, platform, tuple(map(text_of, arrays)), tuple(map(text_of, outputs))] += 1

    with observed(observe):
        function(*args, **kwargs)
    calls = [KernelCall(op, platform, ins, outs, n) for (op, platform, ins, outs), n in counts.items()]
    name = getattr(function, "__name__", type(function).__name__)
    return Report(KernelListing(f"kernels of {name}", tuple(calls)))


def text_of(x: Any) -> str:
    """The spec of an array, or a number."""
    return str(spec_of(x)) if hasattr(x, "dtype") else repr(x)
