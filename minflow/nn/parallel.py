"""Training on several ranks (DistributedDataParallel), and DataParallel, which only calls its module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.autograd import at_end_of_backward
from ..core.backend import namespace, to_host
from ..core.base.errors import GradError, ModuleError
from ..core.base.placement import Placement, broadcast, partial_sum
from ..core.context import current_context
from ..core.functionalize import write_into
from ..core.grad.modes import is_grad_enabled, no_grad
from ..core.host import host_array
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.mode import MODE
from ..core.ops.global_tensors import as_global, as_local, boxed, share
from ..core.source_location import fail, warn
from ..distributed.collectives import member, put
from ..distributed.communicator import Communicator
from .module import Module


class DataParallel(Module):
    """module(input), on one device. module: the module to call; device_ids, output_device and dim have no effect."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        warn("DataParallel: there is one device, so the module runs as it is", "the module itself")
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


class ReducedModule(type):
    """The class of DistributedDataParallel: the modules that it has prepared are its instances."""

    def __instancecheck__(cls, module: Any) -> bool:
        return type(getattr(module, "__dict__", {}).get("reducer")) is Reducer


class DistributedDataParallel(metaclass=ReducedModule):
    """Train copies of a module on several ranks, each with its part of the batch.

    Returns the module itself, prepared: its parameters and buffers become those of rank 0, and each backward, in a
    graph too, replaces the gradients by their mean over the ranks, so that equal optimizers keep the copies equal. If
    the parts of the batch are equally large, that is the gradient of the whole batch. `model.module` is the module,
    too, and `model.no_sync()` a context manager for backwards that only add up.

    process_group: the ranks; by default all.  broadcast_buffers: each training forward copies the buffers of rank 0.
    init_sync, or broadcast_parameters as in OneFlow: False if parameters and buffers are equal already.
    bucket_cap_mb: gradients are reduced together up to this size.  find_unused_parameters: True if a backward may leave
    out parameters: those that no rank has used get no gradient. Otherwise a warning names them, and they count as zero,
    as in OneFlow; in a graph that is an error. The other arguments, of PyTorch and OneFlow, do not change results and
    have no effect. Source: Li et al. 2020 (VLDB), section 3.2.
    """

    def __new__(
        cls,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        broadcast_parameters: bool = True,
        bucket_size: int = 10,
        use_bucket: bool = True,
    ) -> Any:
        if not isinstance(module, Module):
            fail(ModuleError, "DistributedDataParallel takes a module", "DistributedDataParallel(model)", module=module)
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if tensor.is_global:
                what = f"DistributedDataParallel: {name} is a global tensor"
                hint = "the module itself: the gradients of global tensors are those of the whole batch"
                fail(ModuleError, what, hint, **{name: tensor})
        reducer = Reducer(module, member(process_group, "DistributedDataParallel"), find_unused_parameters)
        if init_sync and broadcast_parameters and reducer.among.size > 1:
            for tensor in (*module.parameters(), *module.buffers()):
                reducer.broadcast(tensor)
        reducer.listen(int((bucket_cap_mb or 25) * (1 << 20)), broadcast_buffers)
        vars(module).update(reducer=reducer, module=module, no_sync=reducer.no_sync)
        return module


class Bucket:
    """Parameters of one dtype whose gradients are reduced by one call. waiting: those without one in this backward."""

    def __init__(self) -> None:
        self.parameters: list[Any] = []
        self.nbytes = 0
        self.waiting: set[int] = set()


class Reducer:
    """Averages the gradients of a module over the ranks, bucket by bucket in a fixed order, while backward runs."""

    def __init__(self, module: Module, among: Communicator, find_unused: bool):
        self.among, self.find_unused, self.on = among, find_unused, True
        self.names = {id(p): name for name, p in module.named_parameters()}
        self.module, self.buckets, self.done = module, list[Bucket](), 0
        self.bucket_of: dict[int, Bucket] = {}

    def __reduce__(self) -> Any:
        """A copy of the module, such as a moving average of its weights, or a saved one, is an ordinary module."""
        return CopiedReducer, ()

    def listen(self, limit: int, broadcast_buffers: bool) -> None:
        """Divide the parameters into buckets, the last ones first, and register the hooks."""
        if self.among.size == 1:
            return
        for p in reversed([p for p in self.module.parameters() if p.requires_grad]):
            last = self.buckets[-1] if self.buckets else None
            if last is None or last.nbytes + p.nbytes > limit or last.parameters[0].dtype is not p.dtype:
                self.buckets.append(last := Bucket())
            last.parameters.append(p)
            last.nbytes += p.nbytes
            self.bucket_of[id(p)] = last
            p.register_post_accumulate_grad_hook(self.ready)
        if broadcast_buffers:
            self.module.register_forward_pre_hook(self.before_forward)

    def before_forward(self, module: Module, inputs: Any) -> None:
        if self.on and module.training and is_grad_enabled():
            for buffer in module.buffers():
                if in_graph():
                    with no_grad():
                        write_into(buffer, share(buffer, target=(self.placement, (broadcast,))))
                else:
                    self.broadcast(buffer)

    @property
    def placement(self) -> Placement:
        return Placement("cpu", self.among.ranks)

    def broadcast(self, tensor: Any) -> None:
        """Overwrite a tensor with that of rank 0."""
        array = host_array(tensor.detach()._read_array("broadcast"))
        self.among.broadcast(array, 0)
        if self.among.rank:
            put(tensor, array)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let backwards in this block add up gradients of this rank only; the next one outside averages the sum."""
        before = self.on
        self.switch(False)
        try:
            yield
        finally:
            self.switch(before)

    def switch(self, on: bool) -> None:
        """Turn the reduction on or off. Attributes of a module are part of the key of a plan."""
        self.on = self.module.reduces_gradients = on

    def ready(self, parameter: Any) -> None:
        """A hook: the gradient of a parameter is complete."""
        if not self.on:
            return
        if at_end_of_backward(self.finish):  # the first gradient of this backward
            self.done = 0
            for bucket in self.buckets:
                bucket.waiting = {id(p) for p in bucket.parameters}
        self.bucket_of[id(parameter)].waiting.discard(id(parameter))
        if in_graph():
            parameter.grad = self.averaged(parameter.grad)
        else:
            self.reduce_complete()

    def averaged(self, g: Any) -> Any:
        """The mean of a gradient over the ranks, by ops, which a graph records."""
        rank, placement = current_context().rank, self.placement
        terms = as_global(g, shape=g.spec.shape, target=(placement, (partial_sum,)), rank=rank)
        return as_local(boxed(terms, placement, (broadcast,), rank), rank=rank) / self.among.size

    def reduce_complete(self) -> None:
        """Reduce the next buckets whose gradients are all there."""
        while self.done < len(self.buckets) and not self.buckets[self.done].waiting:
            self.reduce(self.buckets[self.done])
            self.done += 1

    def finish(self) -> None:
        """At the end of a backward: deal with parameters without a gradient."""
        missing = [self.names[i] for bucket in self.buckets[self.done :] for i in bucket.waiting]
        if missing and not self.find_unused:
            what = f"DistributedDataParallel: {len(missing)} parameters got no gradient on rank {self.among.rank}"
            hint = "DistributedDataParallel(model, find_unused_parameters=True); or requires_grad_(False) for them"
            unused = ", ".join(sorted(missing))
            if in_graph():
                fail(GradError, f"{what}, so it cannot be averaged", hint, unused=unused)
            warn(f"{what}, and count as zero", hint, unused=unused)
        for bucket in self.buckets[self.done :] if not in_graph() else ():
            self.reduce(bucket)

    def reduce(self, bucket: Bucket) -> None:
        """Average the gradients of a bucket; those that no rank has stay None, if unused parameters are looked for."""
        first, xp = bucket.parameters[0], namespace()
        total = sum([p.numel() for p in bucket.parameters])
        used = xp.array([p.grad is not None or not self.find_unused for p in bucket.parameters], "int64")
        flat, at = xp.zeros(total, first.spec.np), 0
        for p in bucket.parameters:
            if p.grad is not None:
                flat[at : at + p.numel()] = to_host(p.grad.array).reshape(-1)
            at += p.numel()
        if self.find_unused:
            self.among.all_reduce(used, "max")
        self.among.all_reduce(flat)
        flat /= self.among.size
        at = 0
        for p, anywhere in zip(bucket.parameters, used):
            if anywhere:
                if p.grad is None:
                    p.grad = p.detach().clone()
                put(p.grad, flat[at : at + p.numel()].reshape(p.shape))
            at += p.numel()


Reducer.ready.linear = True  # type: ignore[attr-defined]  # graphs may reduce the gradients of parts of a batch


class CopiedReducer(Reducer):
    """That of a copy of a prepared module: it reduces nothing."""

    def __init__(self) -> None:
        self.on = False

    def switch(self, on: bool) -> None:
        """Stay off."""


def in_graph() -> bool:
    return MODE.get().trace is not None


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
