"""Learning rate schedules: objects whose `step()`, called after `optimizer.step()`, sets `group["lr"]`.

Independent of how an optimizer uses the rate. Read next: `base.py`, then `factors.py`.
"""

from ...core.messages.suggestions import name_hints as _name_hints
from .base import LRScheduler as LRScheduler
from .composite import ChainedScheduler as ChainedScheduler, SequentialLR as SequentialLR, WarmupLR as WarmupLR
from .curves import (
    CosineAnnealingLR as CosineAnnealingLR,
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CosineDecayLR as CosineDecayLR,
    PolynomialLR as PolynomialLR,
)
from .cycles import CyclicLR as CyclicLR, OneCycleLR as OneCycleLR
from .factors import (
    ConstantLR as ConstantLR,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    MultiplicativeLR as MultiplicativeLR,
    MultiStepLR as MultiStepLR,
    StepLR as StepLR,
)
from .plateau import ReduceLROnPlateau as ReduceLROnPlateau

_LRScheduler = LRScheduler  # used by older programs
WarmUpLR = WarmupLR

__getattr__ = _name_hints("flow.optim.lr_scheduler", globals())
