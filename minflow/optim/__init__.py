"""Optimizers and learning rate schedules.

The arithmetic of each optimizer is one op (`core/ops/update.py`); the classes here hold parameters, groups and state.
Read next: `optimizer.py`, then `sgd.py`.
"""

from ..core.messages.near import name_hints as _name_hints
from . import lr_scheduler as lr_scheduler
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .optimizer import Optimizer as Optimizer
from .sgd import SGD as SGD

__getattr__ = _name_hints("flow.optim", globals())
