"""Losses, activations, distances, weight norms and module hooks: error texts and legacy names."""

import copy
import warnings

import numpy as np
import pytest

import minflow as flow
from minflow import DTypeError, nn
from tests.graphs import Training, eager_steps

F = nn.functional
X, Y = flow.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]]), flow.tensor([[0.5, 0.5, 0.5], [1.0, 2.0, -1.0]])

MISTAKES = [
    (lambda: F.smooth_l1_loss(X, Y, beta=-1), "beta must be at least 0, got -1"),
    (lambda: F.huber_loss(X, Y, delta=0), "delta must be above 0, got 0"),
    (lambda: F.mse_loss(X, Y, weight=Y[0]), r"weight has shape \[3\], input has \[2, 3\]"),
    (lambda: F.margin_ranking_loss(X, Y, flow.ones(3)), r"the numbers of axes must be equal, got .*target \[3\]"),
    (lambda: F.triplet_margin_loss(X, Y, Y, margin=0.0), "margin must be above 0, got 0.0"),
    (lambda: nn.HuberLoss(None), "reduction is None"),
    (lambda: F.kl_div(X, flow.ones(2, 4)), r"the shapes differ: input \[2, 3\], target \[2, 4\]"),
    (lambda: F.hinge_embedding_loss(X.long(), Y), "input must be floating, got int64"),
    (lambda: F.cosine_embedding_loss(X, Y, Y), r"must be \(N, D\), \(N, D\) and \(N,\), got .*target \[2, 3\]"),
    (
        lambda: F.gaussian_nll_loss(X, Y, Y - 2),
        r"var must not be negative, got -3 to .*; first -1.5 \(at position \(0, 0\)",
    ),
    (lambda: F.gaussian_nll_loss(X, Y, Y[:, :2]), r"var has shape \[2, 2\], input has \[2, 3\]"),
    (lambda: F.multi_margin_loss(X, flow.tensor([0, 3])), "labels go from 0 to 3, and the input has 3 classes"),
    (lambda: F.multi_margin_loss(X, flow.tensor([0, 1]), p=3), "p must be 1 or 2, got 3"),
    (lambda: F.multilabel_margin_loss(X, flow.tensor([0, 1])), r"got float32\[2, 3\] and int64\[2\]"),
    (lambda: F.ctc_loss(X.unsqueeze(1), flow.tensor([[3]]), [2], [1]), "classes, 0 to 2, got 3"),
    (lambda: F.ctc_loss(X.unsqueeze(1), flow.tensor([[1]]), [3], [1]), "input_lengths holds 3, where 0 to 2 can be"),
    (lambda: F.ctc_loss(X.unsqueeze(1), flow.tensor([1]), [2], [2]), "target_lengths holds 2, where 0 to 1 can be"),
    (lambda: F.ctc_loss(X.unsqueeze(1), flow.tensor([[1]]), [2], [1], blank=3), "blank is 3, there are 3 classes"),
    (lambda: F.ctc_loss(X[0], flow.tensor([1]), 2, 1), "log_probs must be .* got 1 axes"),
    (lambda: F.sparse_softmax_cross_entropy(X, flow.tensor([0, 1])), "labels first"),
    (lambda: F.combined_margin_loss(X, flow.tensor([0])), r"label \[1\] for x \[2, 3\]"),
    (lambda: F.cosine_similarity(X, flow.ones(2, 4)), "sizes differ"),
    (lambda: F.cdist(X, flow.ones(2, 4)), "rows of x1 have 3 elements, those of x2 4"),
    (lambda: F.cdist(X, X, p=-1), "p must be .* got -1"),
    (lambda: F.pdist(X[0]), "input must be rows .* got 1 axes"),
    (lambda: F.bilinear(X, Y, flow.ones(2, 3, 4)), r"weight \[2, 3, 4\] do not fit"),
    (lambda: F.prelu(X, flow.ones(2)), r"weight has shape \[2\], and the input 3 channels \(axis 1\)"),
    (lambda: F.celu(X, 0.0), "alpha must not be 0"),
    (lambda: F.glu(X), "axis 1 has size 3, which has no halves"),
    (lambda: F.hardtanh(X, 1, -1), "min_val 1 is above max_val -1"),
    (lambda: nn.Hardtanh(1, 1), "min_val must be below max_val, got 1 and 1"),
    (lambda: F.softshrink(X, -1), "lambd must be at least 0, got -1"),
    (lambda: F.gumbel_softmax(X, 0), "tau must be .*above 0, got 0"),
    (lambda: F.rrelu(X, 1, 0), "must be finite and in order, got 1 and 0"),
    (lambda: F.rrelu(X, upper=float("inf")), "must be finite and in order, got 0.125 and inf"),
    (lambda: nn.Softmax2d()(X), "got 2 axes"),
    (lambda: F.dropout1d(X[0]), "the input must have 3 axes, or 2 for one example, got 1"),
    (lambda: F.alpha_dropout(X, 2.0), "p must be .* got 2.0"),
    (lambda: nn.Dropout2d(-1), "Dropout2d: p must be .* got -1"),
    (lambda: F.embedding_bag(flow.tensor([0, 1]), X), "offsets are not given"),
    (lambda: F.embedding_bag(flow.tensor([0, 1]), X, flow.tensor([1])), "offsets must begin with 0, got 1"),
    (lambda: F.embedding_bag(flow.tensor([[0, 1]]), X, mode="x"), "mode is 'x'"),
    (lambda: nn.EmbeddingBag(2, 3, mode="x"), "mode is 'x'"),
    (lambda: nn.utils.weight_norm(nn.ReLU()), "ReLU has no parameter 'weight'"),
    (lambda: nn.utils.remove_spectral_norm(nn.Linear(2, 2)), "'weight' of this Linear is not computed"),
    (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), "must be in evaluation mode"),
    (lambda: nn.Sequential(nn.ReLU()).set_submodule("1", nn.ReLU(), strict=True), "no module '1' to replace"),
]


@pytest.mark.parametrize(("call", "said"), MISTAKES, ids=[said[:30] for _, said in MISTAKES])
def test_mistakes_are_explained(call, said):
    with pytest.raises(flow.MinflowError, match=said):
        call()


def with_warnings(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in seen]


OLD = [
    (lambda: F.mse_loss(X, Y, size_average=False), lambda: F.mse_loss(X, Y, reduction="sum")),
    (lambda: F.mse_loss(X, Y, False), lambda: F.mse_loss(X, Y, reduction="sum")),
    (lambda: F.l1_loss(X, Y, None, False), lambda: F.l1_loss(X, Y, reduction="none")),
    (lambda: nn.MSELoss(False)(X, Y), lambda: nn.MSELoss(reduction="sum")(X, Y)),
    (
        lambda: nn.CrossEntropyLoss(None, False)(X, flow.tensor([0, 1])),
        lambda: nn.CrossEntropyLoss(reduction="sum")(X, flow.tensor([0, 1])),
    ),
    (
        lambda: nn.TripletMarginLoss(1.0, 2.0, 1e-6, False, False)(X, Y, Y + 1),
        lambda: nn.TripletMarginLoss(reduction="sum")(X, Y, Y + 1),
    ),
]


@pytest.mark.parametrize(("old", "new"), OLD, ids=range(len(OLD)))
def test_size_average_and_reduce_warn_and_set_the_reduction(old, new):
    result, said = with_warnings(old)
    assert result.tolist() == new().tolist() and "old names of reduction" in said[0] and len(said) == 1


def test_unset_legacy_arguments_do_not_warn():
    assert with_warnings(lambda: F.mse_loss(X, Y, None, None, "sum")) == (F.mse_loss(X, Y, reduction="sum"), [])
    assert isinstance(nn.NLLLoss2d(), nn.NLLLoss)


REPRS = {
    "ELU(alpha=1.0)": lambda: nn.ELU(),
    "ELU(alpha=0.5, inplace=True)": lambda: nn.ELU(0.5, True),
    "CELU(alpha=1.0)": lambda: nn.CELU(),
    "SELU()": lambda: nn.SELU(),
    "PReLU(num_parameters=3)": lambda: nn.PReLU(3),
    "GLU(dim=-1)": lambda: nn.GLU(),
    "Softplus(beta=1.0, threshold=20.0)": lambda: nn.Softplus(),
    "Softshrink(0.5)": lambda: nn.Softshrink(),
    "Hardtanh(min_val=-2, max_val=2)": lambda: nn.Hardtanh(min_value=-2, max_value=2),
    "Threshold(threshold=0.1, value=20)": lambda: nn.Threshold(0.1, 20),
    "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)": lambda: nn.Bilinear(2, 3, 4),
    "Embedding(4, 3, padding_idx=0, max_norm=2.0)": lambda: nn.Embedding(4, 3, 0, 2.0),
    "EmbeddingBag(4, 3, mode='sum', padding_idx=0)": lambda: nn.EmbeddingBag(4, 3, mode="sum", padding_idx=0),
    "KLDivLoss()": lambda: nn.KLDivLoss(reduction="batchmean"),
}


@pytest.mark.parametrize("text", REPRS)
def test_reprs(text):
    assert repr(REPRS[text]()) == text


def test_methods_match_functions():
    for name in "gelu quick_gelu silu mish softplus softsign selu celu square_relu hardshrink".split():
        assert getattr(X, name)().tolist() == getattr(flow, name)(X).tolist() == getattr(F, name)(X).tolist()
    assert X.prelu(flow.tensor([2.0])).tolist() == [[1.0, -4.0, 0.5], [0.0, 3.0, -2.0]]


def test_in_place_functions_write_and_keep_the_gradient():
    for name, args in dict(
        relu_=(), leaky_relu_=(), elu_=(), selu_=(), celu_=(), hardtanh_=(), threshold_=(0.1, 2.0), rrelu_=()
    ).items():
        w, x = (X.clone().requires_grad_() for _ in range(2))
        y = w * 1.0
        assert getattr(F, name)(y, *args) is y
        want = getattr(F, name[:-1])(x * 1.0, *args)
        y.sum().backward()
        want.sum().backward()
        assert y.tolist() == want.tolist() and w.grad.tolist() == x.grad.tolist(), name


def test_channel_dropout_zeros_whole_channels():
    flow.manual_seed(0)
    out = F.dropout2d(flow.ones(8, 5, 2, 3), 0.5)
    whole = out.reshape(40, 6)
    assert set(whole.flatten().tolist()) == {0.0, 2.0} and (whole.amax(1) == whole.amin(1)).all()
    assert (F.dropout3d(flow.ones(4, 2, 2, 2)).reshape(4, 8).std(1) == 0).all()


def test_alpha_dropout_keeps_mean_and_variance():
    flow.manual_seed(0)
    x = flow.randn(200, 200)
    out = F.alpha_dropout(x, 0.3, True)
    assert abs(out.mean().item()) < 0.02 and abs(out.std().item() - 1) < 0.02
    assert F.alpha_dropout(x, 1.0, True).abs().max() == 0 and F.alpha_dropout(x) is x


def test_gumbel_softmax_samples_with_its_probabilities():
    flow.manual_seed(0)
    logits = flow.log(flow.tensor([0.5, 0.3, 0.2])).expand(4000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(hard.flatten().tolist()) == {0.0, 1.0} and (hard.sum(1) == 1).all()
    assert np.allclose(hard.mean(0).tolist(), [0.5, 0.3, 0.2], atol=0.03)
    hard[:, 0].sum().backward()
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_weight_norms_train_the_same_in_a_graph(norm):
    model = norm(nn.Linear(4, 3))
    other, x = copy.deepcopy(model), flow.randn(5, 4)
    losses = eager_steps(model, flow.optim.SGD(model.parameters(), 0.1), x, 20)
    graph = Training(other, flow.optim.SGD(other.parameters(), 0.1))
    assert [graph(x).item() for _ in range(20)] == losses
    assert "weight" not in model.state_dict() and "weight" in dir(model) and not model.weight.is_leaf


def test_weight_norm_can_be_removed():
    layer = nn.Linear(4, 3)
    weight = layer.weight.detach().clone()
    nn.utils.weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"] and layer.weight_g.shape == (3, 1)
    assert np.allclose(layer.weight.tolist(), weight.tolist(), atol=1e-6)
    assert list(nn.utils.remove_weight_norm(layer).state_dict()) == ["bias", "weight"]
    nn.utils.spectral_norm(layer, n_power_iterations=20)(flow.ones(1, 4))
    assert np.isclose(np.linalg.svd(layer.weight.tolist())[1][0], 1.0, atol=1e-4)
    assert sorted(nn.utils.remove_spectral_norm(layer).state_dict()) == ["bias", "weight"]


def test_batch_norm_is_fused_into_weights():
    for layer, norm, x, fuse in (
        (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), flow.randn(1, 2, 4, 4), nn.utils.fuse_conv_bn_eval),
        (nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3), flow.randn(4, 2), nn.utils.fuse_linear_bn_eval),
    ):
        norm(layer(x))
        both = nn.Sequential(layer, norm).eval()
        assert np.allclose(fuse(layer, norm)(x).tolist(), both(x).tolist(), atol=1e-5)


def test_legacy_hook_names_buffers_and_positions():
    layer, seen = nn.Linear(2, 1), []
    _, said = with_warnings(lambda: layer.register_backward_hook(lambda module, gi, go: seen.append(go)))
    assert "register_full_backward_hook" in said[0]
    layer(flow.ones(1, 2)).sum().backward()
    assert len(seen) == 1
    layer.mean, layer.more = nn.Buffer(flow.ones(2)), nn.Buffer(flow.ones(1), persistent=False)
    assert [name for name, _ in layer.named_buffers()] == ["mean", "more"]
    assert sorted(layer.state_dict()) == ["bias", "mean", "weight"]
    model = nn.Sequential(nn.Sequential(nn.ReLU()))
    model.set_submodule("0.0", nn.Tanh())
    assert isinstance(model[0][0], nn.Tanh) and model.share_memory() is model and model.compile() is None
    assert model.to_empty(device="cpu") is model and layer.type(flow.float64).weight.dtype is flow.float64


def test_legacy_names_of_init_and_clip():
    w = flow.zeros(3, 3)
    assert with_warnings(lambda: nn.init.xavier_uniform(w))[1][0].startswith("init.xavier_uniform is the old name")
    assert with_warnings(lambda: nn.init.dirac(flow.zeros(2, 2, 1)))[0][1, 1, 0] == 1
    p = nn.Parameter(flow.zeros(2))
    p.grad = flow.tensor([3.0, 4.0])
    assert with_warnings(lambda: nn.utils.clip_grad_norm([p], 1.0))[0].item() == 5
    p.grad = flow.tensor([3.0, 4.0])
    nn.utils.clip_grads_with_norm_([p], 2.5, flow.tensor(5.0))
    assert np.allclose(p.grad.tolist(), [1.5, 2.0]) and isinstance(nn.utils.skip_init(nn.Linear, 2, 1), nn.Linear)


def test_distances_do_not_materialize_all_differences():
    a, b = flow.randn(40, 3), flow.randn(30, 3)
    want = np.linalg.norm(a.numpy()[:, None] - b.numpy(), axis=-1)
    assert np.allclose(flow.cdist(a, b).numpy(), want, atol=1e-6)
    assert np.allclose(flow.pdist(a[:3]).tolist(), flow.cdist(a[:3], a[:3])[[0, 0, 1], [1, 2, 2]].tolist())


def test_depend():
    x, y = flow.ones(2), flow.zeros(3)
    assert F.depend(x, y) is x and F.depend(x, [y, x]) is x
    with pytest.raises(DTypeError, match="depend"):
        F.depend(x, [y, 3])
