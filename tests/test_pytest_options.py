"""Which warnings fail the tests, by default and in `.ci/run`, what `--seed`, `--sample` and `--complete` do, and which
ports kernels get.
"""

import re

import pytest

from tests import sampling
from tests.processes import python
from tests.sources import TOP

WARN = """
import threading
import warnings

import minflow as flow


def warned_in(module, category):
    exec("import warnings; warnings.warn('told', category)", {"__name__": module, "category": category})


def test_dependency_deprecates():
    warned_in("numpy.lib", DeprecationWarning)


def test_our_line_is_deprecated():
    warned_in("minflow.core.ops.reduce", FutureWarning)


def test_dependency_warns():
    warned_in("jupyter_client.manager", UserWarning)


def test_minflow_warns():
    warned_in("test_anything", flow.MinflowWarning)


def test_kernel_overflows():
    warned_in("minflow.core.ops.reduce", RuntimeWarning)


def test_thread_fails():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""
LET_BY = {"test_dependency_deprecates", "test_our_line_is_deprecated", "test_dependency_warns"}


def run(*words, **settings):
    return python(
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        *words,
        cwd=TOP,
        PYTEST_ADDOPTS="",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        **settings,
    )


@pytest.mark.parametrize("strict", [False, True])
def test_warnings_that_fail_a_run(tmp_path, strict):
    """Warnings of dependencies fail only `.ci/run`, which passes -W error."""
    file = tmp_path / "test_warned.py"
    file.write_text(WARN)
    more = ["-W", "error"] if strict else []
    done = run("-q", "-rA", "-c", str(TOP / "pyproject.toml"), "-p", "conftest", *more, str(file))
    ended = {name: word for word, name in re.findall(r"^(PASSED|FAILED) .*::(test_\w+)", done.stdout, re.MULTILINE)}
    assert len(ended) == 6, done.stdout + done.stderr
    assert {name for name, word in ended.items() if word == "PASSED"} == (set() if strict else LET_BY)


DRAW = """
import random

import numpy as np

import minflow as flow


def draw():
    return flow.rand(1).item(), np.random.rand(), random.random()


AT_IMPORT = draw()


def test_draws():
    print("drawn", AT_IMPORT, draw())
"""


def test_random_numbers_of_all_libraries_depend_only_on_the_seed(tmp_path):
    """When a file is imported and in its tests."""
    file = tmp_path / "test_drawing.py"
    file.write_text(DRAW)
    drawn = []
    for seed in ("0", "0", "1"):
        done = run("-q", "-s", "-p", "tests.conftest", "-c", str(TOP / "pyproject.toml"), "--seed", seed, str(file))
        drawn += re.findall(r"drawn \((.+), (.+), (.+)\) \((.+), (.+), (.+)\)", done.stdout)
    assert len(drawn) == 3 and drawn[0] == drawn[1], drawn
    assert not set(drawn[0]) & set(drawn[2]), drawn


PORTS = """
from jupyter_client.connect import LocalPortCache


def test_ports():
    cache = LocalPortCache()
    print("ports", *[cache.find_available_port("127.0.0.1") for _ in range(20)])
"""


def test_kernels_of_two_workers_get_different_ports(tmp_path):
    pytest.importorskip("jupyter_client")
    file = tmp_path / "test_ports.py"
    file.write_text(PORTS)
    found = []
    for worker in ("gw0", "gw1"):
        done = run("-q", "-s", "-c", str(TOP / "pyproject.toml"), "-p", "conftest", file, PYTEST_XDIST_WORKER=worker)
        found.append({int(port) for port in re.search("ports (.*)", done.stdout)[1].split()})
    assert len(found[0]) == len(found[1]) == 20 and not found[0] & found[1]
    assert max(*found[0], *found[1]) < 32768  # the least that Linux assigns


def test_sample_is_the_same_in_each_run():
    chosen = [
        [
            line
            for line in run(
                "--collect-only", "-q", "--sample", str(count), "tests/core/test_spec.py"
            ).stdout.splitlines()
            if "::" in line
        ]
        for count in (6, 3, 3)
    ]
    assert [len(names) for names in chosen] == [6, 3, 3]
    assert chosen[1] == chosen[2] and set(chosen[1]) < set(chosen[0])


def test_sampled_sweep_keeps_a_share_by_name(request, monkeypatch):
    assert sampling.complete == request.config.getoption("--complete")
    names = [f"op{number}" for number in range(1000)]
    monkeypatch.setattr(sampling, "complete", False)
    kept = sampling.sampled(names, 0.2)
    assert 150 < len(kept) < 250 and kept == sorted(kept, key=names.index)
    assert sampling.sampled(names[500:], 0.2) == [name for name in kept if name in names[500:]]
    assert len(sampling.sampled(names, 0.0)) == 1 and sampling.sampled([], 0.5) == []
    assert sampling.sampled(names, 0.2, lambda name: f"second sweep, {name}") != kept
    assert sampling.sampled([pytest.param(object(), id=name) for name in kept[:5]], 0.2)[4].id == kept[4]
    with pytest.raises(ValueError, match="at 0x.* differs between runs"):
        sampling.sampled([object()], 0.2)
    monkeypatch.setattr(sampling, "complete", True)
    assert sampling.sampled(names, 0.2) == names
