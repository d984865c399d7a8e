"""Plans of graphs and jobs that exceed the memory are refused before they are allocated."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler import memory_limit
from minflow.compiler.plan import Plan
from minflow.core import memory
from minflow.core.trace import trace

HUGE = 1 << 45  # elements


@pytest.fixture
def free(monkeypatch):
    """Set the number of free bytes."""
    return lambda n: monkeypatch.setattr(memory, "free_bytes", lambda: n)


class Wide(nn.Graph):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.config.exact(True)  # otherwise large values would never be written

    def build(self, x):
        wide = self.net(x).sum(1, keepdim=True).expand(8, 4_000_000) * 2.0
        return (wide.exp() + wide).sum()


def test_graph_exceeds_memory(free):
    graph, x = Wide(), flow.ones(8, 4)
    free(200_000_000)
    with pytest.raises(flow.OutOfMemoryError) as found:
        graph(x)
    error = found.value
    assert error.what == "the plan of this graph needs 256.0 MB of memory, and 200.0 MB are free"
    assert error.values["free"] == "200000000 bytes" and error.values["needed"].startswith("2560")
    (first, said), (second, _), _ = list(error.values.items())[2:]
    assert {first, second} <= {"mul-0", "exp-0", "add-0"}
    assert said.startswith("float32[8, 4000000], 128.0 MB, created at test_memory_limit.py:")
    assert "test_memory_limit.py" in error.where and "smaller batch" in error.hint
    free(300_000_000)
    assert graph(x).item() > 0  # nothing of the failed plan remains


def test_job_exceeds_memory(free):
    @flow.global_function()
    def wide(x: flow.typing.Numpy.Placeholder((8, 1))) -> flow.typing.Numpy:
        return flow.math.exp(flow.broadcast_like(x, flow.zeros((8, 4_000_000))))

    free(1 << 20)
    with pytest.raises(flow.OutOfMemoryError, match="needs .* MB of memory, and 1.0 MB are free"):
        wide(np.ones((8, 1), "float32"))


@pytest.mark.parametrize("program", [
    lambda x: x.expand(HUGE) + 1.0,
    lambda x: x.expand(HUGE),  # a view, copied out at each call
    lambda x: (x.expand(HUGE) + 1.0).sum(),
    lambda x: sum((x.expand(HUGE << 9) * float(k)).sum() + (x.expand(HUGE << 9) + k).exp() for k in range(40)).sum(),
    lambda x: flow.zeros(HUGE).sum() * x,
])  # fmt: skip
def test_impossible_sizes(program, free):
    """Outputs, copied views, values, sums of sizes beyond 64 bits, and constants."""
    free(1 << 40)
    graph, _ = trace(program, [flow.ones(1)])
    with pytest.raises(flow.OutOfMemoryError):
        Plan(graph)


def test_unknown_limit_is_not_refused(free):
    free(None)
    memory_limit.check_memory(1 << 60, [], str)
    free(1 << 20)
    memory_limit.check_memory(1 << 26, [], str)  # small sizes are not checked


def files(root, **texts):
    for path, text in texts.items():
        place = root.joinpath(*path.split("__"))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


MEMINFO = "MemTotal:  1000 kB\nMemAvailable:  600 kB\nSwapFree:  100 kB\nHugePages_Total:  0\n"


def test_free_memory_of_the_system(tmp_path):
    assert memory.free_bytes(tmp_path) is None
    files(tmp_path, proc__meminfo=MEMINFO)
    assert memory.free_bytes(tmp_path) == 700 * 1024


def test_free_memory_of_a_cgroup_v2_container(tmp_path):
    """The limits of the group and of its parents; page cache of the group counts as free."""
    top = tmp_path / "sys" / "fs" / "cgroup"
    files(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="0::/a/b\n")
    files(
        top,
        **{
            "memory.max": "max\n",
            "memory.current": "5\n",
            "a__memory.max": "500000",
            "a__memory.current": "450000",
            "a__memory.stat": "anon 7\ninactive_file 30000\n",
            "a__b__memory.max": "490000",
            "a__b__memory.current": "100000",
        },
    )
    assert memory.free_bytes(tmp_path) == 80_000
    (top / "a" / "memory.current").write_text("700000")
    assert memory.free_bytes(tmp_path) == 0


def test_free_memory_of_a_cgroup_v1_container(tmp_path):
    files(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="5:cpu:/x\n4:memory:/docker/1\nno line\n")
    files(
        tmp_path / "sys" / "fs" / "cgroup" / "memory" / "docker" / "1",
        **{
            "memory.limit_in_bytes": "9000",
            "memory.usage_in_bytes": "4000",
            "memory.stat": "total_inactive_file 500\n",
        },
    )
    assert memory.free_bytes(tmp_path) == 5500


def test_free_memory_is_known_here():
    assert memory.free_bytes() is None or memory.free_bytes() > 1 << 20
