"""Classes of PyTorch without instances in minflow, for programs that compare types or derive from them.

Read next: `namespaces/jit.py`, whose functions return models and functions unchanged.
"""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from ..core.base.errors import DeviceError, SbpError, StateError
from ..core.base.placement import Sbp, split
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..nn.module import Module


class ScriptModule(Module):
    """Base class of TorchScript models. A class that derives from it is a plain Module."""


class OptimizedModule(Module):
    """Type of the models that PyTorch's compile returns; `flow.compile` returns the model itself."""


class GraphModule(Module):
    """Type of the modules that PyTorch's fx builds from a traced graph; minflow traces an nn.Graph."""


class ScriptFunction:
    """Type of the functions that PyTorch's jit.script returns; `flow.jit.script` returns the function itself."""


class WorkerIterator:
    """Type of PyTorch's iterators over a DataLoader with worker processes; iterators here end their workers."""


class PlacementType(type):
    """Metaclass of PyTorch's names for the kinds of Sbp: `Shard(0)` is `flow.sbp.split(0)`, an instance of Shard."""

    kind: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Sbp:
        passed = (*args, *kwargs.values())
        if cls.kind == "split":
            return split(*passed)
        if passed not in ((), ("sum",)):
            fail(SbpError, f"{cls.__name__}: parts are added, not reduced otherwise", "flow.sbp.partial_sum")
        return Sbp(cls.kind)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Sbp) and instance.kind == cls.kind


Shard, Replicate, Partial = (
    PlacementType(name, (), {"kind": kind, "__doc__": f"`flow.sbp.{kind}`."})
    for name, kind in {"Shard": "split", "Replicate": "broadcast", "Partial": "partial_sum"}.items()
)
DataLoaderIterator = GeneratorType
TensorMeta = type(Tensor)


class PyTorchFileReader:
    """Reader of single records of a checkpoint; refused."""

    def __init__(self, file: Any):
        fail(StateError, "PyTorchFileReader: records are not read one by one", "flow.load(path, mmap=True)")


class emit_nvtx:
    """Context manager of PyTorch that marks ops for NVIDIA's profiler; refused."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        if enabled:
            what = "profiler.emit_nvtx: minflow writes no ranges for NVIDIA's profiler"
            fail(
                DeviceError,
                what,
                "with flow.profiler.profile() as profile:, then print(profile.key_averages().table())",
            )

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class Join:
    """Context manager of PyTorch for ranks with unequal numbers of batches; refused."""

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False, **keywords: Any
    ):
        if enable:
            what = "distributed.algorithms.Join: ranks with unequal numbers of batches do not wait for each other"
            fail(StateError, what, "flow.utils.data.DistributedSampler, which gives each rank equally many samples")

    def __enter__(self) -> Join:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
