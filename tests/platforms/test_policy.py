"""Programs that do not ask for compiled kernels: large graphs and jobs use them. Eager code: `test_large_calls.py`."""

import contextlib
import os
import textwrap
import threading

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from kernel_checks import printed

from minflow.platforms.compiled import compile_cache, policy, switch
from minflow.platforms.compiled.config import CompiledKernelConfig

PROGRAM = """
    import sys
    import numpy as np
    import minflow as flow
    from minflow import nn

    from tests.graph_models import Step

    def training(width, exact):
        flow.manual_seed(0)
        model = nn.Sequential(nn.Linear(300, width), nn.GELU(), nn.Linear(width, 10))
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        return Step(model, optimizer, lambda x, y: nn.functional.cross_entropy(model(x), y), exact=exact)

    def eager(graph, x, y):
        ((optimizer, _),) = graph.optimizers
        loss = graph.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    flow.manual_seed(1)
    x, y = flow.randn(64, 300), flow.randint(0, 10, (64,))
    for width, exact in SIZES:
        graph, other = training(width, exact), training(width, exact)
        losses = [graph(x, y).item() for _ in range(3)]
        wanted = [eager(other, x, y).item() for _ in range(3)]
        assert np.allclose(losses, wanted, rtol=1e-5)
        print("fused" if any(len(node.parts) for node in graph.nodes) else "plain", losses == wanted)
    print("numba" in sys.modules, "llvmlite" in sys.modules)
"""


NO_OTHER = """
    import subprocess
    from minflow.platforms.compiled import switch
    switch.spawn_compiler = lambda code: print(code) or subprocess.Popen(["true"])
"""


def said(first="", sizes=((400, False),), **environment):
    """Output of the program for graphs of these sizes, exact or not."""
    return printed(f"{first}\n    SIZES = {sizes}\n{PROGRAM}", **environment)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    if not compile_cache.tested():
        pytest.skip("on this system graphs do not take the machine by themselves")
    switch.warmup()


def test_large_graphs_use_cached_kernels_without_numba():
    lines, messages = said(sizes=((4, False), (400, True), (400, False)))
    assert lines[:2] == ["plain True", "plain True"] and lines[2].startswith("fused ") and lines[3] == "False True"
    assert not messages


def test_environment_variable_disables_kernels():
    lines, messages = said(MINFLOW_MACHINE="0")
    assert lines == ["plain True", "False False"] and not messages


def test_other_systems_do_not_compile():
    lines, messages = said(
        NO_OTHER
        + """
    from minflow.platforms.compiled import compile_cache
    compile_cache.tested = lambda: False
"""
    )
    assert lines == ["plain True", "False True"] and not messages


def test_empty_cache_starts_a_compiler_process(tmp_path):
    """The current call uses NumPy and says so once."""
    lines, messages = said(NO_OTHER, MINFLOW_KERNELS=str(tmp_path))
    assert lines == ["switch.compile_all(patient=True)", "plain True", "False True"]
    assert messages.count("are compiled in the background") == 1


COMPILED_MEANWHILE = """
    import shutil, subprocess
    from pathlib import Path
    from minflow.platforms.compiled import compile_cache, switch

    def spawn(code):
        for part in compile_cache.PARTS:
            shutil.copy(Path(ARCHIVES) / compile_cache.name_of(part), compile_cache.folder())
        return subprocess.Popen(["true"])

    switch.spawn_compiler = spawn
"""


def meanwhile():
    """Code for a process in which another one fills the empty cache as soon as this one has chosen."""
    for folder in compile_cache.folders():
        if all((folder / compile_cache.name_of(part)).exists() for part in compile_cache.PARTS):
            return f"\n    ARCHIVES = {str(folder)!r}{COMPILED_MEANWHILE}"
    pytest.skip("the compiled kernels are not stored on this system")


def test_process_keeps_its_choice_when_the_cache_is_filled(tmp_path):
    """Its later graphs stay with NumPy and the bits of eager mode; another process uses the compiled kernels."""
    first = meanwhile()
    folder = {"MINFLOW_KERNELS": str(tmp_path)}
    lines, messages = said(first, sizes=((400, False), (500, False)), **folder)
    assert lines == ["plain True", "plain True", "False True"] and messages.count("in the background") == 1
    assert len(list(tmp_path.iterdir())) == len(compile_cache.PARTS), "the cache was filled by the first graph"
    lines, messages = said(**folder)
    assert lines[0].startswith("fused ") and not messages


def test_threads_choose_together(monkeypatch):
    """A second thread waits for the choice of the first."""
    both, calls, answers = threading.Barrier(2), [], []

    def load_by_default():
        calls.append(None)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # passed at once if two threads are here
        return "not yet"

    monkeypatch.setattr(CompiledKernelConfig, "unavailable", None)
    monkeypatch.setattr(switch, "load_by_default", load_by_default)
    threads = [threading.Thread(target=lambda: answers.append(policy.ready())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and answers == [False, False] and policy.why_numpy() == "not yet"


def test_explicit_use_overrides_the_choice(tmp_path):
    """`compiled.use()` in a process that has chosen NumPy, and back; graphs keep the kernels they were built with."""
    lines, _ = printed(
        f"""{meanwhile()}
    import minflow as flow
    from minflow.platforms import compiled
    from tests.graphs import Predict

    x, graphs = flow.randn(700, 500), []
    for use in None, True, False:
        if use is not None:
            compiled.use(use)
        graphs.append(Predict(flow.nn.GELU()))
        graphs[-1](x)
        print([{{call.platform for call in graph.plan.record.calls}} == {{"compiled"}} for graph in graphs])
    """,
        MINFLOW_KERNELS=str(tmp_path),
    )
    assert lines == ["[False]", "[False, True]", "[False, True, False]"]


def test_roofline_says_why_graphs_run_numpy(tmp_path):
    """Once, with the command that compiles; nothing before a large graph was run."""
    lines, messages = printed(
        f"""{NO_OTHER}
    import minflow as flow
    from tests.graphs import Predict
    print("background" in repr(flow.roofline()))
    graph = Predict(flow.nn.GELU(), False)
    graph(flow.randn(700, 500))
    graph(flow.randn(700, 500))
    for report in flow.roofline(graph), flow.roofline():
        words = " ".join(repr(report).split())
        print(words.count("compiled in the background"), "warmup, then restart" in words)
    """,
        MINFLOW_KERNELS=str(tmp_path),
    )
    assert lines[0] == "False" and lines[-2:] == ["1 True"] * 2
    assert messages.count("compiled in the background") == 1 and "warmup, then restart" in messages


@pytest.mark.parametrize(
    "change, expected",
    [
        ("switch.spawn_compiler = lambda code: None", "no process can be started"),
        ("compile_cache.folder = lambda: None", "set MINFLOW_KERNELS to a writable folder"),
    ],
)
def test_process_says_why_it_cannot_compile(tmp_path, change, expected):
    first = f"\n    from minflow.platforms.compiled import compile_cache, switch\n    {change}"
    lines, messages = said(first, MINFLOW_KERNELS=str(tmp_path))
    assert lines == ["plain True", "False True"] and messages.count(expected) == 1


@pytest.mark.parametrize("name", ["numba", "llvmlite"])
def test_missing_numba_warns_once(tmp_path, name):
    """Without llvmlite nothing can be loaded, and without numba nothing can be compiled."""
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(f"""
        import importlib.util as util, sys
        find = util.find_spec
        util.find_spec = lambda name, *rest: None if name == {name!r} else find(name, *rest)
        sys.modules[{name!r}] = None
        """)
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    lines, messages = said(NO_OTHER, PYTHONPATH=path, MINFLOW_KERNELS=str(tmp_path))
    assert lines[0] == "plain True" and messages.count("numba is not installed") == 1


@pytest.mark.parametrize(
    "version, known",
    [("0.61.0", True), ("0.68.1", True), ("0.60.1", False), ("0.69.0rc1", False), ("1.0", False), ("0+unknown", False)],
)
def test_versions_of_numba(monkeypatch, version, known):
    monkeypatch.setattr(switch.metadata, "version", lambda name: version)
    assert switch.known_numba() is known


def test_unsupported_numba_version_is_not_used(tmp_path):
    """A new version may have changed what the kernels rely on; a program can still ask for it explicitly."""
    lines, messages = said(
        NO_OTHER
        + """
    switch.metadata.version = lambda name: "0.99.0"
""",
        MINFLOW_KERNELS=str(tmp_path),
    )
    assert lines == ["plain True", "False True"], messages
    assert messages.count("numba 0.99.0 is not one of those") == 1


def test_jobs_and_saved_graphs_use_kernels():
    lines, messages = printed("""
        import tempfile
        import numpy as np
        import minflow as flow
        from minflow import nn
        from minflow import typing as tp
        from tests.graphs import Predict

        def job(exact):
            config = flow.function_config()
            config.exact(exact)
            @flow.global_function(type="predict", function_config=config)
            def scores(x: tp.Numpy.Placeholder((700, 500))) -> tp.Numpy:
                return flow.nn.functional.softmax(x * 2.0, dim=1)
            return scores

        x = np.random.default_rng(0).standard_normal((700, 500)).astype("f4")
        plain, quick = job(True)(x), job(False)(x)
        print("job", np.allclose(plain, quick, rtol=1e-5), np.array_equal(plain, quick))

        def predict(exact):
            flow.manual_seed(0)
            return Predict(nn.Sequential(nn.Linear(300, 400), nn.GELU(), nn.Linear(400, 10)), exact)

        x = flow.randn(640, 300)
        for exact in True, False:
            graph, folder = predict(exact), tempfile.mkdtemp() + "/saved"
            wanted = graph(x)
            flow.save(graph, folder)
            loaded = flow.load_graph(folder)
            print("saved", flow.equal(loaded(x), wanted), flow.equal(wanted, graph.model(x)),
                  any(len(node.parts) for node in loaded.nodes))
    """)
    assert lines == ["job True False", "saved True True False", "saved True False True"], messages
