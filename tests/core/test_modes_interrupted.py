"""Ctrl-C at each line of the contexts that change a mode, and of calls that change it temporarily: the mode is
restored.
"""

import gc
import linecache
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow import amp, autograd, func, nn
from minflow.compiler import executor
from minflow.core import autograd as engine, mode as modes, spec
from minflow.core.functions import arguments
from minflow.core.grad import modes as grad_modes
from minflow.core.host import float_warnings
from minflow.core.random import SAMPLE_GENERATOR
from minflow.core.spec import DEFAULT_DEVICES
from minflow.job import scope as job_scope
from minflow.job.legacy import op_name
from minflow.nn import module as modules
from minflow.optim import optimizer as optimizers
from minflow.utils.data import fetch
from tests.interrupts import Interrupter

FILES = {
    part.__file__
    for part in (
        amp,
        func,
        spec,
        executor,
        engine,
        modes,
        float_warnings,
        arguments,
        grad_modes,
        job_scope,
        op_name,
        modules,
        optimizers,
        fetch,
    )
}
FILES.add(str(Path(__file__)))
INTERRUPTS = str(Path(modes.__file__).parent / "base" / "interrupts.py")


def around(make):
    """Enter and leave the context, nested in itself if it is reentrant."""

    def call():
        context = make()
        with context:
            flow.ones(1)
        with make(), make():
            pass

    return call


def training():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    optimizer = flow.optim.Adam(model.parameters())

    def call():
        optimizer.zero_grad()
        model(flow.ones(1, 2)).sum().backward()
        optimizer.step()

    return call


@flow.no_grad()
def decorated():
    return flow.ones(1)


CALLS = {
    "no_grad": around(flow.no_grad),
    "enable_grad": around(flow.enable_grad),
    "set_grad_enabled": around(lambda: flow.set_grad_enabled(not flow.is_grad_enabled())),
    "inference_mode": around(flow.inference_mode),
    "detect_anomaly": around(autograd.detect_anomaly),
    "set_detect_anomaly": around(lambda: autograd.set_detect_anomaly(True)),
    "autocast": around(lambda: flow.autocast("cpu")),
    "device": around(lambda: flow.device("cpu")),
    "using": around(lambda: modes.using(modes.MODE.get().replace(scope="inside"))),
    "silent": around(float_warnings.silent),
    "collector_waiting": around(executor.collector_waiting),
    "placement": around(lambda: job_scope.Placement("cpu", "0:0")),
    "namespace": around(lambda: job_scope.Namespace("inside")),
    "the numbers of a sample": around(lambda: fetch.random_scope(1, 2)),
    "view": around(lambda: job_scope.View("mirrored")),
    "a decorated function": decorated,
    "func.grad": lambda: func.grad(lambda x: (x * x).sum())(flow.ones(2)),
    "a step of training": training(),
    "gelu, of several operations": lambda: nn.functional.gelu(flow.ones(2)),
}


# the first lines of a `finally`: from the last call before them no instruction checks for signals
RESTORING = {"MODE.set(mode)", "MODE.set(before)", "set_errors(before)"}


def state():
    return (
        modes.MODE.get(),
        np.geterr(),
        gc.isenabled(),
        job_scope.PLACEMENTS.get(),
        job_scope.CURRENT_VIEW.get(),
        func._Transform.variable.get(),
        job_scope.NAMESPACES.get(),
        SAMPLE_GENERATOR.get(),
        DEFAULT_DEVICES.get(),
    )


@pytest.mark.parametrize("name", CALLS)
def test_mode_is_restored(name):
    """At each line except those that set a mode permanently, like a plain `set_grad_enabled(False)`."""
    call = CALLS[name]
    call()
    before = state()
    counting = Interrupter({*FILES, INTERRUPTS})
    counting.run(call)
    assert state() == before and len(counting.lines) > 3
    interrupted = 0
    for at in counting.places():
        interrupting = Interrupter({*FILES, INTERRUPTS}, at)
        interrupted += interrupting.run(call)
        after = state()
        modes.MODE.set(before[0])
        gc.enable()
        code, line = interrupting.lines[min(at, len(interrupting.lines) - 1)]
        for_good = name.startswith("set_") and code.co_name in ("__init__", "call", "__enter__", "<lambda>")
        if not for_good and linecache.getline(code.co_filename, line).strip() not in RESTORING:
            assert after == before, f"{Path(code.co_filename).name}:{line} in {code.co_name}"
    assert interrupted > 3


def test_mode_is_reentrant():
    off, on = flow.no_grad(), flow.enable_grad()
    with off, on, off:
        assert not flow.is_grad_enabled()
        with on:
            assert flow.is_grad_enabled()
        assert not flow.is_grad_enabled()
    assert flow.is_grad_enabled()
    with pytest.raises(ValueError, match="of the block"), off:
        raise ValueError("of the block")
    assert flow.is_grad_enabled()


def test_unclosed_context_restores_nothing_when_freed():
    before = modes.MODE.get()
    context = flow.no_grad()
    context.__enter__()
    del context
    gc.collect()
    assert not flow.is_grad_enabled()
    modes.MODE.set(before)
