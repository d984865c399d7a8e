"""nn: layers, containers, losses, initialisation. The public face; a name comes from the file of its family.

Read next: `module.py`, then `linear.py`.
"""

from ..core.near import tell as _tell
from . import functional as functional
from . import init as init
from . import utils as utils
from .activation import GELU as GELU
from .activation import LeakyReLU as LeakyReLU
from .activation import LogSoftmax as LogSoftmax
from .activation import ReLU as ReLU
from .activation import ReLU6 as ReLU6
from .activation import Sigmoid as Sigmoid
from .activation import SiLU as SiLU
from .activation import Softmax as Softmax
from .activation import Tanh as Tanh
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import ParameterDict as ParameterDict
from .containers import ParameterList as ParameterList
from .containers import Sequential as Sequential
from .conv import Conv2d as Conv2d
from .dropout import Dropout as Dropout
from .embedding import Embedding as Embedding
from . import graph as graph
from .graph import Graph as Graph
from .linear import Identity as Identity
from .linear import Linear as Linear
from .loss import BCELoss as BCELoss
from .loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .loss import CrossEntropyLoss as CrossEntropyLoss
from .loss import L1Loss as L1Loss
from .loss import MSELoss as MSELoss
from .loss import NLLLoss as NLLLoss
from .module import Module as Module
from .norm import BatchNorm1d as BatchNorm1d
from .norm import BatchNorm2d as BatchNorm2d
from .norm import LayerNorm as LayerNorm
from .parameter import Parameter as Parameter
from .pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .pooling import AvgPool2d as AvgPool2d
from .pooling import MaxPool2d as MaxPool2d
from .shape import Flatten as Flatten
from .shape import Unflatten as Unflatten

_tell("flow.nn", globals())  # its __getattr__ is that of `job`, which also knows the names of before
