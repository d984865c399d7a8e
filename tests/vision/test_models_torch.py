"""Models with the same weights as in PyTorch, and files written by PyTorch."""

import inspect

import numpy as np
import pytest

import minflow as flow
from minflow.vision import models
from minflow.vision.models import resnet
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch


def twin(module):
    """Build the same layers in PyTorch."""
    import torch.nn as tnn

    from minflow import nn

    if isinstance(module, nn.Conv2d):
        return tnn.Conv2d(
            module.in_channels,
            module.out_channels,
            module.kernel_size,
            module.stride,
            module.padding,
            groups=module.groups,
            bias=False,
        )
    if isinstance(module, nn.BatchNorm2d):
        return tnn.BatchNorm2d(module.num_features)
    if isinstance(module, nn.Linear):
        return tnn.Linear(module.in_features, module.out_features)
    if isinstance(module, nn.Dropout):
        return tnn.Dropout(module.p)
    if isinstance(module, nn.ReLU6):
        return tnn.ReLU6()
    if isinstance(module, inspect.unwrap(models.mobilenet_v2).__globals__["InvertedResidual"]):

        class Block(tnn.Module):
            def __init__(self):
                super().__init__()
                self.conv = twin(module.conv)

            def forward(self, x):
                return x + self.conv(x) if module.use_res_connect else self.conv(x)

        return Block()
    return tnn.Sequential(*map(twin, module))


def test_same_logits():
    flow.manual_seed(0)
    ours = models.mobilenet_v2(num_classes=10).eval()
    theirs = torch.nn.Module()
    theirs.features, theirs.classifier = twin(ours.features), twin(ours.classifier)
    theirs.load_state_dict(
        {name: torch.from_numpy(np.array(t.numpy())) for name, t in ours.state_dict().items()}, strict=True
    )
    theirs.eval()
    x = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype("float32")
    with torch.no_grad(), flow.no_grad():
        expected = theirs.classifier(theirs.features(torch.from_numpy(x)).mean((2, 3))).numpy()
        assert np.allclose(ours(flow.from_numpy(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def weights_of(model):
    """Return the state_dict as PyTorch tensors."""
    return {name: torch.from_numpy(np.array(t.numpy())) for name, t in model.state_dict().items()}


def resnet_in_torch(w, x):
    """Return the logits of a ResNet in eval mode, computed by PyTorch from the state_dict alone."""
    F = torch.nn.functional

    def conv_norm(x, conv, norm, stride=1):
        x = F.conv2d(x, w[f"{conv}.weight"], stride=stride, padding=w[f"{conv}.weight"].shape[-1] // 2)
        return F.batch_norm(x, *(w[f"{norm}.{n}"] for n in ("running_mean", "running_var", "weight", "bias")))

    x = F.max_pool2d(F.relu(conv_norm(x, "conv1", "bn1", 2)), 3, 2, 1)
    for block in dict.fromkeys(".".join(name.split(".")[:2]) for name in w if name.startswith("layer")):
        last = 3 if f"{block}.conv3.weight" in w else 2
        shrinks = 2 if block.endswith(".0") and block[5] != "1" else 1
        out = x
        for i in range(1, last + 1):
            out = conv_norm(out, f"{block}.conv{i}", f"{block}.bn{i}", shrinks if i == last - 1 else 1)
            out = F.relu(out) if i < last else out
        if f"{block}.downsample.0.weight" in w:
            x = conv_norm(x, f"{block}.downsample.0", f"{block}.downsample.1", shrinks)
        x = F.relu(out + x)
    return F.linear(x.mean((2, 3)), w["fc.weight"], w["fc.bias"])


@pytest.mark.parametrize("block", [resnet.BasicBlock, resnet.Bottleneck])
def test_resnets(block):
    model = resnet.ResNet(block, [2, 1, 1, 2], 5)
    model(flow.randn(4, 3, 64, 64))  # running statistics that are not 0 and 1
    x = np.random.default_rng(0).standard_normal((2, 3, 70, 64)).astype("float32")
    with torch.no_grad(), flow.no_grad():
        expected = resnet_in_torch(weights_of(model), torch.from_numpy(x)).numpy()
        assert np.allclose(model.eval()(flow.from_numpy(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_vision_transformers():
    """Each block is PyTorch's TransformerEncoderLayer with the norms first."""
    model = models.vit_tiny(num_layers=2, num_classes=5).eval()
    flow.nn.init.normal_(model.heads.head.weight)
    w = weights_of(model)
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype("float32")
    with torch.no_grad(), flow.no_grad():
        y = torch.nn.functional.conv2d(torch.from_numpy(x), w["conv_proj.weight"], w["conv_proj.bias"], stride=4)
        y = torch.cat([w["class_token"].expand(2, -1, -1), y.flatten(2).transpose(1, 2)], 1)
        y = y + w["encoder.pos_embedding"]
        for i in range(2):
            block = torch.nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", 1e-6, True, True).eval()
            prefix = f"encoder.layers.encoder_layer_{i}."
            names = {"self_attention": "self_attn", "ln_": "norm", "mlp.0": "linear1", "mlp.3": "linear2"}
            state = {n.removeprefix(prefix): t for n, t in w.items() if n.startswith(prefix)}
            for ours, theirs in names.items():
                state = {n.replace(ours, theirs): t for n, t in state.items()}
            block.load_state_dict(state)
            y = block(y)
        y = torch.nn.functional.layer_norm(y, (64,), w["encoder.ln.weight"], w["encoder.ln.bias"], 1e-6)[:, 0]
        expected = torch.nn.functional.linear(y, w["heads.head.weight"], w["heads.head.bias"]).numpy()
        assert np.allclose(model(flow.from_numpy(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_weights_in_a_pytorch_file(tmp_path, monkeypatch):
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path))
    trained = models.squeezenet1_1().eval()
    torch.save(weights_of(trained), tmp_path / "squeezenet1_1-b8a52dc0.pth")
    model = models.squeezenet1_1(weights=models.SqueezeNet1_1_Weights.DEFAULT).eval()
    x = flow.rand(1, 3, 32, 32)
    assert flow.equal(model(x), trained(x))
