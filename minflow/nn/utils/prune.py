"""`flow.nn.utils.prune`: set weights to zero by a mask, so that they stay zero in training.

`weight` becomes `weight_orig * weight_mask`, computed on every access: the parameter is `weight_orig`, the mask a
buffer. Source: Frankle & Carbin 2019 (arXiv:1803.03635) for the use of such masks. Read next: `weight_norms.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

from ...core.base.errors import ModuleError, OutOfRangeError, ShapeError
from ...core.functions import cat, norm, topk
from ...core.functions.creation import ones_like, rand, rand_like, zeros_like
from ...core.grad.modes import no_grad
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail
from ...core.tensor import Tensor
from ..module import Module
from .weight_norms import ComputedWeight, pop_parameter


class BasePruningMethod(ComputedWeight):
    """Base of pruning methods: a subclass defines `compute_mask(t, default_mask)`.

    PRUNING_TYPE: "unstructured" if the method sees only the elements that earlier methods have left, "structured" if it
    sees the slices along `dim` that are left, "global" if it sees the whole tensor.
    """

    PRUNING_TYPE = "unstructured"
    name = ""
    handle: Any = None  # of the hook
    _tensor_name = property(lambda self: self.name, doc="Name of the parameter, as PyTorch calls the attribute.")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask of t's shape with 0 for each element to prune. default_mask: the mask of earlier methods."""
        raise NotImplementedError

    def weight(self, module: Module) -> Tensor:
        return self.apply_mask(module)

    def assign(self, module: Module, value: Tensor) -> None:
        what = f"prune: {self.name!r} of this {type(module).__name__} is {self.name}_orig * {self.name}_mask"
        fail(ModuleError, what, f"module.{self.name}_orig.data.copy_(x), or prune.remove(module, {self.name!r})")

    def __call__(self, module: Module, inputs: tuple) -> None:
        """The forward pre-hook, which does nothing: it lists the method among the hooks of the module."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor, computed from the parameter and the mask."""
        original = module._parameters[f"{self.name}_orig"]
        return module._buffers[f"{self.name}_mask"].to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, again if it is pruned already, and return the pruning method.

        The other arguments are those of the method.  importance_scores: of the shape of the parameter, in its place.
        """
        method = cls(*args, **kwargs)
        old = computed_by(module, name)
        t = module._parameters.get(name if old is None else f"{name}_orig")
        if t is None:
            pop_parameter(name, module, "prune")  # raises the error for a missing parameter
        if importance_scores is not None and importance_scores.spec.shape != t.spec.shape:
            what = f"prune: importance_scores must have the shape of {name!r}, {tuple(t.spec.shape)}"
            fail(ShapeError, what, "importance_scores=None", importance_scores=importance_scores)
        with no_grad():
            scores = getattr(module, name).detach() if importance_scores is None else importance_scores
            default = ones_like(t) if old is None else module._buffers[f"{name}_mask"]
            active = method
            if old is not None:
                active = PruningContainer(*(old if isinstance(old, PruningContainer) else [old]))
                method.name = name
                active.add_pruning_method(method)
            mask = active.compute_mask(scores, default).to(t.dtype)
        active.name = name
        if old is None:
            module.register_parameter(f"{name}_orig", pop_parameter(name, module, "prune"))
        else:
            old.handle.remove()
        module.register_buffer(f"{name}_mask", mask)
        active.begin(module)
        active.handle = module.register_forward_pre_hook(active)
        return active

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return the pruned version of a tensor, without a module."""
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask).to(t.dtype)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter again: the same object, with zeros in it."""
        name = self.name
        original = module._parameters[f"{name}_orig"]
        with no_grad():
            original.copy_(self.apply_mask(module))
        self.handle.remove()
        del module.__dict__["_computed_tensors"][name]
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def computed_by(module: Module, name: str) -> Any:
    """The pruning method of a parameter, or None."""
    method = module.__dict__.get("_computed_tensors", {}).get(name)
    return method if isinstance(method, BasePruningMethod) else None


class PruningContainer(BasePruningMethod):
    """A sequence of pruning methods of one tensor; the last one prunes what the others have left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.name = self.name or method.name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method. Raises ModuleError if it prunes a tensor of another name."""
        if not isinstance(method, BasePruningMethod) or method.name != self.name:
            what = f"prune: the container is for {self.name!r}, got {getattr(method, 'name', method)!r}"
            fail(ModuleError, what, "a BasePruningMethod of the same tensor")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method, mask = self._pruning_methods[-1], default_mask.clone()
        kept: Any = slice(None)
        if method.PRUNING_TYPE == "unstructured":
            kept = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            others = [i for i in range(t.ndim) if i != dim]
            kept = (*[slice(None)] * dim, (mask.sum(others) != 0 if others else mask != 0).nonzero().flatten())
        mask[kept] = method.compute_mask(t[kept], mask[kept]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prune nothing: a mask of ones."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prune random elements. amount: their number, or a float, the part of all."""

    def __init__(self, amount: float):
        self.amount = checked_amount(amount)

    def scores(self, t: Tensor) -> Tensor:
        """How much each element matters; the smallest are pruned."""
        return rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = number_of(self.amount, t.spec.size)
        mask = default_mask.clone().flatten()
        if count:
            mask[topk(self.scores(t).flatten(), count, largest=False).indices] = 0
        return mask.reshape(t.spec.shape)


class L1Unstructured(RandomUnstructured):
    """Prune the elements that are nearest to 0. amount: their number, or a float, the part of all."""

    def scores(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(BasePruningMethod):
    """Prune random slices along an axis, such as channels. amount: their number, or a float, the part of all."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1):
        self.amount, self.dim = checked_amount(amount), dim

    def scores(self, t: Tensor, others: list[int]) -> Tensor:
        """How much each slice matters. others: the other axes."""
        return rand(t.spec.shape[self.dim])

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            what = f"prune: slices of a tensor with {t.ndim} axis are single elements"
            fail(ShapeError, what, "prune.l1_unstructured", t=t)
        size, dim = t.spec.shape[self.dim], self.dim % t.ndim
        if not (count := number_of(self.amount, size)):
            return default_mask
        kept = topk(self.scores(t, [i for i in range(t.ndim) if i != dim]), size - count).indices
        mask = zeros_like(default_mask)
        mask[(*[slice(None)] * dim, kept)] = 1
        return mask * default_mask


class LnStructured(RandomStructured):
    """Prune the slices along an axis that have the smallest norm. n: the order of the norm, such as 1, 2 or inf."""

    def __init__(self, amount: float, n: float | str, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Tensor, others: list[int]) -> Tensor:
        return norm(t, self.n, others)


class CustomFromMask(BasePruningMethod):
    """Prune by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != default_mask.shape:
            what = f"prune: the mask must have the shape {tuple(default_mask.shape)}"
            fail(ShapeError, what, "flow.ones_like(weight)", mask=self.mask)
        return default_mask * self.mask.to(default_mask.dtype)


def checked_amount(amount: float) -> float:
    if isinstance(amount, bool) or not isinstance(amount, Real):
        fail(ModuleError, f"prune: amount must be a number, got {amount!r}", "amount=0.2, a fifth", amount=amount)
    if amount < 0 or (amount > 1 and not isinstance(amount, Integral)):
        what = f"prune: amount must be an int of at least 0, or a float between 0 and 1, got {amount!r}"
        fail(OutOfRangeError, what, "amount=0.2, a fifth", amount=amount)
    return amount


def number_of(amount: float, size: int) -> int:
    """The number of units to prune among `size`."""
    if isinstance(amount, Integral) and amount > size:
        what = f"prune: amount must be at most the number of units that are left, {size}, got {amount}"
        fail(OutOfRangeError, what, "amount=0.2, a fifth", amount=amount)
    return int(amount) if isinstance(amount, Integral) else round(amount * size)


def identity(module: Module, name: str) -> Module:
    """Add a mask of ones to a parameter, and return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of a parameter, and return the module. See RandomUnstructured."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter that are nearest to 0, and return the module. See L1Unstructured."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random slices of a parameter along an axis, and return the module. See RandomStructured."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of a parameter with the smallest norm, and return the module. See LnStructured."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask, and return the module. See CustomFromMask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one vector, such as the smallest fifth of all weights of a model.

    parameters: (module, name) pairs.  pruning_method: an unstructured method.  importance_scores: (module, name) ->
    scores.  The other arguments are those of the method.
    """
    pairs = list(parameters)
    if pruning_method.PRUNING_TYPE != "unstructured":
        fail(ModuleError, "prune: only unstructured methods are global", "pruning_method=prune.L1Unstructured")
    if not pairs:
        fail(ModuleError, "prune: global_unstructured got no parameters", '[(model.fc, "weight")]')
    method = PruningContainer(pruning_method(**kwargs))
    with no_grad():
        weights = [getattr(module, name).detach() for module, name in pairs]
        scores = [(importance_scores or {}).get(pair, weight) for pair, weight in zip(pairs, weights)]
        masks = [m._buffers.get(f"{name}_mask", ones_like(w)) for (m, name), w in zip(pairs, weights)]
        flat = cat([mask.flatten() for mask in masks])
        found = method.compute_mask(cat([s.flatten() for s in scores]), flat)
    for (module, name), weight, mask in zip(pairs, weights, found.split([w.spec.size for w in weights])):
        custom_from_mask(module, name, mask.reshape(weight.spec.shape))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter ordinary again, with zeros in it, and return the module."""
    if (method := computed_by(module, name)) is None:
        what = f"prune.remove: {name!r} of this {type(module).__name__} is not pruned"
        fail(ModuleError, what, "a parameter that prune.l1_unstructured(module, name, amount) was called with")
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """True if a parameter of the module, or of one below it, is pruned."""
    return any(computed_by(it, name) for it in module.modules() for name in it.__dict__.get("_computed_tensors", ()))


__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
           "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
           "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
           "random_structured", "random_unstructured", "remove"]  # fmt: skip
__getattr__ = _name_hints("flow.nn.utils.prune", globals())
