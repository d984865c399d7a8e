"""Wrappers for models on several devices, for programs that use them. They only call the module.

Their parameters are named "module.fc1.weight", as in PyTorch, so that a state_dict saved from one fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import warn
from .module import Module


class DataParallel(Module):
    """module(input), on one device. module: the module to call; device_ids, output_device and dim have no effect."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        warn("DataParallel: there is one device, so the module runs as it is", "the module itself")
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """module(input), in a single process. Gradients are already those of the whole batch.

    All other arguments, such as device_ids or find_unused_parameters, have no effect.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, *args: Any, **options: Any):
        super().__init__()
        warn("DistributedDataParallel: there is one process, so the module runs as it is", "the module itself")
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager that does nothing: gradients are never summed over processes."""
        yield


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:
    """module(*inputs), on one device."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
__getattr__ = _name_hints("flow.nn.parallel", globals())
