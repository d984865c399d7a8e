"""nn: layers, containers, losses, initialisation. This module only re-exports names from the modules that define them.

Read next: `module.py`, then `modules/linear.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from ..core.messages.suggestions import name_hints as _name_hints
from . import functional as functional
from . import init as init
from . import utils as utils
from .modules.activation import GELU as GELU
from .modules.activation import LeakyReLU as LeakyReLU
from .modules.activation import LogSoftmax as LogSoftmax
from .modules.activation import ReLU as ReLU
from .modules.activation import ReLU6 as ReLU6
from .modules.activation import Sigmoid as Sigmoid
from .modules.activation import SiLU as SiLU
from .modules.activation import Softmax as Softmax
from .modules.activation import Tanh as Tanh
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import ParameterDict as ParameterDict
from .containers import ParameterList as ParameterList
from .containers import Sequential as Sequential
from .modules.conv import Conv1d as Conv1d
from .modules.conv import Conv2d as Conv2d
from .modules.conv import Conv3d as Conv3d
from .modules.dropout import Dropout as Dropout
from .modules.embedding import Embedding as Embedding
from .modules.linear import Identity as Identity
from .modules.linear import Linear as Linear
from .modules.loss import BCELoss as BCELoss
from .modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .modules.loss import CrossEntropyLoss as CrossEntropyLoss
from .modules.loss import L1Loss as L1Loss
from .modules.loss import MSELoss as MSELoss
from .modules.loss import NLLLoss as NLLLoss
from .module import Module as Module
from .modules.norm import BatchNorm1d as BatchNorm1d
from .modules.norm import BatchNorm2d as BatchNorm2d
from .modules.norm import LayerNorm as LayerNorm
from . import parallel as parallel
from .parallel import DataParallel as DataParallel
from .parameter import Parameter as Parameter
from .modules.pooling import AvgPool2d as AvgPool2d
from .modules.pooling import MaxPool2d as MaxPool2d
from .modules.shape import Flatten as Flatten
from .modules.shape import Unflatten as Unflatten
from .modules.conv_transpose import ConvTranspose1d as ConvTranspose1d
from .modules.conv_transpose import ConvTranspose2d as ConvTranspose2d
from .modules.conv_transpose import ConvTranspose3d as ConvTranspose3d
from .modules.padding import (
    ConstantPad1d as ConstantPad1d,
    ConstantPad2d as ConstantPad2d,
    ConstantPad3d as ConstantPad3d,
    ZeroPad1d as ZeroPad1d,
    ZeroPad2d as ZeroPad2d,
    ZeroPad3d as ZeroPad3d,
    ReflectionPad1d as ReflectionPad1d,
    ReflectionPad2d as ReflectionPad2d,
    ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d,
    ReplicationPad2d as ReplicationPad2d,
    ReplicationPad3d as ReplicationPad3d,
    CircularPad1d as CircularPad1d,
    CircularPad2d as CircularPad2d,
    CircularPad3d as CircularPad3d,
)
from .modules.loss import NLLLoss2d as NLLLoss2d
from .modules.loss_margin import (
    CombinedMarginLoss as CombinedMarginLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss,
    HingeEmbeddingLoss as HingeEmbeddingLoss,
    MarginRankingLoss as MarginRankingLoss,
    MultiLabelMarginLoss as MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    MultiMarginLoss as MultiMarginLoss,
    SoftMarginLoss as SoftMarginLoss,
    TripletMarginLoss as TripletMarginLoss,
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from .modules.loss_numbers import (
    CTCLoss as CTCLoss,
    GaussianNLLLoss as GaussianNLLLoss,
    HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss,
    PoissonNLLLoss as PoissonNLLLoss,
    SmoothL1Loss as SmoothL1Loss,
)
from .modules.rnn import GRU as GRU, LSTM as LSTM, RNN as RNN, RNNBase as RNNBase
from .modules.rnn_cell import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell, RNNCellBase as RNNCellBase
from .modules.activation_pieces import (
    CELU as CELU,
    ELU as ELU,
    GLU as GLU,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LogSigmoid as LogSigmoid,
    Mish as Mish,
    PReLU as PReLU,
    QuickGELU as QuickGELU,
    RReLU as RReLU,
    SELU as SELU,
    Softmax2d as Softmax2d,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    SquareReLU as SquareReLU,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
)
from .parameter import Buffer as Buffer
from .modules.embedding import EmbeddingBag as EmbeddingBag
from .modules.distance import (
    Bilinear as Bilinear,
    CosineSimilarity as CosineSimilarity,
    PairwiseDistance as PairwiseDistance,
)
from .modules.dropout import (
    AlphaDropout as AlphaDropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from .modules.norm import BatchNorm3d as BatchNorm3d
from .modules.batch_norms import FusedBatchNorm1d as FusedBatchNorm1d
from .modules.batch_norms import FusedBatchNorm2d as FusedBatchNorm2d
from .modules.batch_norms import FusedBatchNorm3d as FusedBatchNorm3d
from .modules.batch_norms import SyncBatchNorm as SyncBatchNorm
from .modules.group_norm import CrossMapLRN2d as CrossMapLRN2d
from .modules.group_norm import GroupNorm as GroupNorm
from .modules.group_norm import LocalResponseNorm as LocalResponseNorm
from .modules.group_norm import RMSLayerNorm as RMSLayerNorm
from .modules.group_norm import RMSNorm as RMSNorm
from .modules.instance_norm import InstanceNorm1d as InstanceNorm1d
from .modules.instance_norm import InstanceNorm2d as InstanceNorm2d
from .modules.instance_norm import InstanceNorm3d as InstanceNorm3d
from .modules.pooling import AvgPool1d as AvgPool1d
from .modules.pooling import AvgPool3d as AvgPool3d
from .modules.pooling import LPPool1d as LPPool1d
from .modules.pooling import LPPool2d as LPPool2d
from .modules.pooling import LPPool3d as LPPool3d
from .modules.pooling import MaxPool1d as MaxPool1d
from .modules.pooling import MaxPool3d as MaxPool3d
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
from .modules.transformer import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from .modules.resizing import (
    ChannelShuffle as ChannelShuffle,
    Fold as Fold,
    PixelShuffle as PixelShuffle,
    PixelUnshuffle as PixelUnshuffle,
    Unfold as Unfold,
    Upsample as Upsample,
    UpsamplingBilinear2d as UpsamplingBilinear2d,
    UpsamplingNearest2d as UpsamplingNearest2d,
)
from .modules.lazy import (
    LazyBatchNorm1d as LazyBatchNorm1d,
    LazyBatchNorm2d as LazyBatchNorm2d,
    LazyBatchNorm3d as LazyBatchNorm3d,
    LazyConv1d as LazyConv1d,
    LazyConv2d as LazyConv2d,
    LazyConv3d as LazyConv3d,
    LazyConvTranspose1d as LazyConvTranspose1d,
    LazyConvTranspose2d as LazyConvTranspose2d,
    LazyConvTranspose3d as LazyConvTranspose3d,
    LazyInstanceNorm1d as LazyInstanceNorm1d,
    LazyInstanceNorm2d as LazyInstanceNorm2d,
    LazyInstanceNorm3d as LazyInstanceNorm3d,
    LazyLinear as LazyLinear,
)
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
