"""Switched on and off: which ops have a compiled kernel, and when it is compiled."""

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
}  # op -> the module in which a builder of its name makes its steps
ONLY_IN_PLANS = (
    "elementwise",
    "data_movement",
    "dropout",
    "updates",
)  # NumPy has the same bits, and costs less for one call
ONCE = {elementwise.add, elementwise.sub, elementwise.mul}  # one call of NumPy
LEAST = 1 << 12  # numbers
ALSO_EAGER: dict[Op, Callable[..., bool] | None] = {  # of these, where eager is slower for these arrays
    elementwise.erf: lambda x: x.size >= LEAST,
    activation.relu6_grad: lambda x, y: np.size(x) >= LEAST,
    shape.clone: lambda x: x.__class__ is np.ndarray and x.size >= LEAST and x.itemsize in x.strides[:-1],  # turned
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
    ),  # NumPy goes along planes of other sizes as quickly
}
PLAIN: dict[Op, Callable] = {}  # NumPy's kernels, while the machine is used
SINCE, UNTIL = "0.61", "0.68"  # of numba, whose versions have compiled everything
LATE = 1.0  # seconds after which a compilation is spoken of
LATER = """minflow: kernels for this processor are compiled in the background, once per installation (half a minute).
Graphs of this process run by NumPy's; those of processes that start afterwards are faster. machine.use() waits."""


def used() -> bool:
    """Do compiled kernels run where they fit, also outside of graphs?"""
    return Setting.eager


def use(on: bool = True, without: Sequence[str] = (), eager: bool = True) -> None:
    """Run compiled kernels from now on, or NumPy's again. Graphs that are built keep what they were built with.

    Until a program calls this, graphs and jobs that are large run them, and nothing else does.

    without: names of passes of `minflow.platforms.compiled.passes()` that graphs are to be built without.  eager: also
    outside of graphs.

    At the first time after an installation it compiles, which takes some seconds. Raises MissingDependencyError without
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
    """Put the kernels before NumPy's."""
    from .runtime.eager import by_steps

    for op, module in STEPS.items():
        PLAIN[op] = at_once = op.kernel
        builder = builder_of(op)
        if module not in ONLY_IN_PLANS or op in ALSO_EAGER:
            at_once = either(partial(by_steps, op, builder), op.kernel, ALSO_EAGER.get(op))
        steady = 1 << 16 if module == "data_movement" else 1 << 20  # to copy is nearly all that those do
        # an exact graph has the bits of eager: of erf, whose kernels differ in them, for the same arrays
        fits = ALSO_EAGER[op] if eager and op is elementwise.erf else None
        op.steps = InPlans(builder, at_once, PLAIN[op] if op in ONCE else None, steady, fits)
        if eager:
            op.kernel = at_once


def builder_of(op: Op) -> Callable:
    return getattr(importlib.import_module(f".kernels.{STEPS[op]}", __package__), op.name)


class InPlans:
    """What a plan takes of an op. It is called for the steps of arrays that stay where they are, and gives None where
    they do not fit.  at_once: a kernel, for arrays that are new at each call.  once: that of NumPy, if it is one call.
    steady: bytes that are copied, where they are new at each call: that costs less than to leave a call of many nodes.
    fits: True for the arrays that it takes.
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
    """Have the kernels, for graphs alone, where they are compiled. Where they are not, another process begins to."""
    try:
        from . import compile_cache
    except (ImportError, OSError):  # llvmlite is not there, or its library is for another system
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
        other.returncode = 0  # nobody waits for it, or is to be warned that it runs on
        print(LATER, file=sys.stderr, flush=True)
    return False


def known_numba() -> bool:
    """jit.py uses more of numba than its documentation has: another version may have changed that."""
    try:
        found = tuple(map(int, metadata.version("numba").split(".")[:2]))
    except ValueError:  # one that is in development
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
    """The passes that graphs are built with while the machine is used, in their order."""
    from ...compiler.fusion.attention import attention
    from ...compiler.fusion.copy_elision import copies
    from ...compiler.fusion.elementwise_fusion import clusters
    from ...compiler.fusion.gemm_epilogue import dense
    from ...compiler.fusion.layout import layout
    from ...compiler.fusion.norms import norms

    return copies, norms, layout, attention, dense, clusters


def either(compiled: Callable, plain: Callable, pays: Callable[..., bool] | None = None) -> Callable:
    """A kernel that is compiled where that fits, and pays for these arrays."""

    def run(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
        found = None if pays and not pays(*arrays) else compiled(*arrays, **attrs, out=out)
        return plain(*arrays, **attrs, out=out) if found is None else found

    return run


def warmup() -> float:
    """Compile all kernels, or read what an earlier process has compiled; the seconds that it took."""
    if any([importlib.util.find_spec(name) is None for name in ("numba", "llvmlite")]):
        raise MissingDependencyError(
            "numba is not installed, which compiles the machine's kernels", where=here(), hint=install_command("numba")
        )
    begun = time.perf_counter()
    compile_all()
    return time.perf_counter() - begun


def compile_all(patient: bool = False) -> None:
    """Compile each kernel, or read what was compiled. Where nothing was, another process compiles half of them.

    patient: other programs go first, and where one of them does it already nothing is left to do.
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
        if free and compile_cache.load():  # meanwhile, by another process
            import_all()
        elif free:
            compile_halves(quiet=patient)


def compile_halves(quiet: bool) -> None:
    """Here, and in another process."""
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
        if not compile_cache.load_part(theirs):  # where nothing can be kept, each process compiles all of it
            compile_part(theirs)
    finally:
        notice.cancel()


def another(code: str) -> subprocess.Popen | None:
    """A process that does that for this module, also after this one has ended; None where there can be none."""
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
    except (OSError, TypeError):  # no memory for one, or a program that holds Python and does not say where it is
        return None


def import_all() -> None:
    """The modules with what is compiled."""
    for module in [*(f"kernels.{module}" for module in dict.fromkeys(STEPS.values())), "runtime.recorder"]:
        importlib.import_module(f".{module}", __package__)


def compile_part(part: int) -> None:
    """In this process."""
    from .codegen import jit

    import_all()
    jit.compile_part(part)


def by_environment() -> None:
    """At the import of minflow, where MINFLOW_MACHINE asks for it."""
    try:
        use()
    except MissingDependencyError as error:
        warnings.warn(f"MINFLOW_MACHINE is set, but {error.what}: NumPy's kernels run", MinflowWarning, stacklevel=2)
