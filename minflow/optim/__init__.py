"""Optimizers and learning rate schedules.

The arithmetic of each optimizer is one op (`core/ops/update.py`); the classes here hold parameters, groups and state.
Read next: `optimizer.py`, then `sgd.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.messages.suggestions import by_module as _by_module, name_hints as _name_hints
from .adam import Adam as Adam, AdamW as AdamW
from .moments import LAMB as LAMB, Adamax as Adamax, NAdam as NAdam, RAdam as RAdam, SparseAdam as SparseAdam
from .optimizer import Optimizer as Optimizer
from .sgd import SGD as SGD

if _TYPE_CHECKING:
    from . import lr_scheduler as lr_scheduler, swa_utils as swa_utils
    from .adaptive import ASGD as ASGD, Adadelta as Adadelta, Adagrad as Adagrad, RMSprop as RMSprop, Rprop as Rprop
    from .lbfgs import LBFGS as LBFGS
    from .matrices import Adafactor as Adafactor, Muon as Muon

_LATER = _by_module(
    {  # imported on first use: few programs need them
        "adaptive": "ASGD Adadelta Adagrad RMSprop Rprop",
        "lbfgs": "LBFGS",
        "matrices": "Adafactor Muon",
    }
) | {"lr_scheduler": "lr_scheduler.", "swa_utils": "swa_utils."}

__getattr__ = _name_hints("flow.optim", globals(), _LATER)
