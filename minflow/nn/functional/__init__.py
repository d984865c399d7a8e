"""nn.functional: the layers as functions, without state.

Each module is one family of functions, composed of the ops in `core/ops`. Read next: `linear.py`.
"""

from ...core.functions import one_hot as one_hot
from ...core.messages.suggestions import name_hints as _name_hints
from ...diagnosis.source_lines import register_public_folder as _register_public_folder
from . import arguments as arguments
from .activation import (
    celu as celu,
    celu_ as celu_,
    elu as elu,
    elu_ as elu_,
    gelu as gelu,
    hardshrink as hardshrink,
    leaky_relu as leaky_relu,
    leaky_relu_ as leaky_relu_,
    log_softmax as log_softmax,
    logsigmoid as logsigmoid,
    mish as mish,
    prelu as prelu,
    quick_gelu as quick_gelu,
    relu as relu,
    relu6 as relu6,
    relu_ as relu_,
    selu as selu,
    selu_ as selu_,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softplus as softplus,
    softsign as softsign,
    square_relu as square_relu,
    tanh as tanh,
    threshold as threshold,
    threshold_ as threshold_,
)
from .adaptive_pools import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
)
from .attention import (
    multi_head_attention_forward as multi_head_attention_forward,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from .conv import conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_tbc as conv_tbc
from .conv_transpose import (
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
)
from .distance import (
    bilinear as bilinear,
    cdist as cdist,
    cosine_similarity as cosine_similarity,
    pairwise_distance as pairwise_distance,
    pdist as pdist,
)
from .dropout import dropout as dropout
from .dropout_channels import (
    alpha_dropout as alpha_dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
)
from .embedding import embedding as embedding, embedding_bag as embedding_bag
from .fractional_pools import (
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
)
from .grid_sampling import affine_grid as affine_grid, grid_sample as grid_sample
from .group_norm import (
    group_norm as group_norm,
    instance_norm as instance_norm,
    local_response_norm as local_response_norm,
    rms_norm as rms_norm,
)
from .interpolation import (
    interpolate as interpolate,
    upsample as upsample,
    upsample_bilinear as upsample_bilinear,
    upsample_nearest as upsample_nearest,
)
from .linear import linear as linear
from .loss import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
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
from .norm import batch_norm as batch_norm, layer_norm as layer_norm
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
from .pooling import adaptive_avg_pool2d as adaptive_avg_pool2d, avg_pool2d as avg_pool2d, max_pool2d as max_pool2d
from .pooling_1d_3d import (
    avg_pool1d as avg_pool1d,
    avg_pool3d as avg_pool3d,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
)
from .shape import depend as depend, normalize as normalize, pad as pad
from .unfold_fold import (
    channel_shuffle as channel_shuffle,
    fold as fold,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    unfold as unfold,
)
from .unpooling import (
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)

__getattr__ = _name_hints("flow.nn.functional", globals())
_register_public_folder(__path__[0])
