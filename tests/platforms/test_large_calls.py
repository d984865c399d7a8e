"""Eager code that does not ask for compiled kernels: calls on large arrays use them, small ones use NumPy."""

import textwrap

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from kernel_checks import printed

from minflow.core.kernels import KERNELS
from minflow.core.op import OPS
from minflow.platforms.compiled import compile_cache, switch

PROGRAM = """
    import sys
    import numpy as np
    import minflow as flow
    import minflow.typing as tp
    from minflow import nn
    from minflow.platforms.compiled import policy
    from tests.graphs import Predict, bits

    def network():
        flow.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU6(), nn.MaxPool2d(2), nn.Dropout(0.1),
            nn.Upsample((7, 9), mode="bilinear"), nn.Flatten(2), nn.LSTM(63, 40),
        )

    def step(images):
        model = network()
        optimizer = flow.optim.Adam(model.parameters())
        flow.manual_seed(1)
        y, _ = model(images)
        (y * y).mean().backward()
        optimizer.step()
        return bits([y, *[p.grad for p in model.parameters()], *model.parameters()])

    def platforms(images):
        calls = flow.kernels(step, images).record.calls
        return {call.op: call.platform for call in calls if OPS[call.op].slow_on_numpy}

    from minflow.core.op import OPS
    flow.manual_seed(2)
    small, large = flow.randn(2, 3, 16, 16), flow.randn(40, 3, 16, 16)
"""


def run(program, **environment):
    return printed(textwrap.dedent(PROGRAM) + textwrap.dedent(program), **environment)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    if not compile_cache.tested():
        pytest.skip("on this system eager code does not use compiled kernels by itself")
    switch.warmup()


def test_ops_with_an_eager_kernel_are_marked():
    """Launching reads only the mark: without it such a kernel runs after `compiled.use()` alone."""
    rare = {"add", "sub", "mul", "clone"}  # rarely faster, and with the bits of NumPy
    compiled = {op.name for (op, name), kernel in KERNELS.items() if name in ("compiled", "fused") and kernel.call}
    marked = {name for name, op in OPS.items() if op.slow_on_numpy}
    assert compiled & {*OPS} == marked | rare


def test_large_calls_run_compiled_kernels_without_numba():
    lines, messages = run("""
    before = step(small)
    print(policy.CompiledKernelConfig.unavailable, "llvmlite" in sys.modules)
    found = platforms(large)
    print({found[name] for name in ("conv2d", "conv2d_weight_grad", "batch_norm", "batch_norm_grad", "dropout",
                                    "interpolate", "interpolate_grad", "lstm", "lstm_grad", "max_pool2d",
                                    "max_pool2d_grad")})
    print(policy.CompiledKernelConfig.unavailable == "", "numba" in sys.modules)
    print(step(small) == before, "small ones keep the bits that they had before the choice")
    """)
    assert [line.split()[0] for line in lines] == ["None", "{'compiled'}", "True", "True"], lines
    assert lines[0] == "None False" and lines[2] == "True False" and not messages


@pytest.mark.parametrize("use", ["", "compiled.use()", "compiled.use(False)", "compiled.use(eager=False)"])
def test_eager_code_exact_graphs_and_jobs_have_the_same_bits(use):
    lines, _ = run(f"""
    from minflow.platforms import compiled
    {use}
    config = flow.function_config()
    config.exact(True)

    def job(wait):
        @flow.global_function(function_config=config)
        def forward(x: tp.Numpy.Placeholder((40, 3, 16, 16))) -> tp.Callback[tp.Numpy] if wait else tp.Numpy:
            return model(x)
        return forward

    model = network()[:4].eval()
    for images in large, large[:, :, ::2, 1:9]:
        print(bits(Predict(model, exact=True)(images)) == bits(model(images)))
    model, y = network()[:4].eval(), []
    print(bits(job(False)(large.numpy())) == bits(model(large)))
    flow.clear_default_session()
    job(True)(large.numpy())(y.append)
    flow.sync_default_session()
    print(bits(y[0]) == bits(model(large)))
    print(*sorted({{platform for platform in platforms(large).values()}}))
    """)
    expected = "compiled numpy" if use in ("", "compiled.use()") else "numpy"
    assert lines[:4] == ["True"] * 4 and set(expected.split()) <= {*lines[4].split()}, lines
    assert ("compiled" in lines[4]) == ("compiled" in expected)


NO_OTHER = """
    import subprocess
    from minflow.platforms.compiled import switch
    switch.spawn_compiler = lambda code: print(code) or subprocess.Popen(["true"])
"""


def test_process_without_kernels_stays_with_numpy_and_says_so_once(tmp_path):
    lines, messages = run(
        f"""{NO_OTHER}
    step(small)
    print("small")
    first = step(large)
    switch.load_by_default = None  # the choice is made once
    print(step(large) == first, {{*platforms(large).values()}} <= {{"numpy", "reference"}})
    print("background" in repr(flow.roofline()))
    """,
        MINFLOW_KERNELS=str(tmp_path),
    )
    assert lines == ["small", "switch.compile_all(patient=True)", "True True", "True"]
    assert messages.count("are compiled in the background") == 1


def test_environment_variable_disables_kernels():
    lines, messages = run(
        'print({*platforms(large).values()} <= {"numpy", "reference"}, "llvmlite" in sys.modules)', MINFLOW_MACHINE="0"
    )
    assert lines == ["True False"] and not messages


def test_ordinary_large_arrays_do_not_load_kernels():
    """Products, sums, and arithmetic are as fast in NumPy."""
    lines, messages = run("""
    x = flow.randn(500, 500, requires_grad=True)
    ((x @ x + 1) * x).tanh().sum().backward()
    x[x > 0].mean(), x.T.reshape(-1), flow.cat([x, x])
    print("llvmlite" in sys.modules, policy.CompiledKernelConfig.unavailable)
    """)
    assert lines == ["False None"] and not messages


def test_first_large_call_in_a_signal_handler_and_an_interrupt_during_the_choice():
    """A handler that needs kernels waits for them, and an interrupt leaves no half-loaded module."""
    lines, messages = run("""
    import importlib, signal, os, time
    from minflow.platforms.compiled import switch
    load, x = switch.load_by_default, flow.randn(1 << 16)
    wanted = []

    def slowly():
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return load()

    switch.load_by_default = slowly
    signal.signal(signal.SIGUSR1, lambda *_: wanted.append(x.erf()))
    try:
        x.erf()
        print("not interrupted")
    except KeyboardInterrupt:
        print("interrupted")
    print(flow.kernels(x.erf).record.calls[0].platform, bits([x.erf()]) == bits(wanted))
    """)
    assert lines == ["interrupted", "compiled True"] and not messages


def test_threads_and_forked_workers():
    lines, messages = run("""
    from tests.threads import run_in_threads
    from minflow.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return pooled(large)[1]

    def pooled(x):
        return flow.nn.functional.conv2d(x, weight), flow.nn.functional.max_pool2d(x, 2), x.erf()

    weight, found = flow.randn(16, 3, 3, 3), []
    run_in_threads(4, lambda i: found.append(bits(pooled(large))))
    print(len(found), all(one == bits(pooled(large)) for one in found))
    loaded = [batch for batch in DataLoader(Images(), num_workers=2)]
    print(len(loaded), all(flow.equal(y[0], pooled(large)[1]) for y in loaded))
    """)
    assert lines == ["4 True", "4 True"] and not messages
