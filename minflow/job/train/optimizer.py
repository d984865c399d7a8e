"""`flow.optimizer`: optimizers of job functions. This module only collects the public names.

Read next: `optimizer_base.py` (the protocol), `rules.py` (the formulas), `schedule.py` (the learning rates).
"""

from ...core.messages.suggestions import missing_names as _missing_names
from . import grad_clipping as grad_clipping, loss_scale as loss_scale
from .optimizer_base import Optimizer as Optimizer
from .rules import (
    LAMB as LAMB,
    LARS as LARS,
    SGD as SGD,
    SGDW as SGDW,
    Adam as Adam,
    AdamW as AdamW,
    CombinedOptimizer as CombinedOptimizer,
    LazyAdam as LazyAdam,
    RMSProp as RMSProp,
)
from .schedule import (
    CosineScheduler as CosineScheduler,
    CustomScheduler as CustomScheduler,
    ExponentialScheduler as ExponentialScheduler,
    InverseTimeScheduler as InverseTimeScheduler,
    LinearCosineScheduler as LinearCosineScheduler,
    LrScheduler as LrScheduler,
    NaturalExpScheduler as NaturalExpScheduler,
    PiecewiseConstantScheduler as PiecewiseConstantScheduler,
    PiecewiseScalingScheduler as PiecewiseScalingScheduler,
    PolynomialSchduler as PolynomialSchduler,
    PolynomialScheduler as PolynomialScheduler,
    warmup as warmup,
)

__getattr__ = _missing_names("flow.optimizer", globals())
