"""Functions of `oneflow._C`, called in OneFlow's order of arguments, against the public functions and formulas."""

import numpy as np
import pytest

import minflow as flow
from minflow import CallError, JobError, MissingNameError, OutOfRangeError, ShapeError
from minflow.nn import functional as F

C = flow._C
RNG = np.random.default_rng(0)


def randn(*shape):
    return flow.tensor(RNG.standard_normal(shape).astype("float32"))


X, Y, W, B = randn(4, 6), randn(4, 6), randn(5, 6), randn(5)
IMAGE, KERNEL, TRANSPOSED = randn(2, 3, 8, 8), randn(4, 3, 3, 3), randn(3, 4, 3, 3)
LABELS = flow.tensor([1, 0, 5, 2])
P = X.sigmoid()
SCORES = randn(2, 3, 5, 5)
MASK = flow.tensor(RNG.integers(0, 2, (2, 1, 5, 5)).astype("int8"))
ROWS = flow.tensor([[0, 2], [3, 3]])

CASES = {
    "sparse_softmax_cross_entropy": (lambda: C.sparse_softmax_cross_entropy(X, LABELS),
                                     lambda: F.cross_entropy(X, LABELS, reduction="none")),
    "distributed_sparse_softmax_cross_entropy": (lambda: C.distributed_sparse_softmax_cross_entropy(X, LABELS),
                                                 lambda: F.cross_entropy(X, LABELS, reduction="none")),
    "softmax_cross_entropy": (lambda: C.softmax_cross_entropy(X, Y.softmax(-1)),
                              lambda: -(Y.softmax(-1) * X.log_softmax(-1)).sum(-1)),
    "sparse_cross_entropy": (lambda: C.sparse_cross_entropy(X.softmax(-1), LABELS, 6),
                             lambda: F.cross_entropy(X, LABELS, reduction="none")),
    "cross_entropy": (lambda: C.cross_entropy(X, LABELS, None, 0, "sum"),
                      lambda: F.cross_entropy(X, LABELS, ignore_index=0, reduction="sum")),
    "nll_loss": (lambda: C.nll_loss(X, LABELS, None, -100, "none"), lambda: F.nll_loss(X, LABELS, reduction="none")),
    "l1_loss": (lambda: C.l1_loss(X, Y, "sum"), lambda: (X - Y).abs().sum()),
    "mse_loss": (lambda: C.mse_loss(X, Y, "none"), lambda: (X - Y) ** 2),
    "kl_div_loss": (lambda: C.kl_div_loss(X, Y, True, "sum"), lambda: (Y.exp() * (Y - X)).sum()),
    "binary_cross_entropy_loss": (lambda: C.binary_cross_entropy_loss(P, P * 0.5, X, "sum"),
                                  lambda: F.binary_cross_entropy(P, P * 0.5, X, reduction="sum")),
    "binary_cross_entropy_with_logits_loss":
        (lambda: C.binary_cross_entropy_with_logits_loss(X, P, Y, None, "none"),
         lambda: F.binary_cross_entropy_with_logits(X, P, Y, reduction="none")),
    "smooth_l1_loss": (lambda: C.smooth_l1_loss(X, Y, 0.5, "sum"),
                       lambda: F.smooth_l1_loss(X, Y, beta=0.5, reduction="sum")),
    "margin_ranking_loss": (lambda: C.margin_ranking_loss(X, Y, X.sign(), 0.3, "none"),
                            lambda: F.margin_ranking_loss(X, Y, X.sign(), 0.3, reduction="none")),
    "triplet_margin_loss":
        (lambda: C.triplet_margin_loss(X, Y, P, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"),
         lambda: F.triplet_margin_loss(X, Y, P)),
    "ctc_loss": (lambda: C.ctc_loss(LOGS, TARGETS, LENGTHS, flow.tensor([2, 1]), 2, 0, False, "sum"),
                 lambda: F.ctc_loss(LOGS, TARGETS, LENGTHS, flow.tensor([2, 1]), reduction="sum")),
    "combined_margin_loss": (lambda: C.combined_margin_loss(P, LABELS, 1.0, 0.5, 0.1),
                             lambda: flow.nn.CombinedMarginLoss(1.0, 0.5, 0.1)(P, LABELS)),
    "matmul": (lambda: C.matmul(X, W, False, True, 0.5), lambda: X @ W.T * 0.5),
    "matmul_a": (lambda: C.matmul(X, Y, True), lambda: X.T @ Y),
    "batch_matmul": (lambda: C.batch_matmul(SCORES, SCORES, False, True), lambda: SCORES @ SCORES.mT),
    "gather": (lambda: C.gather(X, ROWS, 0), lambda: X[ROWS]),
    "gather_axis": (lambda: C.gather(X, LABELS, axis=1), lambda: X[:, LABELS]),
    "dim_gather": (lambda: C.dim_gather(X, 0, ROWS), lambda: X.gather(0, ROWS)),
    "gather_nd": (lambda: C.gather_nd(X, ROWS), lambda: X[ROWS[:, 0], ROWS[:, 1]]),
    "batch_gather": (lambda: C.batch_gather(SCORES, flow.tensor([[0, 2], [1, 1]])),
                     lambda: flow.stack([SCORES[0][[0, 2]], SCORES[1][[1, 1]]])),
    "scatternd": (lambda: C.scatternd(flow.tensor([[1], [3]]), X[:2], [4, 6]),
                  lambda: flow.stack([X[0] * 0, X[0], X[0] * 0, X[1]])),
    "tensor_scatter_nd_update": (lambda: C.tensor_scatter_nd_update(Y, flow.tensor([[1], [3]]), X[:2]),
                                 lambda: flow.stack([Y[0], X[0], Y[2], X[1]])),
    "layer_norm": (lambda: C.layer_norm(SCORES, 2, 2, 1e-5), lambda: F.layer_norm(SCORES, (5, 5))),
    "layer_norm_affine": (
        lambda: C.layer_norm_affine(X, Y[0], Y[1], begin_norm_axis=1, begin_params_axis=-1, epsilon=1e-5),
                          lambda: F.layer_norm(X, (6,), Y[0], Y[1])),
    "rms_norm": (lambda: C.rms_norm(X, Y[0], (6,), 1e-5),
                 lambda: X / ((X * X).mean(-1, True) + 1e-5).sqrt() * Y[0]),
    "skip_layer_norm": (lambda: C.skip_layer_norm(X, Y[0], Y[1], Y[2], P, 1e-5, 2.0),
                        lambda: F.layer_norm(X + Y[2] + P * 2, (6,), Y[0], Y[1])),
    "skip_rms_norm": (lambda: C.skip_rms_norm(X, Y[0], None, P, 1e-5, 1.0),
                      lambda: C.rms_norm(X + P, Y[0], (6,), 1e-5)),
    "normalization": (
        lambda: C.normalization(IMAGE, flow.zeros(3), flow.ones(3), Y[0, :3], Y[1, :3], 1, 1e-5, 0.1, True),
                      lambda: F.batch_norm(IMAGE, None, None, Y[0, :3], Y[1, :3], True)),
    "normalization_eval": (lambda: C.normalization(X, Y[0], Y[1].abs(), None, None),
                           lambda: (X - Y[0]) / (Y[1].abs() + 1e-5).sqrt()),
    "normalization_add_relu":
        (lambda: C.normalization_add_relu(X, P, None, None, Y[0], Y[1], is_training=True),
         lambda: (F.batch_norm(X, None, None, Y[0], Y[1], True) + P).relu()),
    "max_pool2d": (lambda: C.max_pool2d(IMAGE, 2, 2, 0, 1, True, False)[0], lambda: F.max_pool2d(IMAGE, 2)),
    "max_pool2d_indices": (lambda: C.max_pool2d(IMAGE, 2)[1], lambda: F.max_pool2d(IMAGE, 2, return_indices=True)[1]),
    "max_pool1d": (lambda: C.max_pool1d(X[None], 2)[0], lambda: F.max_pool1d(X[None], 2)),
    "avg_pool2d": (lambda: C.avg_pool2d(IMAGE, 2, 2, 0, False, True, 0), lambda: F.avg_pool2d(IMAGE, 2)),
    "deconv2d": (lambda: C.deconv2d(IMAGE, TRANSPOSED, None, 2, 1, 1, 1, 1, "channels_first"),
                 lambda: F.conv_transpose2d(IMAGE, TRANSPOSED, None, 2, 1, 1)),
    "conv2d": (lambda: C.conv2d(IMAGE, KERNEL, None, 2, 1, 1, 1, "channels_first"),
               lambda: F.conv2d(IMAGE, KERNEL, None, 2, 1)),
    "unfold": (lambda: C.unfold(IMAGE, "channels_first", [3, 3], [1, 1], [1, 1], [2, 2]),
               lambda: F.unfold(IMAGE, 3, 1, 1, 2)),
    "fold": (lambda: C.fold(F.unfold(IMAGE, 2, stride=2), "channels_first", [8, 8], [2, 2], [1, 1], [0, 0], [2, 2]),
             lambda: IMAGE),
    "unfold_tensor": (lambda: C.unfold_tensor(X, 1, 3, 2), lambda: X.unfold(1, 3, 2)),
    "upsample_nearest_2d": (lambda: C.upsample_nearest_2d(IMAGE, 2.0, 3.0),
                            lambda: F.interpolate(IMAGE, scale_factor=(2.0, 3.0))),
    "upsample_bilinear_2d": (lambda: C.upsample_bilinear_2d(IMAGE, 2.0, 2.0, True),
                             lambda: F.interpolate(IMAGE, scale_factor=2.0, mode="bilinear", align_corners=True)),
    "upsample_linear_1d": (lambda: C.upsample_linear_1d(X[None], 2.0, False),
                           lambda: F.interpolate(X[None], scale_factor=2.0, mode="linear")),
    "upsample_trilinear_3d": (lambda: C.upsample_trilinear_3d(IMAGE[None], 2.0, 1.0, 1.0, False),
                              lambda: F.interpolate(IMAGE[None], scale_factor=(2.0, 1.0, 1.0), mode="trilinear")),
    "pixel_shuffle": (lambda: C.pixel_shuffle(IMAGE.reshape(1, 6, 8, 8), 1, 2),
                      lambda: IMAGE.reshape(1, 3, 2, 8, 8).permute(0, 1, 3, 4, 2).reshape(1, 3, 8, 16)),
    "grid_sample": (
        lambda: C.grid_sample(IMAGE, GRID, interpolation_mode="nearest", padding_mode="zeros", align_corners=True),
                    lambda: F.grid_sample(IMAGE, GRID, "nearest", "zeros", True)),
    "dropout": (lambda: C.dropout(X, 0.0, True, False, None, addend=Y), lambda: X + Y),
    "dropout_eval": (lambda: C.dropout(X, 0.7, False), lambda: X),
    "bias_add": (lambda: C.bias_add(IMAGE, Y[0, :3], 1), lambda: IMAGE + Y[0, :3].reshape(3, 1, 1)),
    "equal": (lambda: C.equal(LABELS, flow.tensor([1, 1, 5, 5])), lambda: flow.tensor([True, False, True, False])),
    "not_equal": (lambda: C.not_equal(LABELS, 1), lambda: LABELS != 1),
    "greater": (lambda: C.greater(X, Y), lambda: X > Y),
    "greater_equal": (lambda: C.greater_equal(X, 0), lambda: X >= 0),
    "less": (lambda: C.less(X, Y), lambda: X < Y),
    "less_equal": (lambda: C.less_equal(X, 0), lambda: X <= 0),
    "reduce_sum": (lambda: C.reduce_sum(SCORES, [1, 2], True), lambda: SCORES.sum((1, 2), True)),
    "reduce_sum_all": (lambda: C.reduce_sum(SCORES), lambda: SCORES.sum()),
    "reduce_max": (lambda: C.reduce_max(SCORES, [1, 2]), lambda: SCORES.amax((1, 2))),
    "reduce_prod": (lambda: C.reduce_prod(X, [0], False), lambda: X.prod(0)),
    "reduce_any": (lambda: C.reduce_any(X > 1, [1]), lambda: (X > 1).any(1)),
    "reduce_sum_like": (lambda: C.reduce_sum_like(X, Y[0], [0]), lambda: X.sum(0)),
    "transpose": (lambda: C.transpose(SCORES, [0, 2, 3, 1]), lambda: SCORES.permute(0, 2, 3, 1)),
    "transpose_two": (lambda: C.transpose(SCORES, 1, 2), lambda: SCORES.transpose(1, 2)),
    "expand_dims": (lambda: C.expand_dims(X, 1), lambda: X.unsqueeze(1)),
    "expand": (lambda: C.expand(X, [2, 4, 6]), lambda: X.expand(2, 4, 6)),
    "repeat": (lambda: C.repeat(X, [2, 1]), lambda: X.repeat(2, 1)),
    "reshape": (lambda: C.reshape(X, [2, 12]), lambda: X.reshape(2, 12)),
    "reshape_like": (lambda: C.reshape_like(X, SCORES[0, 0, :4, :4].reshape(16)[:12].reshape(3, 4).repeat(2, 1)),
                     lambda: X.reshape(6, 4)),
    "constant": (
        lambda: C.constant([2, 3], 1.5, dtype=flow.float64), lambda: flow.full((2, 3), 1.5, dtype=flow.float64)),
    "slice": (lambda: C.slice(X, [1, 0], [4, 6], [2, 3]), lambda: X[1:4:2, 0:6:3]),
    "logical_slice": (lambda: C.logical_slice(X, [1, 0], [3, 4], [1, 1]), lambda: X[1:3, 0:4]),
    "slice_update": (lambda: C.slice_update(X, Y[:2, :3], [1, 0], [3, 3], [1, 1]), lambda: written()),
    "arg_sort": (lambda: C.arg_sort(X, "DESCENDING"), lambda: X.argsort(-1, True)),
    "top_k": (lambda: C.top_k(X, 2), lambda: X.topk(2).indices),
    "in_top_k": (lambda: C.in_top_k(LABELS, X, 3), lambda: (X.topk(3).indices == LABELS[:, None]).any(1)),
    "argwhere": (lambda: C.argwhere(X > 0)[0], lambda: (X > 0).nonzero()),
    "one_hot": (lambda: C.one_hot(LABELS, 6, 2, -1), lambda: F.one_hot(LABELS, 6) * 3 - 1),
    "cast": (lambda: C.cast(X, flow.float64), lambda: X.double()),
    "leaky_relu": (lambda: C.leaky_relu(X, 0.2), lambda: F.leaky_relu(X, 0.2)),
    "leaky_relu_alpha": (lambda: C.leaky_relu(X, alpha=0.2), lambda: F.leaky_relu(X, 0.2)),
    "softshrink": (lambda: C.softshrink(X, alpha=0.3), lambda: F.softshrink(X, 0.3)),
    "negative": (lambda: C.negative(X), lambda: -X),
    "rint": (lambda: C.rint(X), lambda: X.round()),
    "reciprocal_no_nan": (lambda: C.reciprocal_no_nan(X.relu()), lambda: flow.where(X > 0, 1 / X, 0.0)),
    "sqrt_square_sum": (lambda: C.sqrt_square_sum(X), lambda: (X * X).sum().sqrt()),
    "norm": (lambda: C.norm(X, 1, [1], True), lambda: X.abs().sum(1, True)),
    "vector_norm": (lambda: C.vector_norm(X, 3, 0), lambda: (X.abs() ** 3).sum(0) ** (1 / 3)),
    "l2_normalize": (lambda: C.normalize(X, 2.0, 1, 1e-12, True), lambda: F.normalize(X)),
    "nms": (lambda: C.nms(BOXES, 0.5, -1), lambda: flow.tensor([1, 0, 1], dtype=flow.int8)),
    "roc_auc_score": (lambda: C.roc_auc_score(flow.tensor([0, 0, 1, 1]), flow.tensor([0.1, 0.4, 0.35, 0.8])),
                      lambda: flow.tensor([0.75])),
    "tensor_getitem": (lambda: C.tensor_getitem(X, (1, slice(0, 3))), lambda: X[1, :3]),
    "identity": (lambda: C.identity(X), lambda: X),
    "randn": (lambda: flow.tensor(C.randn([2, 3]).shape), lambda: flow.tensor([2, 3])),
    "randint": (lambda: (C.randint(3, 5, [50]) - 3) // 2, lambda: flow.zeros(50, dtype=flow.int64)),
    "split_like": (lambda: flow.cat(C.split_like(X, [Y[:, :2], Y[:, :4]], 1), 1), lambda: X),
}  # fmt: skip
LOGS = randn(5, 2, 4).log_softmax(-1)
TARGETS = flow.tensor([[1, 2], [3, 3]])
LENGTHS = flow.tensor([5, 5])
GRID = randn(2, 3, 3, 2).tanh()
BOXES = flow.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])


def written():
    x = X.clone()
    x[1:3, :3] = Y[:2, :3]
    return x


@pytest.mark.parametrize("name", CASES)
def test_order_of_arguments(name):
    result, expected = (make() for make in CASES[name])
    assert result.shape == expected.shape
    assert np.allclose(result.numpy(), expected.numpy(), atol=1e-5)


def masked(x, scale, fill):
    return flow.where(MASK != 0, x * scale, fill).softmax(-1)


def causal(x, scale, fill, diagonal=0):
    below = flow.tril(flow.ones(5, 5), diagonal) > 0
    return flow.where(below, x * scale, fill)


H, M, K = 3, 5, 4
QKV = randn(M, 2, H * 3 * K)  # "MB(H3K)"
PARTS = [part.permute(1, 2, 0, 3) for part in QKV.reshape(M, 2, H, 3, K).unbind(3)]  # each (B, H, M, K)
BIAS = randn(H, M, M)


def attention(q, k, v, scores=lambda s: s, scale=K**-0.5):
    out = scores(q @ k.mT * scale).softmax(-1) @ v
    return out.transpose(1, 2).flatten(2)  # "BM(HK)"


def lower(scores, diagonal=0):
    below = flow.tril(flow.ones(*scores.shape[-2:]), diagonal) > 0
    return flow.where(below, scores, -flow.inf)


def together(x, layout):
    """(B, H, M, K) in another layout."""
    return {"BHMK": x, "BMHK": x.transpose(1, 2), "BM(HK)": x.transpose(1, 2).flatten(2),
            "MB(HK)": x.permute(2, 0, 1, 3).flatten(2)}[layout]  # fmt: skip


def inference(q="BM(HK)", k="BHMK", v="MB(HK)", **options):
    layouts = {"query_layout": q, "key_layout": k, "value_layout": v}
    query, key, value = (together(x, layout) for x, layout in zip(PARTS, layouts.values()))
    return C.fused_multi_head_attention_inference_v2(
        query=query, query_head_size=K, key=key, value=value, **layouts, **options
    )


FUSED = {
    "scale_tril": (lambda: C.fused_scale_tril(SCORES, 1, -3.0, 2.0), lambda: causal(SCORES, 2.0, -3.0, 1)),
    "scale_tril_softmax": (lambda: C.fused_scale_tril_softmax_mask_scale(SCORES, p=0.0, tril_scale_value=2.0,
                                                                         tril_fill_value=-1e4)[0],
                           lambda: causal(SCORES, 2.0, -1e4).softmax(-1)),
    "scale_tril_softmax_without_dropout": (
        lambda: C.fused_scale_tril_softmax_mask_scale(SCORES, p=0.9, diagonal=1, tril_scale_value=2.0)[1],
        lambda: causal(SCORES, 2.0, 0.0, 1).softmax(-1)),
    "scale_mask_softmax": (lambda: C.fused_scale_mask_softmax(SCORES, MASK, fill_value=-1e4, scale=0.5),
                           lambda: masked(SCORES, 0.5, -1e4)),
    "scale_mask_softmax_dropout": (
        lambda: C.fused_scale_mask_softmax_dropout(SCORES, MASK, fill_value=-9.0, scale=2.0, p=0.0)[0],
        lambda: masked(SCORES, 2.0, -9.0)),
    "scale_mask_softmax_eval": (
        lambda: C.fused_scale_mask_softmax_dropout(SCORES, MASK, scale=None, p=0.9, training=False)[0],
        lambda: masked(SCORES, 1.0, 0.0)),
    "bias_add_scale_mask_softmax_dropout": (
        lambda: C.fused_bias_add_scale_mask_softmax_dropout(SCORES, SCORES[0], MASK, fill_value=-9.0, scale=2.0)[1],
        lambda: masked(SCORES + SCORES[0], 2.0, -9.0)),
    "scale_mask_bias_softmax": (lambda: C.fused_scale_mask_bias_softmax(SCORES, SCORES[0], SCORES[1], scale=0.5),
                                lambda: (SCORES * 0.5 + SCORES[0] + SCORES[1]).softmax(-1)),
    "bias_add_gelu": (lambda: C.fused_bias_add_gelu(X, Y[0], axis=1), lambda: F.gelu(X + Y[0])),
    "bias_add_dropout": (lambda: C.fused_bias_add_dropout(X, Y[:, 0], p=0.0, axis=0), lambda: X + Y[:, :1]),
    "matmul_bias": (lambda: C.fused_matmul_bias(X, W, B), lambda: X @ W.T + B),
    "matmul_bias_added": (lambda: C.fused_matmul_bias(X, W, B, X[:, :5], 2.0, 3.0),
                          lambda: (X @ W.T + B) * 2 + X[:, :5] * 3),
    "mlp": (lambda: C.fused_mlp(X, [W, W.T], [B, Y[0]], False), lambda: ((X @ W.T + B).relu() @ W + Y[0]).relu()),
    "mlp_without_final": (lambda: C.fused_mlp(X, [W, W.T], [B, Y[0]], True),
                          lambda: (X @ W.T + B).relu() @ W + Y[0]),
    "glu": (lambda: C.fused_glu(X, W, B, W * 2, B * 3, activation="gelu"),
            lambda: (X @ W.T + B) * F.gelu(X @ W.T * 2 + B * 3)),
    "glu_of_halves": (lambda: C.fused_glu(X, W[:4], B[:4], activation="silu"),
                      lambda: (X @ W[:2].T + B[:2]) * F.silu(X @ W[2:4].T + B[2:4])),
    "fast_gelu": (lambda: C.fused_fast_gelu_mul(X, Y), lambda: F.gelu(X, "tanh") * Y),
    "dot_feature_interaction": (
        lambda: C.fused_dot_feature_interaction([X[:, None], SCORES[0, 0, :4, :1, None].expand(4, 2, 6) * Y[:, None]],
                                                output_concat=X, output_padding=2),
        lambda: interaction(X, SCORES[0, 0, :4, :1])),
    "dot_feature_interaction_sum": (
        lambda: C.fused_dot_feature_interaction([X[:, None], Y[:, None]], pooling="sum"), lambda: X * Y),
    "cross_feature_interaction": (lambda: C.fused_cross_feature_interaction(X, W[:1], Y, Y[0], "vector"),
                                  lambda: Y * (X @ W[:1].T) + Y[0] + X),
    "cross_feature_interaction_matrix": (
        lambda: C.fused_cross_feature_interaction(X, W.T @ W, Y, Y[0], "matrix"),
        lambda: Y * (X @ (W.T @ W) + Y[0]) + X),
    "self_attention": (lambda: C.fused_self_attention(QKV, head_size=K, alpha=0.5)[0],
                       lambda: PARTS[0] @ PARTS[1].mT * 0.5),
    "self_attention_values": (lambda: C.fused_self_attention(QKV, K)[1], lambda: PARTS[2]),
    "inference": (lambda: C.fused_multi_head_attention_inference(*[together(x, "BM(HK)") for x in PARTS], H, True),
                  lambda: attention(*PARTS, lower)),
    "inference_v2": (inference, lambda: attention(*PARTS)),
    "inference_v2_one_input": (
        lambda: C.fused_multi_head_attention_inference_v2(QKV, "MB(H3K)", query_head_size=K, scale=0.3,
                                                          output_layout="MB(HK)").transpose(0, 1),
        lambda: attention(*PARTS, scale=0.3)),
    "inference_v2_keys_and_values": (
        lambda: C.fused_multi_head_attention_inference_v2(
            query=together(PARTS[0], "BMHK"), query_layout="BMHK", key_layout="BM(H2K)",
            key=flow.stack([p.transpose(1, 2) for p in PARTS[1:]], 3).flatten(2)),
        lambda: attention(*PARTS)),
    "inference_v2_bias": (lambda: inference(attn_bias=F.pad(BIAS, (0, 3)), attn_mask_type="causal_from_top_left",
                                            causal_diagonal_offset=1),
                          lambda: attention(*PARTS, lambda s: lower(s + BIAS, 1))),
    "inference_v2_last_rows": (
        lambda: C.fused_multi_head_attention_inference_v2(
            query=PARTS[0][:, :, 2:], query_layout="BHMK", key=PARTS[1], value=PARTS[2], key_layout="BHMK",
            attn_mask_type="causal_from_bottom_right"),
        lambda: attention(PARTS[0][:, :, 2:], *PARTS[1:], lambda s: lower(s, 2))),
}  # fmt: skip


def interaction(x, factor):
    """Products of the pairs of x, y, y with y = factor * Y, after x, with two zeros at the end."""
    y = factor * Y
    products = [(a * b).sum(1) for a, b in ((y, x), (y, x), (y, y))]
    return flow.cat([x, flow.stack(products, 1), flow.zeros(4, 2)], 1)


@pytest.mark.parametrize("name", FUSED)
def test_fused_functions(name):
    result, expected = (make() for make in FUSED[name])
    assert result.shape == expected.shape
    assert np.allclose(result.numpy(), expected.numpy(), atol=1e-5)


class Fused(flow.nn.Graph):
    def build(self, x, mask):
        return C.fused_scale_mask_softmax_dropout(x, mask, fill_value=-1e4, scale=2.0, p=0.25)


def test_fused_functions_in_a_graph():
    graph = Fused()
    flow.manual_seed(0)
    dropped, y = graph(SCORES, MASK)
    assert flow.allclose(y, masked(SCORES, 2.0, -1e4), atol=1e-6)
    kept = dropped != 0
    assert flow.allclose(dropped[kept], y[kept] / 0.75, atol=1e-6) and 0.5 < kept[y > 1e-3].float().mean() < 1
    assert "/fused_scale_m" in str(graph.plan)  # one row in the views


@pytest.mark.parametrize(("mistake", "kind", "said"), [
    (lambda: C.fused_mlp(X, [], [B], False), ShapeError, "0 weights and 1 biases"),
    (lambda: C.fused_glu(X, W, B, activation="swish"), OutOfRangeError, "no activation 'swish'"),
    (lambda: inference(attn_mask_type="causal"), OutOfRangeError, "no attn_mask_type 'causal'"),
    (lambda: inference(output_layout="(BM)(HK)"), OutOfRangeError, r"layout '\(BM\)\(HK\)' is not supported"),
    (lambda: C.fused_multi_head_attention_inference_v2(QKV, "(BM)HK"), OutOfRangeError, r"layout '\(BM\)HK'"),
    (lambda: C.fused_multi_head_attention_inference_v2(QKV), ShapeError, "needs the size of a head"),
    (lambda: C.conv2d(IMAGE, KERNEL, channel_pos="channels_last"), OutOfRangeError, "_C.conv2d: the only layout"),
    (lambda: C.sparse_softmax_cross_entropy(LABELS, X), JobError, "swapped"),
    (lambda: C.sparse_softmax_cross_entropy(X, target=LABELS), CallError, "no argument 'target'"),
    (lambda: C.max_pool2d(IMAGE), CallError, "kernel_size"),
    (lambda: C.fused_apply_rotary_emb, MissingNameError, "other functions"),
])  # fmt: skip
def test_mistakes(mistake, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mistake()
    assert "Try: " in str(caught.value)
