"""nn.functional: the layers as functions, without state.

Each module is one family of functions; they are made of the ops in `core/ops`. Read next: `linear.py`.
"""

from ...core.messages.suggestions import name_hints as _name_hints
from ...core.functions import one_hot as one_hot
from ...diagnosis.source_lines import public_functions as _public_functions
from . import arguments as arguments
from .activation import gelu as gelu
from .activation import leaky_relu as leaky_relu
from .activation import log_softmax as log_softmax
from .activation import logsigmoid as logsigmoid
from .activation import relu as relu
from .activation import relu6 as relu6
from .activation import sigmoid as sigmoid
from .activation import silu as silu
from .activation import softmax as softmax
from .activation import softplus as softplus
from .activation import tanh as tanh
from .conv import conv1d as conv1d
from .conv import conv2d as conv2d
from .conv import conv3d as conv3d
from .dropout import dropout as dropout
from .embedding import embedding as embedding
from .linear import linear as linear
from .loss import binary_cross_entropy as binary_cross_entropy
from .loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .loss import cross_entropy as cross_entropy
from .loss import l1_loss as l1_loss
from .loss import mse_loss as mse_loss
from .loss import nll_loss as nll_loss
from .norm import batch_norm as batch_norm
from .norm import layer_norm as layer_norm
from .pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .pooling import avg_pool2d as avg_pool2d
from .pooling import max_pool2d as max_pool2d
from .shape import normalize as normalize
from .shape import pad as pad
from .conv_transpose import conv_transpose1d as conv_transpose1d
from .conv_transpose import conv_transpose2d as conv_transpose2d
from .conv_transpose import conv_transpose3d as conv_transpose3d
from .embedding import embedding_bag as embedding_bag
from .dropout_channels import (
    alpha_dropout as alpha_dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
)
from .distance import bilinear as bilinear
from .distance import (
    cdist as cdist,
    cosine_similarity as cosine_similarity,
    pairwise_distance as pairwise_distance,
    pdist as pdist,
)
from .loss_classes import (
    combined_margin_loss as combined_margin_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from .loss_distance import huber_loss as huber_loss, smooth_l1_loss as smooth_l1_loss
from .loss_likelihood import (
    ctc_loss as ctc_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    kl_div as kl_div,
    poisson_nll_loss as poisson_nll_loss,
)
from .loss_margin import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from .activation import (
    celu as celu,
    celu_ as celu_,
    elu as elu,
    elu_ as elu_,
    hardshrink as hardshrink,
    leaky_relu_ as leaky_relu_,
    mish as mish,
    prelu as prelu,
    quick_gelu as quick_gelu,
    relu_ as relu_,
    selu as selu,
    selu_ as selu_,
    softsign as softsign,
    square_relu as square_relu,
    threshold as threshold,
    threshold_ as threshold_,
)
from .piecewise_activation import (
    glu as glu,
    gumbel_softmax as gumbel_softmax,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    hardtanh_ as hardtanh_,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    softmin as softmin,
    softshrink as softshrink,
    tanhshrink as tanhshrink,
)
from .group_norm import group_norm as group_norm
from .group_norm import instance_norm as instance_norm
from .group_norm import local_response_norm as local_response_norm
from .group_norm import rms_norm as rms_norm
from .pooling_1d_3d import avg_pool1d as avg_pool1d
from .pooling_1d_3d import avg_pool3d as avg_pool3d
from .pooling_1d_3d import max_pool1d as max_pool1d
from .pooling_1d_3d import max_pool3d as max_pool3d
from .adaptive_pools import adaptive_avg_pool1d as adaptive_avg_pool1d
from .adaptive_pools import adaptive_avg_pool3d as adaptive_avg_pool3d
from .adaptive_pools import adaptive_max_pool1d as adaptive_max_pool1d
from .adaptive_pools import adaptive_max_pool2d as adaptive_max_pool2d
from .adaptive_pools import adaptive_max_pool3d as adaptive_max_pool3d
from .unpooling import lp_pool1d as lp_pool1d
from .unpooling import lp_pool2d as lp_pool2d
from .unpooling import lp_pool3d as lp_pool3d
from .unpooling import max_unpool1d as max_unpool1d
from .unpooling import max_unpool2d as max_unpool2d
from .unpooling import max_unpool3d as max_unpool3d
from .attention import (
    multi_head_attention_forward as multi_head_attention_forward,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from .unfold_fold import channel_shuffle as channel_shuffle
from .unfold_fold import fold as fold
from .unfold_fold import pixel_shuffle as pixel_shuffle
from .unfold_fold import pixel_unshuffle as pixel_unshuffle
from .unfold_fold import unfold as unfold
from .interpolation import interpolate as interpolate
from .interpolation import upsample as upsample
from .interpolation import upsample_bilinear as upsample_bilinear
from .interpolation import upsample_nearest as upsample_nearest
from .grid_sampling import affine_grid as affine_grid
from .grid_sampling import grid_sample as grid_sample

__getattr__ = _name_hints("flow.nn.functional", globals())
_public_functions(__path__[0])
