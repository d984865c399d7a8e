"""Compiled kernels switched on and off: the same programs, the same bits eager and as a graph, NumPy's kernels when
off.
"""

import json
import os
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import Predict, TrainGraph, eager_step
from kernel_checks import printed
from llvmlite import binding

import minflow as flow
from minflow import cli, nn
from minflow.core.base.errors import MissingDependencyError
from minflow.core.base.locks import exclusive_lock
from minflow.core.kernels import CALLS, EAGER_PLATFORMS, HOST_PLATFORMS, select
from minflow.core.ops import conv
from minflow.platforms import compiled
from minflow.platforms.compiled import compile_cache, switch
from tests import sampling


def net():
    flow.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3),
        nn.Flatten(),
        nn.Linear(800, 10),
    )


def batch():
    rng = np.random.default_rng(0)
    return flow.tensor(rng.standard_normal((8, 1, 28, 28)).astype("f4")), flow.tensor(rng.integers(0, 10, 8))


def test_graph_keeps_its_kernels(on):
    """Kernels and passes, even after compiled kernels are switched off."""
    graph, x = Predict(net()), batch()[0]
    before = graph(x).numpy()
    compiled.use(False)
    np.testing.assert_allclose(graph(x).numpy(), before, rtol=1e-3, atol=1e-6)
    assert "blocks_conv2d" in {node.op.name for node in graph.nodes}


def test_plan_listing_has_platforms_and_tasks(on):
    """The matrix product is too small for a compiled kernel; none supports double precision."""
    graph, double = Predict(net()), Predict(net().double())
    graph(batch()[0]), double(batch()[0].double())
    calls = graph.plan.record.calls
    assert {call.platform for call in calls if call.op != "matmul"} == {"compiled"} and len(calls) == 6
    assert calls[0].tasks == ("pack_filters", "conv_images")
    assert [(call.platform, call.tasks) for call in calls if call.op == "matmul"] == [("reference", ())]
    assert {call.platform for call in double.plan.record.calls} == {"numpy", "reference"}
    assert not any(call.tasks for call in double.plan.record.calls)


def trained(as_graph, steps=3, exact=False):
    """Losses and parameters after some steps of SGD with momentum, and names of compiled kernels in a graph's plan."""
    model, loss_fn, (x, y), kernels = net(), nn.CrossEntropyLoss(), batch(), None
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    graph = TrainGraph(model, loss_fn, optimizer)
    graph.config.exact(exact)
    losses = [(graph(x, y) if as_graph else eager_step(model, loss_fn, optimizer, x, y)).item() for _ in range(steps)]
    if as_graph:
        calls = [call for part in graph._last.parts for call in part.plan.calls]
        kernels = {step.name for call in calls for step in getattr(call, "steps", ())}
    return losses, [p.numpy().copy() for p in model.parameters()], kernels


def test_exact_graph_trains_with_the_bits_of_eager(on):
    (losses, parameters, _), (graph_losses, graph_parameters, _) = trained(False), trained(True, exact=True)
    assert losses == graph_losses
    assert all(np.array_equal(a, b) for a, b in zip(parameters, graph_parameters))


@pytest.mark.parametrize("exact", [False, True])
def test_training_matches_numpy_within_rounding(on, exact):
    mine = trained(True, exact=exact)
    compiled.use(False)
    plain = trained(True)
    assert mine[0] == pytest.approx(plain[0], rel=1e-5)
    assert len(mine[2]) > 3 and not plain[2], "each plan runs the kernels that it was built for"
    assert all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(mine[1], plain[1]))


def test_switching_off_restores_numpy():
    before = CALLS[conv.conv2d]
    compiled.use()
    assert compiled.used() and CALLS[conv.conv2d] is not before
    compiled.use()  # a second call changes nothing
    compiled.use(False)
    compiled.use(False)
    assert not compiled.used() and EAGER_PLATFORMS["cpu"] == HOST_PLATFORMS


def test_unsupported_calls_fall_back_to_numpy(on):
    """Double precision, groups, one pixel, empty input."""
    for dtype, groups, shape, weight in [
        ("f8", 1, (4, 16, 20, 20), (16, 16, 3, 3)),
        ("f4", 4, (4, 16, 20, 20), (16, 4, 3, 3)),
        ("f4", 1, (9, 64, 40, 40), (64, 64, 1, 1)),
        ("f4", 1, (0, 16, 20, 20), (16, 16, 3, 3)),
    ]:
        x, w = np.ones(shape, dtype), np.ones(weight, dtype)
        y = nn.functional.conv2d(flow.tensor(x), flow.tensor(w), groups=groups).numpy()
        assert (y == weight[1] * weight[2] * weight[3]).all() and y.shape[:2] == (shape[0], weight[0])


def test_without_numba(monkeypatch, capsys):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "numba" else find(name, *rest))
    with pytest.raises(MissingDependencyError, match="numba is not installed") as error:
        compiled.use()
    assert "fast" in error.value.hint and not compiled.used()
    assert cli.main(["warmup"]) == 1 and "numba" in capsys.readouterr().err


def test_warmup_command_compiles(capsys):
    assert cli.main(["warmup"]) == 0
    assert capsys.readouterr().out.startswith("ready after ")


@pytest.mark.parametrize("value, expected", [("1", "True"), ("", "False")])
def test_environment_variable_enables_kernels(value, expected):
    """The value "0": `test_policy.py`."""
    program = """
        import minflow, minflow.platforms.compiled, sys
        print(minflow.platforms.compiled.used(), "minflow.platforms.compiled.codegen.jit" in sys.modules)
    """
    assert printed(program, MINFLOW_MACHINE=value)[0] == [f"{expected} {expected}"]


def test_changed_source_invalidates_the_cache(tmp_path, monkeypatch):
    """Compiled functions may have inlined code of other files."""
    monkeypatch.setattr(compile_cache, "ROOM", tmp_path)
    (tmp_path / "one.py").write_text("a = 1")
    stamps = [compile_cache.stamp.__wrapped__()]
    (tmp_path / "other.py").write_text("b = 1")
    stamps.append(compile_cache.stamp.__wrapped__())
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2")
    stamps += [compile_cache.stamp.__wrapped__(), compile_cache.stamp.__wrapped__()]
    assert len(set(stamps)) == 3 and stamps[-1] == stamps[-2]


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """A small archive made by a process that has loaded nothing; returns what would be linked."""
    monkeypatch.setenv("MINFLOW_KERNELS", str(tmp_path))
    monkeypatch.setattr(compile_cache, "LOADED", set())
    monkeypatch.setattr(compile_cache, "ADDRESSES", {})
    linked = []
    monkeypatch.setattr(
        compile_cache,
        "linked",
        lambda symbols, code, needed: linked.append(code) or {name: len(symbol) for name, symbol in symbols.items()},
    )
    compile_cache.save(0, {"one": "symbol", "two": "other symbol"}, b"code of both", ["sched_yield", "numba_do_raise"])
    return tmp_path / compile_cache.name_of(0), linked


def test_damaged_archive_is_ignored(archive):
    """Whichever byte changed, and wherever the file is truncated."""
    file, linked = archive
    assert (
        compile_cache.load_part(0) and compile_cache.ADDRESSES == {"one": 6, "two": 12} and linked == [b"code of both"]
    )
    whole = file.read_bytes()
    for place in range(len(whole)):
        for change in (1, 0x10, 0x80) if sampling.complete else ((1, 0x10, 0x80)[place % 3],):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
            compile_cache.LOADED.clear()
            if compile_cache.load_part(0):
                assert linked.pop() == b"code of both", "a name, or an unused number"
    for length in range(0, len(whole) - 1, 7):
        file.write_bytes(whole[:length])
        compile_cache.LOADED.clear()
        assert not compile_cache.load_part(0)


def test_code_with_missing_symbols_is_not_loaded(monkeypatch, tmp_path):
    """Otherwise LLVM would end the process."""
    monkeypatch.setenv("MINFLOW_KERNELS", str(tmp_path))
    monkeypatch.setattr(compile_cache, "LOADED", set())
    symbols, code = (
        {"one": "f"},
        compile_cache.target().emit_object(binding.parse_assembly("define void @f() { ret void }")),
    )
    assert compile_cache.linked(symbols, code, ["sched_yield", "numba_do_raise", "PyUnicode_FromString"])["one"]
    with pytest.raises(OSError, match="need a_function_of_another_numba"):
        compile_cache.linked(symbols, code, ["sched_yield", "a_function_of_another_numba"])
    compile_cache.save(0, symbols, code, ["a_function_of_another_numba"])
    assert not compile_cache.load_part(0)


def test_compiled_kernels_run_without_numba():
    """The kernels contain everything they call, count no references, and never raise numba's errors."""
    switch.warmup()
    for part in compile_cache.PARTS:
        [file] = [
            path
            for path in [folder / compile_cache.name_of(part) for folder in compile_cache.folders()]
            if path.exists()
        ][:1]
        with zipfile.ZipFile(file) as archive:
            needed = json.loads(archive.read(compile_cache.NEEDED))
        assert not [name for name in needed if name.startswith(("_ZN", "NRT_"))]
        assert {name for name in needed if name.startswith("numba_")} <= {*compile_cache.UNREACHED}


def test_no_compiler_process_without_a_python_executable(monkeypatch):
    for executable in (None, "", "/no/such/python"):
        monkeypatch.setattr(sys, "executable", executable)
        assert switch.spawn_compiler("pass") is None


@pytest.mark.skipif(os.name != "posix", reason="this system has no such locks")
def test_exclusive_lock_without_waiting(tmp_path):
    with exclusive_lock(tmp_path) as first, exclusive_lock(tmp_path, wait=False) as second:
        assert first and not second
    with exclusive_lock(tmp_path, wait=False) as free:
        assert free


FRESH = """
    import subprocess, sys
    from minflow.platforms.compiled import switch
    begun = []
    class Popen(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            begun.append(args[0][-1])
            super().__init__(*args, **kwargs)
    subprocess.Popen = Popen
    switch.warmup()
    import numpy as np
    from minflow.platforms.compiled import compile_cache
    from minflow.platforms.compiled.codegen import jit
    from minflow.platforms.compiled.kernels import gemm
    from minflow.platforms.compiled.runtime import tasks
    from minflow.core.kernels import CALLS
    from minflow.core.ops.elementwise import relu
    x, y = np.float32([-1, 2]), np.zeros(2, "f4")
    CALLS[relu](x, out=y)
    print(len(begun), "numba" in sys.modules, len(jit.COMPILED_FUNCTIONS) == len(compile_cache.ADDRESSES) > 40)
    from minflow.platforms.compiled import switch
    switch.use()
    import minflow as flow
    a = flow.ones(70, 80)
    print(((a @ a.T).numpy() == 80).all())
"""


def fresh(folder):
    """Output of a process that only knows the compiled kernels in a folder."""
    return " ".join(printed(FRESH, MINFLOW_KERNELS=str(folder), MINFLOW_MACHINE="0")[0]).split()


@pytest.mark.slow
def test_first_compilation_uses_two_processes_and_is_cached(tmp_path):
    """After that numba is not even imported; damaged archives are rebuilt."""
    assert fresh(tmp_path) == ["1", "True", "True", "True"]
    archives = sorted(tmp_path.iterdir())
    assert [path.name[-6:] for path in archives] == ["-0.zip", "-1.zip"]
    assert fresh(tmp_path) == ["0", "False", "True", "True"]
    archives[1].write_bytes(archives[1].read_bytes()[:5000])
    assert fresh(tmp_path) == ["1", "True", "True", "True"] and fresh(tmp_path)[1] == "False"


@pytest.mark.slow
def test_unwritable_cache_compiles_in_each_process(tmp_path):
    (tmp_path / "a file").write_text("")
    assert fresh(tmp_path / "a file" / "folder") == ["1", "True", "True", "True"]


def single(model):
    names = [node.op.name for part in model.parts for node in part.graph.nodes]
    return names.count("conv2d") == 3 and "relu" in names and "blocks_conv2d" not in names


def test_explorer_shows_each_operation(on):
    """With unfused plans beside the fused one, which calls continue to use; the gradient of the last call is the fused
    plan's.
    """
    from minflow.introspection.graph.explore.explorer_model import graph_explorer_model

    model, (x, y) = net(), batch()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.01))
    graph(x, y)
    fused, weights = graph._last, next(graph.model.parameters()).numpy().copy()
    shown = graph_explorer_model(graph)
    name = next(name for name in shown.kinds if name.endswith("weight"))
    assert single(shown) and not shown.instructions
    assert shown.note == f"Calls run {len(graph.nodes)} fused operations instead, which graph.plan lists."
    gradient = shown.gradient(name)
    assert np.array_equal(gradient, graph.grads[name].numpy())
    recorded = graph_explorer_model(graph, (x, y))
    assert single(recorded) and recorded.instructions and recorded.call_seconds()
    assert np.array_equal(next(graph.model.parameters()).numpy(), weights), "writes of a recorded step are restored"
    assert recorded.gradients[name].size == gradient.size
    graph(x, y)
    assert graph._last is fused and len(graph._plans) == 1 and not fused.exact


def test_scalar_operand_falls_back_to_numpy(on):
    from minflow.core.ops import activation

    given = True, np.linspace(-1, 8, 8)
    np.testing.assert_array_equal(
        CALLS[activation.relu6_grad](*given), select(activation.relu6_grad, HOST_PLATFORMS).call(*given)
    )
