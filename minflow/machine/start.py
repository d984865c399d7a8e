"""Switched on and off: which ops have a compiled kernel, and when it is compiled."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.fusion import FUSION, blocks, dense
from ..compiler.fusion.clusters import CLUSTERS
from ..core.base.errors import MinflowWarning, MissingDependencyError
from ..core.op import Op, kernel
from ..core.ops import activation, conv, elementwise, gru, lstm, norm, pool, random, rnn, shape, softmax, update
from ..core.spec import spec_of
from ..core.where import here

STEPS: dict[Op, str] = {op: module for module, ops in {
    "blocks_conv": (blocks.to_blocks, blocks.from_blocks, blocks.blocks_conv2d, blocks.blocks_conv2d_input_grad,
                    blocks.blocks_conv2d_weight_grad, blocks.blocks_channel_sum),
    "gemm": (dense.linear, dense.sgd_linear, dense.sgd_linear_shown),
    "blocks_norm": (blocks.blocks_batch_norm, blocks.blocks_batch_norm_grad),
    "blocks_pool": (blocks.blocks_max_pool2d, blocks.blocks_max_pool2d_grad, blocks.blocks_avg_pool2d,
                    blocks.blocks_avg_pool2d_grad, blocks.blocks_average, blocks.blocks_average_grad),
    "convolutions": (conv.conv2d, conv.conv2d_input_grad, conv.conv2d_weight_grad),
    "norm": (norm.batch_norm, norm.batch_norm_grad),
    "pool": (pool.max_pool2d, pool.max_pool2d_grad),
    "clusters": CLUSTERS,
    "elementwise": (elementwise.add, elementwise.sub, elementwise.mul, elementwise.erf, elementwise.relu,
                    elementwise.relu_grad, activation.relu6, activation.relu6_grad, shape.clone, shape.sum_to),
    "cross_entropy": (softmax.softmax_cross_entropy, softmax.softmax_cross_entropy_grad),
    "dropout": (random.dropout,),
    "recurrent": (rnn.rnn, rnn.rnn_grad, lstm.lstm, lstm.lstm_grad, gru.gru, gru.gru_grad),
    "updates": (update.sgd, update.sgd_momentum, update.adam),
}.items() for op in ops}  # op -> the module in which a builder of its name makes its steps
ONLY_IN_PLANS = ("elementwise", "dropout", "updates")  # NumPy has the same bits, and costs less for one call
LARGE = {elementwise.erf, activation.relu6_grad}  # in eager, too, from LEAST numbers on
LEAST = 1 << 12
PLAIN: dict[Op, Callable] = {}  # NumPy's kernels, while the machine is used
LATE = 1.0  # seconds after which a compilation is spoken of


def used() -> bool:
    """Do compiled kernels run where they fit?"""
    return bool(PLAIN)


def use(on: bool = True, without: Sequence[str] = ()) -> None:
    """Run compiled kernels from now on, or NumPy's again. Graphs that are built keep what they were built with.

    without: names of passes of `minflow.machine.passes()` that graphs are to be built without.

    At the first time after an installation it compiles, which takes some seconds. Raises MissingDependencyError without
    numba.
    """
    if on and not used():
        compiled_kernels()
    FUSION[:] = [step for step in passes() if on and step.__name__ not in without]
    if not on:
        for op, plain in PLAIN.items():
            op.kernel, op.steps = plain, None
        PLAIN.clear()


def compiled_kernels() -> None:
    """Put them before NumPy's."""
    warmup()
    from .steps import prepared

    for op, module in STEPS.items():
        PLAIN[op] = op.kernel
        builder = builder_of(op)
        op.steps = functools.partial(prepared, builder)
        if module not in ONLY_IN_PLANS or op in LARGE:
            kernel(op, either(functools.partial(by_steps, op, builder), op.kernel, LEAST if op in LARGE else 0))


def builder_of(op: Op) -> Callable:
    return getattr(importlib.import_module(f".{STEPS[op]}", __package__), op.name)


def passes() -> tuple[Callable, ...]:
    """The passes that graphs are built with while the machine is used, in their order."""
    from ..compiler.fusion.clusters import clusters
    from ..compiler.fusion.dense import dense
    from ..compiler.fusion.layout import layout

    return layout, dense, clusters


def either(compiled: Callable, plain: Callable, least: int = 0) -> Callable:
    """A kernel that is compiled where that fits, of so many numbers."""

    def run(xp: Any, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
        found = None if least and arrays[0].size < least else compiled(*arrays, **attrs, out=out)
        return plain(*arrays, **attrs, out=out) if found is None else found

    return run


def by_steps(op: Op, builder: Callable, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
    """A kernel made of an op's steps; None where they do not fit."""
    from .steps import run_at_once

    if out is None:
        specs = op.infer(*[spec_of(a) if isinstance(a, np.ndarray) else a for a in arrays], **attrs)
        out = [np.empty(s.shape, s.np) for s in (specs if op.many else (specs,))]
        out = out if op.many else out[0]
    return out if run_at_once(builder, arrays, out if op.many else [out], **attrs) else None


def warmup() -> float:
    """Compile all kernels, or read what an earlier process has compiled; the seconds that it took."""
    if importlib.util.find_spec("numba") is None:
        raise MissingDependencyError("numba is not installed, which compiles the machine's kernels",
                                     where=here(), hint='pip install "minflow[machine]"')
    begun = time.perf_counter()
    notice = threading.Timer(LATE, print, ["minflow: compiling kernels for this processor, once per installation ..."],
                           {"file": sys.stderr, "flush": True})
    notice.daemon = True
    notice.start()
    try:
        compile_all()
    finally:
        notice.cancel()
    return time.perf_counter() - begun


def compile_all() -> None:
    """Compile each kernel, or read what was compiled. Where nothing was, another process compiles half of them."""
    from . import jit, kept

    import_all()
    if not jit.COMPILES or kept.load():
        return
    code = f"from minflow.machine import start; start.compile_part({kept.PARTS[1]})"
    other = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "MINFLOW_MACHINE": "0"},
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    jit.compile_part(kept.PARTS[0])
    other.wait()
    if not kept.load_part(kept.PARTS[1]):  # where nothing can be kept, each process compiles all of it
        jit.compile_part(kept.PARTS[1])


def import_all() -> None:
    """The modules with what is compiled."""
    for module in [*dict.fromkeys(STEPS.values()), "recorder"]:
        importlib.import_module(f".{module}", __package__)


def compile_part(part: int) -> None:
    """In a process of its own."""
    from . import jit

    import_all()
    jit.compile_part(part)


def by_environment() -> None:
    """At the import of minflow, where MINFLOW_MACHINE asks for it."""
    if os.environ.get("MINFLOW_MACHINE", "0") in ("", "0"):
        return
    try:
        use()
    except MissingDependencyError as error:
        warnings.warn(f"MINFLOW_MACHINE is set, but {error.what}: NumPy's kernels run", MinflowWarning, stacklevel=2)
