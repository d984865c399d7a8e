"""nn: layers, containers, losses, initialization. This module only re-exports names.

Read next: `module.py`, then `modules/linear.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from ..core.messages.suggestions import name_hints as _name_hints
from . import functional as functional, init as init, parallel as parallel, utils as utils
from .containers import (
    ModuleDict as ModuleDict,
    ModuleList as ModuleList,
    ParameterDict as ParameterDict,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from .module import Module as Module
from .modules.activation import (
    GELU as GELU,
    LeakyReLU as LeakyReLU,
    LogSoftmax as LogSoftmax,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Tanh as Tanh,
)
from .modules.adaptive_pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
    AdaptiveMaxPool3d as AdaptiveMaxPool3d,
    FractionalMaxPool2d as FractionalMaxPool2d,
    FractionalMaxPool3d as FractionalMaxPool3d,
    MaxUnpool1d as MaxUnpool1d,
    MaxUnpool2d as MaxUnpool2d,
    MaxUnpool3d as MaxUnpool3d,
)
from .modules.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from .modules.attention import MultiheadAttention as MultiheadAttention
from .modules.batch_norms import (
    FusedBatchNorm1d as FusedBatchNorm1d,
    FusedBatchNorm2d as FusedBatchNorm2d,
    FusedBatchNorm3d as FusedBatchNorm3d,
    SyncBatchNorm as SyncBatchNorm,
)
from .modules.conv import Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d
from .modules.conv_transpose import (
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from .modules.distance import (
    Bilinear as Bilinear,
    CosineSimilarity as CosineSimilarity,
    PairwiseDistance as PairwiseDistance,
)
from .modules.dropout import (
    AlphaDropout as AlphaDropout,
    Dropout as Dropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from .modules.embedding import Embedding as Embedding, EmbeddingBag as EmbeddingBag
from .modules.group_norm import (
    CrossMapLRN2d as CrossMapLRN2d,
    GroupNorm as GroupNorm,
    LocalResponseNorm as LocalResponseNorm,
    RMSLayerNorm as RMSLayerNorm,
    RMSNorm as RMSNorm,
)
from .modules.instance_norm import (
    InstanceNorm1d as InstanceNorm1d,
    InstanceNorm2d as InstanceNorm2d,
    InstanceNorm3d as InstanceNorm3d,
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
from .modules.linear import Identity as Identity, Linear as Linear
from .modules.loss import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    CrossEntropyLoss as CrossEntropyLoss,
    L1Loss as L1Loss,
    MSELoss as MSELoss,
    NLLLoss as NLLLoss,
    NLLLoss2d as NLLLoss2d,
)
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
from .modules.loss_regression import (
    CTCLoss as CTCLoss,
    GaussianNLLLoss as GaussianNLLLoss,
    HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss,
    PoissonNLLLoss as PoissonNLLLoss,
    SmoothL1Loss as SmoothL1Loss,
)
from .modules.norm import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    LayerNorm as LayerNorm,
)
from .modules.padding import (
    CircularPad1d as CircularPad1d,
    CircularPad2d as CircularPad2d,
    CircularPad3d as CircularPad3d,
    ConstantPad1d as ConstantPad1d,
    ConstantPad2d as ConstantPad2d,
    ConstantPad3d as ConstantPad3d,
    ReflectionPad1d as ReflectionPad1d,
    ReflectionPad2d as ReflectionPad2d,
    ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d,
    ReplicationPad2d as ReplicationPad2d,
    ReplicationPad3d as ReplicationPad3d,
    ZeroPad1d as ZeroPad1d,
    ZeroPad2d as ZeroPad2d,
    ZeroPad3d as ZeroPad3d,
)
from .modules.piecewise_activation import (
    CELU as CELU,
    ELU as ELU,
    GLU as GLU,
    SELU as SELU,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LogSigmoid as LogSigmoid,
    Mish as Mish,
    PReLU as PReLU,
    QuickGELU as QuickGELU,
    RReLU as RReLU,
    Softmax2d as Softmax2d,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    SquareReLU as SquareReLU,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
)
from .modules.pooling import (
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    AvgPool3d as AvgPool3d,
    LPPool1d as LPPool1d,
    LPPool2d as LPPool2d,
    LPPool3d as LPPool3d,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d,
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
from .modules.rnn import GRU as GRU, LSTM as LSTM, RNN as RNN, RNNBase as RNNBase
from .modules.rnn_cell import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell, RNNCellBase as RNNCellBase
from .modules.shape import Flatten as Flatten, Unflatten as Unflatten
from .modules.transformer import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from .parallel import DataParallel as DataParallel
from .parameter import (
    Buffer as Buffer,
    Parameter as Parameter,
    UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
)

if _TYPE_CHECKING:
    from . import graph as graph
    from .graph import Graph as Graph

# nn.graph, with its passes, plans and listings, would be a seventh of all code loaded by an import
_missing = _name_hints("flow.nn", globals(), {"Graph": "graph.Graph", "attention": "attention."})


def __getattr__(name: str) -> _Any:
    if name == "graph":
        import importlib

        return importlib.import_module(f"{__name__}.graph")
    return _missing(name)
