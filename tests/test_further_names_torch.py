"""Names that programs bring, against PyTorch: adaptive softmax, linalg.*_ex, custom_fwd. Skipped without PyTorch."""

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch


@pytest.mark.parametrize("head_bias", (False, True))
def test_adaptive_softmax(head_bias):
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 50, [5, 20], head_bias=head_bias)
    ours = flow.nn.AdaptiveLogSoftmaxWithLoss(16, 50, [5, 20], head_bias=head_bias)
    ours.load_state_dict(theirs.state_dict())
    x, labels = np.random.default_rng(0).normal(size=(9, 16)).astype("f"), [0, 4, 5, 19, 20, 49, 7, 3, 30]
    both = []
    for lib, module in ((flow, ours), (torch, theirs)):
        rows = lib.tensor(x, requires_grad=True)
        output, loss = module(rows, lib.tensor(labels))
        loss.backward()
        one = module(rows[0], lib.tensor(labels[0])).output
        grads = [p.grad for p in module.parameters()]
        both.append([output, loss, one, rows.grad, module.log_prob(rows), module.predict(rows), *grads])
    for a, b in zip(*both):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_linear_algebra_with_info():
    x = np.array([[[2.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    b = np.ones((3, 2, 2))
    calls = (
        lambda lib: lib.linalg.inv_ex(lib.tensor(x)),
        lambda lib: lib.linalg.cholesky_ex(lib.tensor(x)),
        lambda lib: lib.linalg.cholesky_ex(lib.tensor(x[:1]), upper=True),
        lambda lib: lib.linalg.solve_ex(lib.tensor(x), lib.tensor(b)),
        lambda lib: lib.linalg.solve_ex(lib.tensor(x[0]), lib.tensor(b[0]), left=False),
    )
    for call in calls:
        (ours, info), (theirs, expected) = call(flow), call(torch)
        failed = expected.numpy() > 0
        assert (
            ((info.numpy() > 0) == failed).all() and info.dtype is flow.int32 and type(call(flow))._fields[1] == "info"
        )
        np.testing.assert_allclose(ours.numpy()[~failed], theirs.numpy()[~failed], rtol=1e-6, atol=1e-12)
        assert np.isnan(ours.numpy()[failed]).all()
    with pytest.raises(flow.linalg.LinAlgError):
        flow.linalg.inv_ex(flow.tensor(x), check_errors=True)


@pytest.mark.parametrize("cast_inputs", (None, "float32"))
def test_custom_forward_under_autocast(cast_inputs):
    def run(lib):
        seen = []

        class Product(lib.autograd.Function):
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs and getattr(lib, cast_inputs))
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                seen.append(str((a @ b).dtype).split(".")[-1])
                return a @ b

            @staticmethod
            @lib.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                seen.append(str((a @ b).dtype).split(".")[-1])
                return grad.to(a.dtype) @ b.to(a.dtype).t(), a.t() @ grad.to(a.dtype)

        a, b = lib.ones(2, 3, requires_grad=True), lib.ones(3, 2, requires_grad=True)
        with lib.autocast("cpu", lib.bfloat16):
            out = Product.apply(a, b)
        out.sum().backward()
        return [*seen, a.grad.tolist()]

    assert run(flow) == run(torch)


def test_fork_rng():
    flow.manual_seed(0)
    before = flow.get_rng_state()
    with flow.random.fork_rng():
        flow.rand(3)
        flow.manual_seed(5)
    assert (flow.get_rng_state() == before).all()
    with flow.random.fork_rng(enabled=False):
        flow.rand(3)
    assert not (flow.get_rng_state() == before).all()
