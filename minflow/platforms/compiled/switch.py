"""Registry of compiled kernels: which ops have one, when they replace NumPy's, and when they are compiled.

Kernel modules and numba are imported on first use. Read next: `runtime/tasks.py`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.fusion import FUSION, Setting, attention, gemm_epilogue, nchw16c, norms
from ...compiler.fusion.elementwise_fusion import CLUSTERS
from ...core.base.errors import MinflowWarning, MissingDependencyError
from ...core.base.locks import exclusive_lock
from ...core.base.optional import install_command
from ...core.op import Op
from ...core.ops import (
    activation,
    conv,
    elementwise,
    gru,
    index,
    lstm,
    norm,
    pool,
    random,
    reduce,
    rnn,
    shape,
    softmax,
    sort,
    update,
)
from ...core.source_location import here

STEPS: dict[Op, str] = {
    op: module
    for module, ops in {
        "attention": (attention.attend, attention.attend_grad),
        "nchw16c_conv": (
            nchw16c.to_blocks,
            nchw16c.from_blocks,
            nchw16c.blocks_conv2d,
            nchw16c.blocks_conv2d_input_grad,
            nchw16c.blocks_conv2d_weight_grad,
            nchw16c.blocks_channel_sum,
        ),
        "gemm": (gemm_epilogue.linear, gemm_epilogue.sgd_linear, gemm_epilogue.sgd_linear_shown),
        "nchw16c_norm": (nchw16c.blocks_batch_norm, nchw16c.blocks_batch_norm_grad),
        "nchw16c_pool": (
            nchw16c.blocks_max_pool2d,
            nchw16c.blocks_max_pool2d_grad,
            nchw16c.blocks_avg_pool2d,
            nchw16c.blocks_avg_pool2d_grad,
            nchw16c.blocks_average,
            nchw16c.blocks_average_grad,
        ),
        "nchw16c_conv_pool": (nchw16c.blocks_conv2d_max_pool2d, nchw16c.blocks_max_pool2d_weight_grad),
        "nchw16c_resample": (nchw16c.blocks_resample, nchw16c.blocks_resample_grad),
        "nchw_conv": (conv.conv2d, conv.conv2d_input_grad, conv.conv2d_weight_grad),
        "norm": (norm.batch_norm, norm.batch_norm_grad),
        "row_norms": (norms.layer_norm, norms.layer_norm_grad, norms.group_norm, norms.group_norm_grad),
        "data_movement": (
            shape.clone,
            shape.cat,
            shape.pad,
            index.take,
            index.gather,
            index.scatter_add,
            reduce.cumsum,
            index.tril,
            index.triu,
            sort.topk,
        ),
        "pool": (pool.max_pool2d, pool.max_pool2d_grad, pool.adaptive_avg_pool2d),
        "elementwise_fusion": CLUSTERS,
        "elementwise": (
            elementwise.add,
            elementwise.sub,
            elementwise.mul,
            elementwise.erf,
            elementwise.relu,
            elementwise.relu_grad,
            activation.relu6,
            activation.relu6_grad,
            shape.sum_to,
        ),
        "cross_entropy": (softmax.softmax_cross_entropy, softmax.softmax_cross_entropy_grad),
        "dropout": (random.dropout,),
        "recurrent": (rnn.rnn, rnn.rnn_grad, lstm.lstm, lstm.lstm_grad, gru.gru, gru.gru_grad),
        "updates": (update.sgd, update.sgd_momentum, update.adam),
    }.items()
    for op in ops
}  # op -> the module with the builder of its name
ONLY_IN_PLANS = (
    "elementwise",
    "data_movement",
    "dropout",
    "updates",
)  # NumPy's kernels have the same bits and less overhead
ONCE = {elementwise.add, elementwise.sub, elementwise.mul}  # NumPy computes these in one call
LEAST = 1 << 12  # elements
# Ops of ONLY_IN_PLANS with a compiled kernel in eager mode too: for the arrays for which this is True.
ALSO_EAGER: dict[Op, Callable[..., bool] | None] = {
    elementwise.erf: lambda x: x.size >= LEAST,
    activation.relu6_grad: lambda x, y: np.size(x) >= LEAST,
    # A transpose.
    shape.clone: lambda x: x.__class__ is np.ndarray and x.size >= LEAST and x.itemsize in x.strides[:-1],
    **dict.fromkeys((index.gather, index.scatter_add, sort.topk)),
    reduce.cumsum: lambda x: x.size >= LEAST,
    **dict.fromkeys(
        (elementwise.add, elementwise.sub, elementwise.mul),
        lambda x, y: (
            x.__class__ is y.__class__ is np.ndarray
            and x.ndim > 2
            and x.size >= LEAST
            and y.size == x.shape[1]
            and not 4 < x[0, 0].size < 256
            and x[0, 0].size > 1
        ),
    ),  # NumPy is as fast on planes of other sizes
}
PLAIN: dict[Op, Callable] = {}  # the NumPy kernels that are replaced
SINCE, UNTIL = "0.61", "0.68"  # versions of numba that compile all kernels
LATE = 1.0  # seconds after which a message about compiling is printed
LATER = """minflow: kernels for this processor are compiled in the background, once per installation (half a minute).
Graphs of this process run by NumPy's; those of processes that start afterwards are faster. machine.use() waits."""


def used() -> bool:
    """True if compiled kernels also run outside of graphs."""
    return Setting.eager


def use(on: bool = True, without: Sequence[str] = (), eager: bool = True) -> None:
    """Switch to compiled kernels, or back to NumPy's. Graphs that are built keep their kernels.

    By default, only large graphs and jobs use compiled kernels.

    without: names of passes of `minflow.platforms.compiled.passes()` to leave out of new graphs.  eager: True to use
    compiled kernels outside of graphs, too.

    The first call after an installation compiles, which takes some seconds. Raises MissingDependencyError without
    numba.
    """
    if on:
        warmup()
    for op, plain in PLAIN.items():
        op.kernel, op.steps = plain, None
    PLAIN.clear()
    FUSION.clear()
    Setting.eager, Setting.graphs = False, "none"
    if on:
        bring_in(eager)
        FUSION[:] = [step for step in passes() if step.__name__ not in without]
        Setting.eager, Setting.graphs = eager, "all"


def bring_in(eager: bool) -> None:
    """Replace NumPy's kernels by compiled ones."""
    from .runtime.eager import by_steps

    for op, module in STEPS.items():
        PLAIN[op] = at_once = op.kernel
        builder = builder_of(op)
        if module not in ONLY_IN_PLANS or op in ALSO_EAGER:
            at_once = either(partial(by_steps, op, builder), op.kernel, ALSO_EAGER.get(op))
        steady = 1 << 16 if module == "data_movement" else 1 << 20  # these do nearly nothing but copy
        # An exact graph has the bits of eager: the compiled erf differs, so use it for the same arrays.
        fits = ALSO_EAGER[op] if eager and op is elementwise.erf else None
        op.steps = InPlans(builder, at_once, PLAIN[op] if op in ONCE else None, steady, fits)
        if eager:
            op.kernel = at_once


def builder_of(op: Op) -> Callable:
    return getattr(importlib.import_module(f".kernels.{STEPS[op]}", __package__), op.name)


class InPlans:
    """Lowers an op to compiled tasks for a plan.

    Called with arrays at fixed addresses; returns None if there are no tasks for them.  at_once: kernel for arrays that
    are new at each call.  once: NumPy's kernel, if that is one call.  steady: bytes up to which new arrays are copied
    to fixed addresses: cheaper than to interrupt a merged call.  fits: True for the arrays that it takes.
    """

    def __init__(
        self,
        builder: Callable,
        at_once: Callable,
        once: Callable | None = None,
        steady: int = 1 << 20,
        fits: Callable[..., bool] | None = None,
    ):
        self.builder, self.at_once, self.once, self.steady, self.fits = builder, at_once, once, steady, fits

    def __call__(self, arrays: Sequence, outs: Sequence[np.ndarray], **attrs: Any) -> Any:
        from .runtime.tasks import Checked, prepared

        if self.fits is not None and not self.fits(*arrays):
            return None
        found = prepared(self.builder, arrays, outs, **attrs)
        if found and any([step.refused is not None for step in found.steps]):
            return Checked(found, partial(self.at_once, *arrays, **attrs, out=outs if len(outs) > 1 else outs[0]))
        return found


def by_default() -> bool:
    """Load kernels from the compile cache, for graphs only; if it is empty, start a process that compiles them."""
    try:
        from . import compile_cache
    except (ImportError, OSError):  # llvmlite is missing, or its library is for another system
        warn_of_numpy()
        return False
    if not compile_cache.tested():
        return False
    if compile_cache.load():
        bring_in(eager=False)
        FUSION[:] = passes()
        return True
    if importlib.util.find_spec("numba") is None:
        warn_of_numpy()
    elif not known_numba():
        warnings.warn(
            f"numba {metadata.version('numba')} is not one of those that compiled the kernels for large "
            f"graphs, {SINCE} to {UNTIL}: NumPy's run instead. Install one of those; minflow.platforms.compiled.use() "
            "tries this one, MINFLOW_MACHINE=0 does without",
            MinflowWarning,
            stacklevel=2,
        )
    elif compile_cache.folder() is not None and (other := another("switch.compile_all(patient=True)")) is not None:
        other.returncode = 0  # suppress the warning that the child still runs; nothing waits for it
        print(LATER, file=sys.stderr, flush=True)
    return False


def known_numba() -> bool:
    """True if this version of numba has been tested: jit.py depends on undocumented parts of it."""
    try:
        found = tuple(map(int, metadata.version("numba").split(".")[:2]))
    except ValueError:  # a development version
        return False
    return tuple(map(int, SINCE.split("."))) <= found <= tuple(map(int, UNTIL.split(".")))


def warn_of_numpy() -> None:
    warnings.warn(
        "numba is not installed, which compiles kernels for large graphs: they run by NumPy's. "
        f"Try: {install_command('numba')}, or MINFLOW_MACHINE=0, which does without",
        MinflowWarning,
        stacklevel=2,
    )


def passes() -> tuple[Callable, ...]:
    """The passes of graphs that use compiled kernels, in order."""
    from ...compiler.fusion.attention import attention
    from ...compiler.fusion.copy_elision import copies
    from ...compiler.fusion.elementwise_fusion import clusters
    from ...compiler.fusion.gemm_epilogue import dense
    from ...compiler.fusion.layout import layout
    from ...compiler.fusion.norms import norms

    return copies, norms, layout, attention, dense, clusters


def either(compiled: Callable, plain: Callable, pays: Callable[..., bool] | None = None) -> Callable:
    """Return a kernel that tries the compiled one if `pays(*arrays)`, and falls back to the plain one."""

    def run(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
        found = None if pays and not pays(*arrays) else compiled(*arrays, **attrs, out=out)
        return plain(*arrays, **attrs, out=out) if found is None else found

    return run


def warmup() -> float:
    """Compile all kernels, or load those that an earlier process has compiled; return the seconds that it took."""
    if any([importlib.util.find_spec(name) is None for name in ("numba", "llvmlite")]):
        raise MissingDependencyError(
            "numba is not installed, which compiles the machine's kernels", where=here(), hint=install_command("numba")
        )
    begun = time.perf_counter()
    compile_all()
    return time.perf_counter() - begun


def compile_all(patient: bool = False) -> None:
    """Compile all kernels, or load them from the cache. Another process compiles half of them.

    patient: run at low priority, and leave if another process is already compiling.
    """
    from . import compile_cache

    if compile_cache.load() and not patient:
        import_all()
        return
    if patient and hasattr(os, "nice"):
        os.nice(10)
    with (
        exclusive_lock(compile_cache.folder(), wait=not patient)
        if compile_cache.folder()
        else nullcontext(True) as free
    ):
        if free and compile_cache.load():  # another process has compiled them meanwhile
            import_all()
        elif free:
            compile_halves(quiet=patient)


def compile_halves(quiet: bool) -> None:
    """Compile one part here, and the other in another process."""
    notice = threading.Timer(
        LATE,
        print,
        ["minflow: compiling kernels for this processor, once per installation ..."],
        {"file": sys.stderr, "flush": True},
    )
    notice.daemon = True
    if not quiet:
        notice.start()
    try:
        from . import compile_cache

        theirs, ours = compile_cache.PARTS
        other = another(f"switch.compile_part({theirs})")
        compile_part(ours)
        if other is not None:
            other.wait()
        if not compile_cache.load_part(theirs):  # if nothing can be saved, each process compiles everything
            compile_part(theirs)
    finally:
        notice.cancel()


def another(code: str) -> subprocess.Popen | None:
    """Start a process that runs `code` and may outlive this one; None if that is impossible."""
    path = str(Path(__file__).parents[3])
    try:
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {path!r}); from minflow.platforms.compiled import switch; {code}",
            ],
            env={**os.environ, "MINFLOW_MACHINE": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, TypeError):  # out of memory, or an embedded Python whose executable is unknown
        return None


def import_all() -> None:
    """Import all modules with compiled functions."""
    for module in [*(f"kernels.{module}" for module in dict.fromkeys(STEPS.values())), "runtime.recorder"]:
        importlib.import_module(f".{module}", __package__)


def compile_part(part: int) -> None:
    """Compile one part in this process."""
    from .codegen import jit

    import_all()
    jit.compile_part(part)


def by_environment() -> None:
    """Call `use()` when minflow is imported with MINFLOW_MACHINE set."""
    try:
        use()
    except MissingDependencyError as error:
        warnings.warn(f"MINFLOW_MACHINE is set, but {error.what}: NumPy's kernels run", MinflowWarning, stacklevel=2)
