"""weight_norm and spectral_norm: compute a layer's weight from parameters that are trained in its place.

The weight itself is then not a parameter; it is recomputed on every access. Read next: `../module.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.base.errors import ModuleError, OutOfRangeError
from ...core.functions import norm
from ...core.functions.creation import randn
from ...core.grad.modes import no_grad
from ...core.mode import bump_mutations
from ...core.ops.global_tensors import on_each_rank
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..functional import normalize
from ..module import Module
from ..parameter import Parameter


class ComputedWeight:
    """Base of objects that compute one weight of a module on every access: see `Module.__getattr__`."""

    def __init__(self, name: str = ""):
        self.name = name

    def weight(self, module: Module) -> Tensor:
        """The weight, computed from the current parameters."""
        raise NotImplementedError

    def assign(self, module: Module, value: Any) -> None:
        """Called by `module.weight = value`."""
        what = f"{self.name!r} of this {type(module).__name__} is computed by {type(self).__name__}"
        fail(ModuleError, what, f"write the parameters that it is computed from: {', '.join(module._parameters)}")

    def begin(self, module: Module) -> None:
        """Let accesses to the attribute of the module compute the weight."""
        module.__dict__.setdefault("_computed_tensors", {})[self.name] = self


def pop_parameter(name: str, module: Module, what: str) -> Parameter:
    """Remove the parameter from its module, to be replaced by a computed tensor, and return it."""
    weight = module._parameters.get(name)
    if weight is None:
        have = ", ".join(module._parameters) or "none"
        fail(ModuleError, f"{what}: {type(module).__name__} has no parameter {name!r}", f"one of its own: {have}")
    del module._parameters[name]
    bump_mutations()
    return weight


def restore_parameter(kind: type, name: str, module: Module, what: str) -> None:
    """Make the current weight a parameter again."""
    computed = module.__dict__.get("_computed_tensors", {})
    if not isinstance(computed.get(name), kind):
        what = f"{what}: {name!r} of this {type(module).__name__} is not computed by {kind.__name__}"
        fail(ModuleError, what, "the module that was passed to it, and only once")
    with no_grad():
        weight = computed[name].weight(module).detach()
    del computed[name]
    for part in ("_g", "_v", "_orig"):
        module._parameters.pop(name + part, None)
    for part in ("_u", "_v"):
        module._buffers.pop(name + part, None)
    module.register_parameter(name, Parameter(weight))


# ---- weight norm -------------------------------------------------------------------------------------------------


class WeightNorm(ComputedWeight):
    """weight = g * v / |v|, the norm over all axes but `dim`."""

    def __init__(self, name: str, dim: int | None):
        super().__init__(name)
        self.dim = dim

    def length(self, v: Tensor) -> Tensor:
        ndim = v.spec.ndim
        if self.dim is None:
            return norm(v)
        others = tuple(i for i in range(ndim) if i != self.dim % ndim)
        return norm(v, 2, others, keepdim=True) if others else v.abs()

    def weight(self, module: Module) -> Tensor:
        g, v = (module._parameters[f"{self.name}_{part}"] for part in "gv")
        return v * (g / self.length(v))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the direction and the length of a weight separately: weight = g * v / |v|. Salimans & Kingma 2016, eq. 2.

    The module gets the parameters `name`_g and `name`_v in place of `name`. dim: the axis of the outputs, each of which
    has its own length; None for one length of the whole weight. Returns the module.
    """
    hook = WeightNorm(name, dim)
    weight = pop_parameter(name, module, "weight_norm")
    with no_grad():
        length = hook.length(weight).detach()
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    hook.begin(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo weight_norm: the current weight becomes a parameter again. Returns the module."""
    restore_parameter(WeightNorm, name, module, "remove_weight_norm")
    return module


# ---- spectral norm -----------------------------------------------------------------------------------------------


class SpectralNorm(ComputedWeight):
    """weight = w / sigma, where sigma = u @ w @ v approximates its largest singular value by power iteration."""

    def __init__(self, name: str, steps: int, eps: float, dim: int):
        super().__init__(name)
        self.steps, self.eps, self.dim = steps, eps, dim

    def matrix(self, weight: Tensor) -> Tensor:
        weight = weight.movedim(self.dim, 0) if self.dim else weight
        return weight.reshape(weight.spec.shape[0], -1)

    def step(self, module: Module, steps: int) -> None:
        matrix = self.matrix(module._parameters[f"{self.name}_orig"].detach())
        u, v = (module._buffers[f"{self.name}_{part}"] for part in "uv")
        with no_grad():
            for _ in range(steps):
                v.copy_(normalize(matrix.T @ u, dim=0, eps=self.eps))
                u.copy_(normalize(matrix @ v, dim=0, eps=self.eps))

    def weight(self, module: Module) -> Tensor:
        original = module._parameters[f"{self.name}_orig"]
        u, v = (module._buffers[f"{self.name}_{part}"].clone() for part in "uv")
        return original / (u * (self.matrix(original) @ v)).sum()

    def __call__(self, module: Module, args: tuple) -> None:
        """The forward pre-hook."""
        if module.training and module.__dict__["_computed_tensors"].get(self.name) is self:
            self.step(module, self.steps)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, so that the layer has spectral norm 1. Miyato et al. 2018, eq. 8.

    The module gets the parameter `name`_orig and the buffers `name`_u and `name`_v, its approximate singular vectors;
    each call in training mode refines them by n_power_iterations steps. dim: the axis of the outputs (1 for transposed
    convolutions, else 0). Returns the module.
    """
    if n_power_iterations < 1:
        what = f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}"
        fail(OutOfRangeError, what, "n_power_iterations=1")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    hook = SpectralNorm(name, n_power_iterations, eps, dim)
    weight = pop_parameter(name, module, "spectral_norm")
    module.register_parameter(f"{name}_orig", weight)
    with no_grad():
        for part, size in zip("uv", hook.matrix(weight).spec.shape):
            start = randn(size, dtype=weight.dtype, device=weight.device)
            start = on_each_rank(start, weight.placement) if weight.is_global else start
            module.register_buffer(f"{name}_{part}", normalize(start, dim=0, eps=eps))
    hook.step(module, 15)
    hook.begin(module)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo spectral_norm: the current weight becomes a parameter again. Returns the module."""
    restore_parameter(SpectralNorm, name, module, "remove_spectral_norm")
    return module
