"""Policy of compiled kernels: which graphs use them, and which calls of eager code; by default the large ones.

A process chooses once, when its first large graph or call needs kernels, and nothing computed before depends on the
choice. It loads the compiled kernels; if there are none yet, another process begins to compile them, and this one keeps
NumPy's until it ends, so that all its results have the same bits. Only `use` changes that. Read next: `switch.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ...compiler.passes.decomposition import decomposition_of
from ...compiler.target import Target
from ...core.base.locks import new_lock
from ...core.ir import Graph
from ...core.kernels import EAGER_PLATFORMS, HOST_PLATFORMS, clear_caches
from ...core.spec import cpu
from .config import EAGER_COMPILED, PLATFORMS, CompiledKernelConfig

LARGE = 1 << 20  # bytes of all values of a graph; a smaller one runs in some dozen microseconds
CHOICE = new_lock()  # held while this process chooses its kernels
LOADERS: set[threading.Thread] = set()  # threads that choose


def target(graphs: Iterable[Graph], exact: bool) -> Target:
    """Choose the target of the graphs of a job or an nn.Graph. exact: True for the bits of eager code."""
    which, graphs = CompiledKernelConfig.graphs, list(graphs)
    if not exact and on_cpu(graphs) and (which == "all" or (which == "large" and weight(graphs) >= LARGE and ready())):
        return Target(PLATFORMS, CompiledKernelConfig.passes)
    return Target(EAGER_PLATFORMS["cpu"])


def on_cpu(graphs: Iterable[Graph]) -> bool:
    """True if all nodes compute on the CPU."""
    return all([spec.device is cpu for graph in graphs for node in graph.nodes for spec in node.out_specs])


def eager_platforms() -> tuple[str, ...]:
    """Platforms of large calls of eager code, unless a program has called `use`."""
    return EAGER_COMPILED if CompiledKernelConfig.graphs == "large" and ready() else HOST_PLATFORMS


def weight(graphs: Iterable[Graph]) -> int:
    """Bytes of all values that the nodes compute; of a composite op, those of its parts."""
    nodes = [node for graph in graphs for node in graph.nodes]
    parts = [part for node in nodes for part in (decomposition_of(node).nodes if node.op.composite else [node])]
    return sum([spec.nbytes for part in parts for spec in part.out_specs])


def ready() -> bool:
    """True if this process has the compiled kernels. The first call chooses, for all threads and for good.

    A thread of its own loads them: Ctrl-C does not interrupt it, a signal handler may wait for it, and its stack is
    empty, whatever calls this function.
    """
    if CompiledKernelConfig.unavailable is None and threading.current_thread() not in LOADERS:
        errors: list[BaseException] = []
        loader = threading.Thread(target=choose, args=(errors,), name="minflow-kernels")
        try:
            loader.start()
        except RuntimeError:  # the system has no more threads, or this process is about to end
            choose(errors)
        else:
            loader.join()
        if errors:
            raise errors[0]
    return CompiledKernelConfig.unavailable == ""


def choose(errors: list[BaseException]) -> None:
    """Choose the kernels of this process, once; append the error if that fails."""
    LOADERS.add(threading.current_thread())
    try:
        with CHOICE:
            if CompiledKernelConfig.unavailable is None:
                from .switch import load_by_default

                CompiledKernelConfig.unavailable = load_by_default()
                clear_caches()
    except BaseException as error:
        errors.append(error)
    finally:
        LOADERS.discard(threading.current_thread())


def why_numpy() -> str:
    """Why large graphs and calls run NumPy's kernels; "" if they do not, or if there has been none yet."""
    return CompiledKernelConfig.unavailable or ""
