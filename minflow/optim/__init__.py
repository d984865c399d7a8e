"""Optimizers and learning rate schedules.

The arithmetic of each optimizer is one op (`core/ops/update.py`); the classes here hold parameters, groups and state.
Read next: `optimizer.py`, then `sgd.py`.
"""

from ..core.messages.near import tell as _tell
from . import lr_scheduler as lr_scheduler
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .optimizer import Optimizer as Optimizer
from .sgd import SGD as SGD

__getattr__ = _tell("flow.optim", globals())
