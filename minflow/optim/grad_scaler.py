"""GradScaler (`flow.amp.GradScaler`): a factor of the loss, so that small gradients do not become 0 in float16.

A step whose gradients overflow is skipped, and the factor falls. On a device, a step reads nothing: update rules run in
a mode that keeps the old elements if a flag on the device is set. Counters of steps, which rules read on the host, are
restored before the next step, when the flag has long been copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..core.backend import backend_of_array, is_available
from ..core.base.errors import GradError, OptimError, StateError
from ..core.functions.creation import tensor, zeros
from ..core.functions.fill import copy_of
from ..core.grad.modes import no_grad
from ..core.mode import MODE, Mode, using
from ..core.op import Op
from ..core.ops.elementwise import where
from ..core.source_location import fail
from ..core.spec import cpu, float16, float32, int32
from ..core.tensor import Tensor
from .optimizer import Optimizer

# keys of the state, which are PyTorch's
STATE_KEYS = "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"


class Conditional:
    """Mixin for a mode class: update rules keep the old elements if the flag `skipped` of a device is set.

    undo: gets (tensor, its old elements) of each target on the host.
    """

    skipped: Tensor
    undo: list[tuple[Tensor, Any]]

    def update(self, op: Op, targets: Sequence[Tensor], inputs: Sequence, attrs: Mapping[str, Any]) -> None:
        here = [t for t in targets if t.device is cpu]
        self.undo += [(t, t.array.copy()) for t in here]
        outs = self.run(op, inputs, attrs)  # type: ignore[attr-defined]
        for t, new in zip(targets, outs if op.many else [outs]):
            t.copy_(new if t.device is cpu else where(self.skipped.to(t.device), t, new))

    def reports_mistakes(self) -> bool:
        """False: a gradient that is not finite is expected."""
        return False


@functools.cache
def conditional_class(kind: type) -> type:
    return type(f"Conditional{kind.__name__}", (Conditional, kind), {})


def conditional(mode: Mode, skipped: Tensor, undo: list) -> Mode:
    inner = mode.replace(skipped=skipped, undo=undo)
    inner.__class__ = conditional_class(type(mode))  # type: ignore[arg-type]
    return inner


class StaticGradScaler:
    """A fixed factor of the loss for `graph.set_grad_scaler`: small gradients do not become 0 in float16.

    scale_factor: more than 0; a power of 2 leaves results in float32 unchanged.
    """

    def __init__(self, scale_factor: float):
        if not 0 < scale_factor < float("inf"):
            what = f"StaticGradScaler: scale_factor must be above 0, got {scale_factor}"
            fail(OptimError, what, "StaticGradScaler(65536.0)")
        self.scale_factor = float(scale_factor)


class GradScaler:
    """Multiply the loss by a factor, divide the gradients by it, and adapt it, as in PyTorch.

        scaler.scale(loss).backward()
        scaler.step(optimizer)  # skipped if a gradient is infinite or NaN
        scaler.update()

    The scale is multiplied by `backoff_factor` after a skipped step, and by `growth_factor` after `growth_interval`
    steps without one. device: "cuda", or the CPU; without a GPU, a scaler for "cuda" does nothing. Also
    `GradScaler(init_scale)`, as torch.cuda.amp has it.
    Source: Micikevicius et al. 2018 (arXiv:1710.03740), section 3.2.
    """

    def __init__(
        self,
        device: str | float = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        named = isinstance(device, str)
        if not growth_factor > 1.0 or not 0.0 < backoff_factor < 1.0:
            what = f"the factors must be above 1 and below 1, got {growth_factor} and {backoff_factor}"
            fail(OptimError, f"GradScaler: {what}", "GradScaler(growth_factor=2.0, backoff_factor=0.5)")
        self.device = device if named else "cuda"
        self.enabled = enabled and is_available(str(self.device).partition(":")[0])
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval
        self.factor: Tensor | float = float(init_scale if named else device)  # a number until the device is known
        self.growth: Tensor | int = 0  # steps without a skipped one
        self.__setstate__({})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # optimizer -> the flag of its gradients, since the last update; those that have taken a step
        self.flags: dict[Optimizer, Tensor] = {}
        self.stepped: set[Optimizer] = set()
        # optimizer -> (a function that waits for the flag of its last step, what to restore if it was skipped)
        self.waiting: WeakKeyDictionary[Optimizer, tuple[Callable, list]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name not in ("flags", "stepped", "waiting")}

    def scale(self, outputs: Any) -> Any:
        """The loss, or a list or tuple of losses, times the scale."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)([self.scale(x) for x in outputs])
        scale = self.on_device(outputs)[0]
        return outputs * (scale.item() if outputs.device is cpu else scale.to(outputs.device))

    def on_device(self, near: Tensor) -> tuple[Tensor, Tensor]:
        """The scale and the count of steps as tensors, on the device of `near` if they were numbers until now."""
        if not isinstance(self.factor, Tensor):
            self.factor = tensor(self.factor, float32, near.device)
            self.growth = tensor(self.growth, int32, near.device)
        return self.factor, self.growth  # type: ignore[return-value]

    @no_grad()
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer by the scale, once before its step: to clip them, for example.

        Raises GradError for a second call, and for gradients in float16, which could not be divided.
        """
        if not self.enabled:
            return
        if optimizer in self.flags or optimizer in self.stepped:
            what = "unscale_() was called twice" if optimizer in self.flags else "unscale_() was called after step()"
            fail(GradError, f"GradScaler: {what}", "scaler.update() after each step")
        gradients = [g for group in optimizer.param_groups for p in group["params"] if (g := p.grad) is not None]
        if not gradients:
            fail(GradError, "GradScaler: the optimizer has no gradients", "scaler.scale(loss).backward()")
        flag = zeros((), device=next((g.device for g in gradients if g.device is not cpu), cpu))
        inverse = {}  # by device
        for g in gradients:
            if g.dtype is float16:
                hint = "model.float(), and autocast for float16 within the model"
                fail(GradError, "GradScaler: gradients in float16 cannot be divided by the scale", hint, gradient=g)
            if g.device not in inverse:
                inverse[g.device] = self.inverse(g)
            g.mul_(inverse[g.device])
            flag = flag.maximum((~g.isfinite()).any().to(flag.device, float32))
        self.flags[optimizer] = flag

    def inverse(self, near: Tensor) -> Tensor | float:
        """1 / scale in float32 as a factor of this gradient: on the CPU a number, which may scale global ones, too."""
        result = self.on_device(near)[0].double().reciprocal().float()
        return result.item() if near.device is cpu else result.to(near.device)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is infinite or NaN. Divides the gradients by the scale before, if
        `unscale_` has not. Returns the result of the step; None if it was skipped.
        """
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs.get("closure") is not None:
            fail(GradError, "GradScaler: a closure would use another scale", "scaler.step(optimizer) without one")
        if optimizer in self.stepped:
            fail(GradError, "GradScaler: step() was called twice", "scaler.update() after each step")
        if optimizer not in self.flags:
            self.unscale_(optimizer)
        self.stepped.add(optimizer)
        flag = self.flags[optimizer]
        if flag.device is cpu or not optimizer._traceable:
            return None if flag.item() else optimizer.step(**kwargs)
        self.restore(optimizer)
        undo: list = []
        with using(conditional(MODE.get(), flag > 0, undo)):
            result = optimizer.step(**kwargs)
        if undo:
            if optimizer not in self.waiting:
                optimizer.register_state_dict_pre_hook(self.restore)
            self.waiting[optimizer] = backend_of_array(flag.array).begin_copy(flag.array), undo
        return result

    def restore(self, optimizer: Optimizer) -> None:
        """Restore the counters of the last step of an optimizer if it was skipped."""
        skipped, undo = self.waiting.get(optimizer, (None, []))
        if skipped is not None and undo and skipped() > 0:
            for t, old in undo:
                t.copy_(copy_of(old))
        undo.clear()

    @no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale after the steps of all optimizers; or set it."""
        if not self.enabled:
            return
        flags = [*self.flags.values()]
        if new_scale is not None:
            new = float(new_scale)
            self.factor = new if not isinstance(self.factor, Tensor) else self.factor.fill_(new)
        elif not flags:
            fail(
                GradError, "GradScaler: no step since the last update", "scaler.step(optimizer) before scaler.update()"
            )
        else:
            self.adapt(flags)
        self.flags.clear()
        self.stepped.clear()

    def adapt(self, flags: list[Tensor]) -> None:
        """Adapt the scale to the flags, without reading them."""
        scale, growth = self.on_device(flags[0])
        skipped = functools.reduce(Tensor.maximum, [flag.to(scale.device) for flag in flags]) > 0
        counted = growth + 1
        grown = scale * self.growth_factor
        grows = (counted == self.growth_interval) & grown.isfinite()
        scale.copy_(where(skipped, scale * self.backoff_factor, where(grows, grown, scale)))
        growth.copy_(counted * ~(skipped | (counted == self.growth_interval)))

    # ---- settings and state ------------------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale; 1 if the scaler does nothing. Waits for the device."""
        return float(self.factor) if self.enabled else 1.0

    def is_enabled(self) -> bool:
        """True if losses are scaled."""
        return self.enabled

    def get_growth_factor(self) -> float:
        """Return the factor of the scale after `growth_interval` steps."""
        return self.growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after `growth_interval` steps."""
        self.growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after a skipped step."""
        return self.backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after a skipped step."""
        self.backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps without a skipped one after which the scale grows."""
        return self.growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without a skipped one after which the scale grows."""
        self.growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale, its settings and the count of steps, with PyTorch's keys; empty if the scaler does nothing."""
        if not self.enabled:
            return {}
        values = self.get_scale(), self.growth_factor, self.backoff_factor, self.growth_interval, int(self.growth)
        return dict(zip(STATE_KEYS, values))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state of a scaler, also of PyTorch's. Does nothing if this scaler does nothing. Raises StateError
        for any other state.
        """
        if not isinstance(state_dict, Mapping) or not set(STATE_KEYS).issuperset(state_dict):
            what = "GradScaler.load_state_dict: this is not the state of a GradScaler"
            fail(StateError, what, "scaler.state_dict()", state_dict=state_dict)
        if not self.enabled:
            return
        if missing := [key for key in STATE_KEYS if key not in state_dict]:
            what = f"GradScaler.load_state_dict: the state has no {', '.join(missing)}, as that of a disabled scaler"
            fail(StateError, what, "scaler.state_dict() of an enabled scaler", state_dict=state_dict)
        self.factor, self.growth = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self.growth_factor, self.backoff_factor, self.growth_interval = [state_dict[key] for key in STATE_KEYS[1:4]]
