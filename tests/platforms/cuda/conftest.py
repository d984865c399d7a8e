"""Fixtures of the tests of CUDA C."""

import pytest

from minflow.core.kernels import KERNELS
from minflow.platforms.cupy.device_code import CudaBackend, source_text


@pytest.fixture
def compiled_together(cuda_kernels, monkeypatch):
    """A function that runs a program twice: first without results, to collect sources, which are compiled as one."""
    sources: dict = {}

    def forget():
        for entry in KERNELS.values():
            getattr(entry.call, "prepared", {}).clear()

    def collect(self, source, name):
        sources.setdefault((source, name), f"{name}_{len(sources)}")
        return lambda grid, block, args, shared=0: None

    def run(program):
        forget()
        monkeypatch.setattr(CudaBackend, "generated", collect)
        program(lambda *results: None)
        bodies = [source.replace(f" {name}(", f" {new}(", 1) for (source, name), new in sources.items()]
        whole = source_text("elementwise.cuh") + "".join(bodies)
        monkeypatch.setattr(CudaBackend, "generated", lambda self, *key: self.compile(whole)(sources[key]))
        forget()
        found = []
        program(lambda *results: found.append(results))
        return found

    yield run
    forget()
