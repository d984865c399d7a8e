"""`flow.optimizer`: optimizers of job functions. This module only collects the public names.

Read next: `optimizer_base.py` (the protocol), `rules.py` (the formulas), `schedule.py` (the learning rates).
"""

from . import grad_clipping as grad_clipping
from . import loss_scale as loss_scale
from ...core.messages.suggestions import missing_names as _missing_names
from .optimizer_base import Optimizer as Optimizer
from .schedule import CosineScheduler as CosineScheduler
from .schedule import CustomScheduler as CustomScheduler
from .schedule import ExponentialScheduler as ExponentialScheduler
from .schedule import InverseTimeScheduler as InverseTimeScheduler
from .schedule import LinearCosineScheduler as LinearCosineScheduler
from .schedule import LrScheduler as LrScheduler
from .schedule import NaturalExpScheduler as NaturalExpScheduler
from .schedule import PiecewiseConstantScheduler as PiecewiseConstantScheduler
from .schedule import PiecewiseScalingScheduler as PiecewiseScalingScheduler
from .schedule import PolynomialSchduler as PolynomialSchduler
from .schedule import PolynomialScheduler as PolynomialScheduler
from .schedule import warmup as warmup
from .rules import LAMB as LAMB
from .rules import LARS as LARS
from .rules import SGD as SGD
from .rules import SGDW as SGDW
from .rules import Adam as Adam
from .rules import AdamW as AdamW
from .rules import CombinedOptimizer as CombinedOptimizer
from .rules import LazyAdam as LazyAdam
from .rules import RMSProp as RMSProp

__getattr__ = _missing_names("flow.optimizer", globals())
