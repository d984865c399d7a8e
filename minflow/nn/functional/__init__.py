"""nn.functional: the layers as functions, without state.

Each module is one family of functions; they are made of the ops in `core/ops`. Read next: `linear.py`.
"""

from ...core.functions import one_hot as one_hot
from ...core.messages.suggestions import name_hints as _name_hints
from ...diagnosis.source_lines import public_functions as _public_functions
from . import arguments as arguments
from .activation import (
    celu as celu,
)
from .activation import (
    celu_ as celu_,
)
from .activation import (
    elu as elu,
)
from .activation import (
    elu_ as elu_,
)
from .activation import gelu as gelu
from .activation import (
    hardshrink as hardshrink,
)
from .activation import leaky_relu as leaky_relu
from .activation import (
    leaky_relu_ as leaky_relu_,
)
from .activation import log_softmax as log_softmax
from .activation import logsigmoid as logsigmoid
from .activation import (
    mish as mish,
)
from .activation import (
    prelu as prelu,
)
from .activation import (
    quick_gelu as quick_gelu,
)
from .activation import relu as relu
from .activation import relu6 as relu6
from .activation import (
    relu_ as relu_,
)
from .activation import (
    selu as selu,
)
from .activation import (
    selu_ as selu_,
)
from .activation import sigmoid as sigmoid
from .activation import silu as silu
from .activation import softmax as softmax
from .activation import softplus as softplus
from .activation import (
    softsign as softsign,
)
from .activation import (
    square_relu as square_relu,
)
from .activation import tanh as tanh
from .activation import (
    threshold as threshold,
)
from .activation import (
    threshold_ as threshold_,
)
from .adaptive_pools import adaptive_avg_pool1d as adaptive_avg_pool1d
from .adaptive_pools import adaptive_avg_pool3d as adaptive_avg_pool3d
from .adaptive_pools import adaptive_max_pool1d as adaptive_max_pool1d
from .adaptive_pools import adaptive_max_pool2d as adaptive_max_pool2d
from .adaptive_pools import adaptive_max_pool3d as adaptive_max_pool3d
from .attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from .attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from .conv import conv1d as conv1d
from .conv import conv2d as conv2d
from .conv import conv3d as conv3d
from .conv_transpose import conv_transpose1d as conv_transpose1d
from .conv_transpose import conv_transpose2d as conv_transpose2d
from .conv_transpose import conv_transpose3d as conv_transpose3d
from .distance import bilinear as bilinear
from .distance import (
    cdist as cdist,
)
from .distance import (
    cosine_similarity as cosine_similarity,
)
from .distance import (
    pairwise_distance as pairwise_distance,
)
from .distance import (
    pdist as pdist,
)
from .dropout import dropout as dropout
from .dropout_channels import (
    alpha_dropout as alpha_dropout,
)
from .dropout_channels import (
    dropout1d as dropout1d,
)
from .dropout_channels import (
    dropout2d as dropout2d,
)
from .dropout_channels import (
    dropout3d as dropout3d,
)
from .dropout_channels import (
    feature_alpha_dropout as feature_alpha_dropout,
)
from .embedding import embedding as embedding
from .embedding import embedding_bag as embedding_bag
from .grid_sampling import affine_grid as affine_grid
from .grid_sampling import grid_sample as grid_sample
from .group_norm import group_norm as group_norm
from .group_norm import instance_norm as instance_norm
from .group_norm import local_response_norm as local_response_norm
from .group_norm import rms_norm as rms_norm
from .interpolation import interpolate as interpolate
from .interpolation import upsample as upsample
from .interpolation import upsample_bilinear as upsample_bilinear
from .interpolation import upsample_nearest as upsample_nearest
from .linear import linear as linear
from .loss import binary_cross_entropy as binary_cross_entropy
from .loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .loss import cross_entropy as cross_entropy
from .loss import l1_loss as l1_loss
from .loss import mse_loss as mse_loss
from .loss import nll_loss as nll_loss
from .loss_classes import (
    combined_margin_loss as combined_margin_loss,
)
from .loss_classes import (
    multi_margin_loss as multi_margin_loss,
)
from .loss_classes import (
    multilabel_margin_loss as multilabel_margin_loss,
)
from .loss_classes import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from .loss_classes import (
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from .loss_distance import huber_loss as huber_loss
from .loss_distance import smooth_l1_loss as smooth_l1_loss
from .loss_likelihood import (
    ctc_loss as ctc_loss,
)
from .loss_likelihood import (
    gaussian_nll_loss as gaussian_nll_loss,
)
from .loss_likelihood import (
    kl_div as kl_div,
)
from .loss_likelihood import (
    poisson_nll_loss as poisson_nll_loss,
)
from .loss_margin import (
    cosine_embedding_loss as cosine_embedding_loss,
)
from .loss_margin import (
    hinge_embedding_loss as hinge_embedding_loss,
)
from .loss_margin import (
    margin_ranking_loss as margin_ranking_loss,
)
from .loss_margin import (
    soft_margin_loss as soft_margin_loss,
)
from .loss_margin import (
    triplet_margin_loss as triplet_margin_loss,
)
from .loss_margin import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from .norm import batch_norm as batch_norm
from .norm import layer_norm as layer_norm
from .piecewise_activation import (
    glu as glu,
)
from .piecewise_activation import (
    gumbel_softmax as gumbel_softmax,
)
from .piecewise_activation import (
    hardsigmoid as hardsigmoid,
)
from .piecewise_activation import (
    hardswish as hardswish,
)
from .piecewise_activation import (
    hardtanh as hardtanh,
)
from .piecewise_activation import (
    hardtanh_ as hardtanh_,
)
from .piecewise_activation import (
    rrelu as rrelu,
)
from .piecewise_activation import (
    rrelu_ as rrelu_,
)
from .piecewise_activation import (
    softmin as softmin,
)
from .piecewise_activation import (
    softshrink as softshrink,
)
from .piecewise_activation import (
    tanhshrink as tanhshrink,
)
from .pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .pooling import avg_pool2d as avg_pool2d
from .pooling import max_pool2d as max_pool2d
from .pooling_1d_3d import avg_pool1d as avg_pool1d
from .pooling_1d_3d import avg_pool3d as avg_pool3d
from .pooling_1d_3d import max_pool1d as max_pool1d
from .pooling_1d_3d import max_pool3d as max_pool3d
from .shape import normalize as normalize
from .shape import pad as pad
from .unfold_fold import channel_shuffle as channel_shuffle
from .unfold_fold import fold as fold
from .unfold_fold import pixel_shuffle as pixel_shuffle
from .unfold_fold import pixel_unshuffle as pixel_unshuffle
from .unfold_fold import unfold as unfold
from .unpooling import lp_pool1d as lp_pool1d
from .unpooling import lp_pool2d as lp_pool2d
from .unpooling import lp_pool3d as lp_pool3d
from .unpooling import max_unpool1d as max_unpool1d
from .unpooling import max_unpool2d as max_unpool2d
from .unpooling import max_unpool3d as max_unpool3d

__getattr__ = _name_hints("flow.nn.functional", globals())
_public_functions(__path__[0])
