"""nn: layers, containers, losses, initialisation. This module only re-exports names from the modules that define them.

Read next: `module.py`, then `modules/linear.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..core.messages.suggestions import name_hints as _name_hints
from . import functional as functional
from . import init as init
from . import parallel as parallel
from . import utils as utils
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import ParameterDict as ParameterDict
from .containers import ParameterList as ParameterList
from .containers import Sequential as Sequential
from .module import Module as Module
from .modules.activation import GELU as GELU
from .modules.activation import LeakyReLU as LeakyReLU
from .modules.activation import LogSoftmax as LogSoftmax
from .modules.activation import ReLU as ReLU
from .modules.activation import ReLU6 as ReLU6
from .modules.activation import Sigmoid as Sigmoid
from .modules.activation import SiLU as SiLU
from .modules.activation import Softmax as Softmax
from .modules.activation import Tanh as Tanh
from .modules.adaptive_pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .modules.adaptive_pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .modules.adaptive_pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from .modules.adaptive_pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .modules.adaptive_pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .modules.adaptive_pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from .modules.adaptive_pooling import MaxUnpool1d as MaxUnpool1d
from .modules.adaptive_pooling import MaxUnpool2d as MaxUnpool2d
from .modules.adaptive_pooling import MaxUnpool3d as MaxUnpool3d
from .modules.attention import MultiheadAttention as MultiheadAttention
from .modules.batch_norms import FusedBatchNorm1d as FusedBatchNorm1d
from .modules.batch_norms import FusedBatchNorm2d as FusedBatchNorm2d
from .modules.batch_norms import FusedBatchNorm3d as FusedBatchNorm3d
from .modules.batch_norms import SyncBatchNorm as SyncBatchNorm
from .modules.conv import Conv1d as Conv1d
from .modules.conv import Conv2d as Conv2d
from .modules.conv import Conv3d as Conv3d
from .modules.conv_transpose import ConvTranspose1d as ConvTranspose1d
from .modules.conv_transpose import ConvTranspose2d as ConvTranspose2d
from .modules.conv_transpose import ConvTranspose3d as ConvTranspose3d
from .modules.distance import (
    Bilinear as Bilinear,
)
from .modules.distance import (
    CosineSimilarity as CosineSimilarity,
)
from .modules.distance import (
    PairwiseDistance as PairwiseDistance,
)
from .modules.dropout import (
    AlphaDropout as AlphaDropout,
)
from .modules.dropout import Dropout as Dropout
from .modules.dropout import (
    Dropout1d as Dropout1d,
)
from .modules.dropout import (
    Dropout2d as Dropout2d,
)
from .modules.dropout import (
    Dropout3d as Dropout3d,
)
from .modules.dropout import (
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from .modules.embedding import Embedding as Embedding
from .modules.embedding import EmbeddingBag as EmbeddingBag
from .modules.group_norm import CrossMapLRN2d as CrossMapLRN2d
from .modules.group_norm import GroupNorm as GroupNorm
from .modules.group_norm import LocalResponseNorm as LocalResponseNorm
from .modules.group_norm import RMSLayerNorm as RMSLayerNorm
from .modules.group_norm import RMSNorm as RMSNorm
from .modules.instance_norm import InstanceNorm1d as InstanceNorm1d
from .modules.instance_norm import InstanceNorm2d as InstanceNorm2d
from .modules.instance_norm import InstanceNorm3d as InstanceNorm3d
from .modules.lazy import (
    LazyBatchNorm1d as LazyBatchNorm1d,
)
from .modules.lazy import (
    LazyBatchNorm2d as LazyBatchNorm2d,
)
from .modules.lazy import (
    LazyBatchNorm3d as LazyBatchNorm3d,
)
from .modules.lazy import (
    LazyConv1d as LazyConv1d,
)
from .modules.lazy import (
    LazyConv2d as LazyConv2d,
)
from .modules.lazy import (
    LazyConv3d as LazyConv3d,
)
from .modules.lazy import (
    LazyConvTranspose1d as LazyConvTranspose1d,
)
from .modules.lazy import (
    LazyConvTranspose2d as LazyConvTranspose2d,
)
from .modules.lazy import (
    LazyConvTranspose3d as LazyConvTranspose3d,
)
from .modules.lazy import (
    LazyInstanceNorm1d as LazyInstanceNorm1d,
)
from .modules.lazy import (
    LazyInstanceNorm2d as LazyInstanceNorm2d,
)
from .modules.lazy import (
    LazyInstanceNorm3d as LazyInstanceNorm3d,
)
from .modules.lazy import (
    LazyLinear as LazyLinear,
)
from .modules.linear import Identity as Identity
from .modules.linear import Linear as Linear
from .modules.loss import BCELoss as BCELoss
from .modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .modules.loss import CrossEntropyLoss as CrossEntropyLoss
from .modules.loss import L1Loss as L1Loss
from .modules.loss import MSELoss as MSELoss
from .modules.loss import NLLLoss as NLLLoss
from .modules.loss import NLLLoss2d as NLLLoss2d
from .modules.loss_margin import (
    CombinedMarginLoss as CombinedMarginLoss,
)
from .modules.loss_margin import (
    CosineEmbeddingLoss as CosineEmbeddingLoss,
)
from .modules.loss_margin import (
    HingeEmbeddingLoss as HingeEmbeddingLoss,
)
from .modules.loss_margin import (
    MarginRankingLoss as MarginRankingLoss,
)
from .modules.loss_margin import (
    MultiLabelMarginLoss as MultiLabelMarginLoss,
)
from .modules.loss_margin import (
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
)
from .modules.loss_margin import (
    MultiMarginLoss as MultiMarginLoss,
)
from .modules.loss_margin import (
    SoftMarginLoss as SoftMarginLoss,
)
from .modules.loss_margin import (
    TripletMarginLoss as TripletMarginLoss,
)
from .modules.loss_margin import (
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from .modules.loss_regression import (
    CTCLoss as CTCLoss,
)
from .modules.loss_regression import (
    GaussianNLLLoss as GaussianNLLLoss,
)
from .modules.loss_regression import (
    HuberLoss as HuberLoss,
)
from .modules.loss_regression import (
    KLDivLoss as KLDivLoss,
)
from .modules.loss_regression import (
    PoissonNLLLoss as PoissonNLLLoss,
)
from .modules.loss_regression import (
    SmoothL1Loss as SmoothL1Loss,
)
from .modules.norm import BatchNorm1d as BatchNorm1d
from .modules.norm import BatchNorm2d as BatchNorm2d
from .modules.norm import BatchNorm3d as BatchNorm3d
from .modules.norm import LayerNorm as LayerNorm
from .modules.padding import (
    CircularPad1d as CircularPad1d,
)
from .modules.padding import (
    CircularPad2d as CircularPad2d,
)
from .modules.padding import (
    CircularPad3d as CircularPad3d,
)
from .modules.padding import (
    ConstantPad1d as ConstantPad1d,
)
from .modules.padding import (
    ConstantPad2d as ConstantPad2d,
)
from .modules.padding import (
    ConstantPad3d as ConstantPad3d,
)
from .modules.padding import (
    ReflectionPad1d as ReflectionPad1d,
)
from .modules.padding import (
    ReflectionPad2d as ReflectionPad2d,
)
from .modules.padding import (
    ReflectionPad3d as ReflectionPad3d,
)
from .modules.padding import (
    ReplicationPad1d as ReplicationPad1d,
)
from .modules.padding import (
    ReplicationPad2d as ReplicationPad2d,
)
from .modules.padding import (
    ReplicationPad3d as ReplicationPad3d,
)
from .modules.padding import (
    ZeroPad1d as ZeroPad1d,
)
from .modules.padding import (
    ZeroPad2d as ZeroPad2d,
)
from .modules.padding import (
    ZeroPad3d as ZeroPad3d,
)
from .modules.piecewise_activation import (
    CELU as CELU,
)
from .modules.piecewise_activation import (
    ELU as ELU,
)
from .modules.piecewise_activation import (
    GLU as GLU,
)
from .modules.piecewise_activation import (
    SELU as SELU,
)
from .modules.piecewise_activation import (
    Hardshrink as Hardshrink,
)
from .modules.piecewise_activation import (
    Hardsigmoid as Hardsigmoid,
)
from .modules.piecewise_activation import (
    Hardswish as Hardswish,
)
from .modules.piecewise_activation import (
    Hardtanh as Hardtanh,
)
from .modules.piecewise_activation import (
    LogSigmoid as LogSigmoid,
)
from .modules.piecewise_activation import (
    Mish as Mish,
)
from .modules.piecewise_activation import (
    PReLU as PReLU,
)
from .modules.piecewise_activation import (
    QuickGELU as QuickGELU,
)
from .modules.piecewise_activation import (
    RReLU as RReLU,
)
from .modules.piecewise_activation import (
    Softmax2d as Softmax2d,
)
from .modules.piecewise_activation import (
    Softmin as Softmin,
)
from .modules.piecewise_activation import (
    Softplus as Softplus,
)
from .modules.piecewise_activation import (
    Softshrink as Softshrink,
)
from .modules.piecewise_activation import (
    Softsign as Softsign,
)
from .modules.piecewise_activation import (
    SquareReLU as SquareReLU,
)
from .modules.piecewise_activation import (
    Tanhshrink as Tanhshrink,
)
from .modules.piecewise_activation import (
    Threshold as Threshold,
)
from .modules.pooling import AvgPool1d as AvgPool1d
from .modules.pooling import AvgPool2d as AvgPool2d
from .modules.pooling import AvgPool3d as AvgPool3d
from .modules.pooling import LPPool1d as LPPool1d
from .modules.pooling import LPPool2d as LPPool2d
from .modules.pooling import LPPool3d as LPPool3d
from .modules.pooling import MaxPool1d as MaxPool1d
from .modules.pooling import MaxPool2d as MaxPool2d
from .modules.pooling import MaxPool3d as MaxPool3d
from .modules.resizing import (
    ChannelShuffle as ChannelShuffle,
)
from .modules.resizing import (
    Fold as Fold,
)
from .modules.resizing import (
    PixelShuffle as PixelShuffle,
)
from .modules.resizing import (
    PixelUnshuffle as PixelUnshuffle,
)
from .modules.resizing import (
    Unfold as Unfold,
)
from .modules.resizing import (
    Upsample as Upsample,
)
from .modules.resizing import (
    UpsamplingBilinear2d as UpsamplingBilinear2d,
)
from .modules.resizing import (
    UpsamplingNearest2d as UpsamplingNearest2d,
)
from .modules.rnn import GRU as GRU
from .modules.rnn import LSTM as LSTM
from .modules.rnn import RNN as RNN
from .modules.rnn import RNNBase as RNNBase
from .modules.rnn_cell import GRUCell as GRUCell
from .modules.rnn_cell import LSTMCell as LSTMCell
from .modules.rnn_cell import RNNCell as RNNCell
from .modules.rnn_cell import RNNCellBase as RNNCellBase
from .modules.shape import Flatten as Flatten
from .modules.shape import Unflatten as Unflatten
from .modules.transformer import (
    Transformer as Transformer,
)
from .modules.transformer import (
    TransformerDecoder as TransformerDecoder,
)
from .modules.transformer import (
    TransformerDecoderLayer as TransformerDecoderLayer,
)
from .modules.transformer import (
    TransformerEncoder as TransformerEncoder,
)
from .modules.transformer import (
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

if _TYPE_CHECKING:
    from . import graph as graph
    from .graph import Graph as Graph

# nn.graph, with its passes, plans and listings, is a seventh of everything that an import would load
_missing = _name_hints("flow.nn", globals(), {"Graph": "graph.Graph"})


def __getattr__(name: str) -> _Any:
    if name == "graph":
        import importlib

        return importlib.import_module(f"{__name__}.graph")
    return _missing(name)
