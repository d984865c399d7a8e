"""Programs that do not ask for compiled kernels: large graphs and jobs use them, everything else uses NumPy."""

import os
import textwrap

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from kernel_checks import printed

from minflow.platforms.compiled import compile_cache, switch

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
