"""Models: torchvision's parameter names and shapes, and what they compute."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DataError, ShapeError
from minflow.vision import models
from minflow.vision.models.mobilenet_v2 import make_divisible


def test_lenet():
    model = models.lenet()
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes == {
        "conv1.weight": (32, 1, 5, 5),
        "conv1.bias": (32,),
        "conv2.weight": (64, 32, 5, 5),
        "conv2.bias": (64,),
        "fc1.weight": (512, 3136),
        "fc1.bias": (512,),
        "fc2.weight": (10, 512),
        "fc2.bias": (10,),
    }
    assert sum(p.numel() for p in model.parameters()) == 1_663_370
    assert model(flow.rand(2, 1, 28, 28)).shape == (2, 10) and models.lenet(num_classes=4, in_channels=3)(
        flow.rand(2, 3, 28, 28)
    ).shape == (2, 4)


def expected_names():
    """torchvision's names and shapes, from the table of the paper and its way of nesting."""

    def norm(prefix, n):
        return {
            f"{prefix}.weight": (n,),
            f"{prefix}.bias": (n,),
            f"{prefix}.running_mean": (n,),
            f"{prefix}.running_var": (n,),
            f"{prefix}.num_batches_tracked": (),
        }

    names = {"features.0.0.weight": (32, 3, 3, 3)} | norm("features.0.1", 32)
    number, inside = 1, 32
    for t, c, n, _ in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for _ in range(n):
            p, wide, k = f"features.{number}.conv", inside * t, 0
            if t != 1:
                names |= {f"{p}.0.0.weight": (wide, inside, 1, 1)} | norm(f"{p}.0.1", wide)
                k = 1
            names |= {f"{p}.{k}.0.weight": (wide, 1, 3, 3)} | norm(f"{p}.{k}.1", wide)
            names |= {f"{p}.{k + 1}.weight": (c, wide, 1, 1)} | norm(f"{p}.{k + 2}", c)
            inside, number = c, number + 1
    names |= {"features.18.0.weight": (1280, 320, 1, 1)} | norm("features.18.1", 1280)
    return names | {"classifier.1.weight": (1000, 1280), "classifier.1.bias": (1000,)}


def test_mobilenet_v2():
    model = models.mobilenet_v2()
    found = {name: tuple(t.shape) for name, t in model.state_dict().items()}
    assert found == expected_names() and len(found) == 314
    assert sum(p.numel() for p in model.parameters()) == 3_504_872  # as torchvision documents it
    assert model.last_channel == 1280 and type(model.features[0]).__name__ == "ConvBNActivation"
    assert model.features[1].use_res_connect is False and model.features[3].use_res_connect is True
    model.eval()
    with flow.no_grad():
        assert model(flow.rand(1, 3, 64, 32)).shape == (1, 1000)
    thin = models.mobilenet_v2(num_classes=7, width_mult=0.35)
    assert (
        thin.last_channel == 1280
        and thin.features[0][0].out_channels == 16
        and thin(flow.rand(2, 3, 32, 32)).shape == (2, 7)
    )
    assert [make_divisible(v) for v in (1, 12, 19, 33)] == [8, 16, 24, 32]


def test_every_parameter_gets_a_gradient():
    model = models.mobilenet_v2(num_classes=3)
    model(flow.rand(2, 3, 32, 32)).sum().backward()
    assert all(p.grad is not None and np.isfinite(p.grad.numpy()).all() for p in model.parameters())


@pytest.mark.parametrize(("shape", "expected", "what", "hint"), [
    ((2, 1, 32, 32), "x float32[2, 1, 28, 28]", "and these are 32x32", "transforms.Resize((28, 28))"),
    ((2, 1, 8, 9), "x float32[2, 1, 28, 28]", "and these are 8x9", "transforms.Resize((28, 28))"),
    ((1, 28, 28), "x float32[1, 1, 28, 28]", "and this is a single one", "x.unsqueeze(0)"),
])  # fmt: skip
def test_lenet_says_which_images_it_takes(shape, expected, what, hint):
    with pytest.raises(ShapeError) as caught:
        models.lenet()(flow.rand(*shape))
    assert caught.value.what == f"LeNet takes batches of images of 28x28, {what}" and caught.value.hint.startswith(hint)
    assert caught.value.values["expected"] == expected and "Linear" not in str(caught.value)
    assert "test_models.py:" in caught.value.where


@pytest.mark.parametrize("make", [models.lenet, models.mobilenet_v2])
def test_pretrained_says_how_to_load(make):
    with pytest.raises(DataError, match=rf"{make.__name__}\(pretrained=True\)[\s\S]*load_state_dict[\s\S]*safetensors"):
        make(pretrained=True)


def test_weights_travel_by_name(tmp_path):
    """A state_dict in numpy's npz, as a user of PyTorch would write it."""
    one, other = models.lenet().eval(), models.lenet().eval()
    np.savez(tmp_path / "weights.npz", **{name: t.numpy() for name, t in one.state_dict().items()})
    other.load_state_dict(flow.load(tmp_path / "weights.npz"))
    x = flow.rand(2, 1, 28, 28)
    assert flow.equal(one(x), other(x))
