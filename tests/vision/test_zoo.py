"""Models: torchvision's names, shapes and parameter counts, a step eagerly and as a graph, pretrained weights."""

import contextlib
import copy
import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DataError, OutOfRangeError, ShapeError, StateError
from minflow.vision import models
from minflow.vision.models import resnet, weights
from minflow.vision.models.mobilenet_v2 import make_divisible

SIZES = {
    "alexnet": 61_100_840, "lenet": 1_663_370, "mobilenet_v2": 3_504_872, "neural_style_transfer": 1_679_235,
    "resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032, "resnet101": 44_549_160,
    "resnet152": 60_192_808, "resnext50_32x4d": 25_028_904, "squeezenet1_0": 1_248_424, "squeezenet1_1": 1_235_496,
    "vgg11": 132_863_336, "vgg11_bn": 132_868_840, "vgg13": 133_047_848, "vgg13_bn": 133_053_736,
    "vgg16": 138_357_544, "vgg16_bn": 138_365_992, "vgg19": 143_667_240, "vgg19_bn": 143_678_248,
    "vit_b_16": 86_567_656, "vit_tiny": 142_026, "wide_resnet50_2": 68_883_240,
}  # fmt: skip


@contextlib.contextmanager
def undrawn():
    """Skip the random initialization: untouched memory costs neither time nor space."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in vars(nn.init) if n.endswith("_") and n[0] != "_"]:
            patch.setattr(nn.init, name, lambda tensor, *args, **options: tensor)
        yield


@pytest.fixture
def blank():
    with undrawn():
        yield


def shapes(model):
    return {name: tuple(t.shape) for name, t in model.state_dict().items()}


def of_norm(name, channels):
    """Return the entries of a batch norm in a state dict, with their shapes."""
    entries = dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (channels,))
    return {f"{name}.{entry}": shape for entry, shape in (entries | {"num_batches_tracked": ()}).items()}


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_parameter_counts_match_publications(blank):
    assert {name: count(models.get_model(name)) for name in models.list_models()} == SIZES
    assert count(models.UNet(3, 2)) == 31_037_698 and count(models.UNet(3, 1, bilinear=True)) == 17_262_977
    assert count(models.DCGANGenerator()) == 3_576_704 and count(models.DCGANDiscriminator()) == 2_765_568
    assert models.list_models("vgg1[16]") == ["vgg11", "vgg16"]
    with pytest.raises(OutOfRangeError, match=r"no model 'resnet81'"):
        models.get_model("resnet81")


def test_names_of_resnets(blank):
    names = shapes(models.resnet18(num_classes=7))
    assert list(names)[:7] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
        "layer1.0.conv1.weight",
    ]
    blocks = [f"layer{i}.{j}" for i in range(1, 5) for j in range(2)]
    convs = ["conv1.weight", *(f"{b}.conv{k}.weight" for b in blocks for k in (1, 2))]
    convs += [f"layer{i}.0.downsample.0.weight" for i in (2, 3, 4)]
    norms = ["bn1", *(f"{b}.bn{k}" for b in blocks for k in (1, 2)), *(f"layer{i}.0.downsample.1" for i in (2, 3, 4))]
    assert {*names} == {*convs, *(entry for n in norms for entry in of_norm(n, 0)), "fc.weight", "fc.bias"}
    assert names["fc.weight"] == (7, 512) and names["layer3.0.downsample.0.weight"] == (256, 128, 1, 1)
    deep = shapes(models.resnet50())
    assert len(deep) == 320 and deep["layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert deep["layer1.0.downsample.0.weight"] == (256, 64, 1, 1) and deep["layer3.5.bn3.bias"] == (1024,)
    assert shapes(models.resnext50_32x4d())["layer1.0.conv2.weight"] == (128, 4, 3, 3)
    assert shapes(models.wide_resnet50_2())["layer1.0.conv2.weight"] == (128, 128, 3, 3)


def names_of_mobilenet_v2():
    """Computed from the table of the paper, (expansion, channels, blocks), and torchvision's nesting."""
    names = {"features.0.0.weight": (32, 3, 3, 3)} | of_norm("features.0.1", 32)
    number, inside = 1, 32
    for expansion, channels, blocks in [
        (1, 16, 1),
        (6, 24, 2),
        (6, 32, 3),
        (6, 64, 4),
        (6, 96, 3),
        (6, 160, 3),
        (6, 320, 1),
    ]:
        for _ in range(blocks):
            block, wide, k = f"features.{number}.conv", inside * expansion, 0
            if expansion != 1:
                names |= {f"{block}.0.0.weight": (wide, inside, 1, 1)} | of_norm(f"{block}.0.1", wide)
                k = 1
            names |= {f"{block}.{k}.0.weight": (wide, 1, 3, 3)} | of_norm(f"{block}.{k}.1", wide)
            names |= {f"{block}.{k + 1}.weight": (channels, wide, 1, 1)} | of_norm(f"{block}.{k + 2}", channels)
            inside, number = channels, number + 1
    names |= {"features.18.0.weight": (1280, 320, 1, 1)} | of_norm("features.18.1", 1280)
    return names | {"classifier.1.weight": (1000, 1280), "classifier.1.bias": (1000,)}


def test_mobilenet_v2(blank):
    model = models.mobilenet_v2()
    assert shapes(model) == names_of_mobilenet_v2()
    assert model.last_channel == 1280 and type(model.features[0]).__name__ == "ConvBNActivation"
    assert model.features[1].use_res_connect is False and model.features[3].use_res_connect is True
    thin = models.mobilenet_v2(num_classes=7, width_mult=0.35)
    assert thin.last_channel == 1280 and thin.features[0][0].out_channels == 16
    assert thin(flow.rand(2, 3, 32, 32)).shape == (2, 7)
    assert [make_divisible(v) for v in (1, 12, 19, 33)] == [8, 16, 24, 32]


def test_lenet():
    assert shapes(models.lenet()) == {
        "conv1.weight": (32, 1, 5, 5), "conv1.bias": (32,), "conv2.weight": (64, 32, 5, 5), "conv2.bias": (64,),
        "fc1.weight": (512, 3136), "fc1.bias": (512,), "fc2.weight": (10, 512), "fc2.bias": (10,),
    }  # fmt: skip
    assert models.lenet()(flow.rand(2, 1, 28, 28)).shape == (2, 10)
    assert models.lenet(num_classes=4, in_channels=3)(flow.rand(2, 3, 28, 28)).shape == (2, 4)


def test_names_of_the_others(blank):
    names = shapes(models.vgg16())
    convs = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
    assert list(names) == [f"features.{i}.{p}" for i in convs for p in ("weight", "bias")] + [
        f"classifier.{i}.{p}" for i in (0, 3, 6) for p in ("weight", "bias")
    ]
    assert names["classifier.6.bias"] == (1000,) and names["features.28.weight"] == (512, 512, 3, 3)
    assert {"features.1.running_mean", "features.40.weight", "features.41.running_var"} <= {*shapes(models.vgg16_bn())}
    assert list(shapes(models.alexnet())) == [
        f"features.{i}.{p}" for i in (0, 3, 6, 8, 10) for p in ("weight", "bias")
    ] + [f"classifier.{i}.{p}" for i in (1, 4, 6) for p in ("weight", "bias")]
    fires = {"1_0": (3, 4, 5, 7, 8, 9, 10, 12), "1_1": (3, 4, 6, 7, 9, 10, 11, 12)}
    for version, places in fires.items():
        names = shapes(models.SqueezeNet(version))
        assert {*names} == {
            f"{n}.{p}"
            for p in ("weight", "bias")
            for n in (
                "features.0",
                "classifier.1",
                *(f"features.{i}.{part}" for i in places for part in ("squeeze", "expand1x1", "expand3x3")),
            )
        }
        assert names["features.12.expand3x3.weight"] == (256, 64, 3, 3)
    names = shapes(models.vit_b_16())
    assert names.pop("class_token") == (1, 1, 768) and names.pop("encoder.pos_embedding") == (1, 197, 768)
    assert names["conv_proj.weight"] == (768, 3, 16, 16) and names["heads.head.weight"] == (1000, 768)
    block = "encoder.layers.encoder_layer_0."
    assert {n.removeprefix(block): s for n, s in names.items() if n.startswith(block)} == {
        "ln_1.weight": (768,), "ln_1.bias": (768,), "ln_2.weight": (768,), "ln_2.bias": (768,),
        "self_attention.in_proj_weight": (2304, 768), "self_attention.in_proj_bias": (2304,),
        "self_attention.out_proj.weight": (768, 768), "self_attention.out_proj.bias": (768,),
        "mlp.0.weight": (3072, 768), "mlp.0.bias": (3072,), "mlp.3.weight": (768, 3072), "mlp.3.bias": (768,),
    }  # fmt: skip
    assert len(names) == 12 * 12 + 6 and "encoder.ln.weight" in names
    names = shapes(models.UNet(width=8))
    assert {
        "inc.double_conv.0.weight",
        "down1.maxpool_conv.1.double_conv.4.weight",
        "up4.up.bias",
        "up1.conv.double_conv.3.weight",
        "outc.conv.bias",
    } <= {*names}
    names = shapes(models.neural_style_transfer())
    assert {
        "conv1.conv2d.weight",
        "in3.bias",
        "res5.conv2.conv2d.bias",
        "res1.in1.weight",
        "deconv1.conv2d.weight",
        "deconv3.conv2d.bias",
    } <= {*names} and len(names) == 62
    assert shapes(models.DCGANGenerator())["main.12.weight"] == (64, 3, 4, 4)
    assert shapes(models.DCGANDiscriminator())["main.11.weight"] == (1, 512, 4, 4)


def small(name):
    """A model for three classes. VGG and AlexNet get a smaller classifier, as is usual with little memory."""
    if name not in ("vgg11_bn", "alexnet"):
        return models.get_model(name, num_classes=3)
    with undrawn():
        model = models.get_model(name)
    model.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(25088 if name == "vgg11_bn" else 9216, 3))
    for part in model.modules():
        if hasattr(part, "reset_parameters") and part is not model:
            part.reset_parameters()
    return model


class Step(nn.Graph):
    def __init__(self, model, loss, optimizer):
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss


def trained(model, x, y, loss, as_graph):
    """Return the loss of one step, the parameters and running statistics after it, and the output then."""
    flow.manual_seed(3)
    optimizer = flow.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    if as_graph:
        result = Step(model, loss, optimizer)(x, y)
    else:
        result = loss(model(x), y)
        result.backward()
        optimizer.step()
    model.eval()
    with flow.no_grad():
        return [result.numpy(), model(x).numpy(), *(t.numpy() for t in model.state_dict().values())]


PICTURES, PIXELS = nn.CrossEntropyLoss(), nn.MSELoss()
CASES = {
    "basic blocks": (lambda: resnet.ResNet(resnet.BasicBlock, [2, 1, 1, 1], 3), (2, 3, 32, 32), PICTURES),
    "bottlenecks": (lambda: resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1], 3, groups=4, width_per_group=8,
                                          replace_stride_with_dilation=[False, True, True], zero_init_residual=True),
                    (2, 3, 32, 32), PICTURES),
    "vgg11_bn": (lambda: small("vgg11_bn"), (2, 3, 32, 32), PICTURES),
    "alexnet": (lambda: small("alexnet"), (2, 3, 63, 63), PICTURES),
    "squeezenet1_1": (lambda: small("squeezenet1_1"), (2, 3, 32, 32), PICTURES),
    "vit_tiny": (lambda: models.vit_tiny(num_classes=3, dropout=0.1, attention_dropout=0.1, representation_size=5),
                 (2, 3, 32, 32), PICTURES),
    "mobilenet_v2": (lambda: small("mobilenet_v2"), (2, 3, 32, 32), PICTURES),
    "unet": (lambda: models.UNet(3, 3, width=4), (2, 3, 18, 21), PIXELS),
    "unet, interpolating": (lambda: models.UNet(3, 3, True, width=4), (2, 3, 18, 21), PIXELS),
    "generator": (lambda: models.DCGANGenerator(3, 4, image_size=16), (2, 3, 1, 1), PIXELS),
    "discriminator": (lambda: models.DCGANDiscriminator(3, 4, image_size=16), (2, 3, 16, 16), nn.BCELoss()),
    "style": (models.neural_style_transfer, (1, 3, 16, 12), PIXELS),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_graph_step_equals_eager_step(case):
    make, shape, loss = CASES[case]
    model, x = make(), flow.randn(*shape)
    with flow.no_grad():
        out = copy.deepcopy(model)(x)
    y = flow.tensor([2, 0]) if loss is PICTURES else flow.rand(*out.shape)
    assert loss is not PICTURES or out.shape == (2, 3)
    eager, graph = (trained(copy.deepcopy(model), x, y, loss, as_graph) for as_graph in (False, True))
    assert all(np.array_equal(a, b) and np.isfinite(a).all() for a, b in zip(eager, graph, strict=True))
    assert not all(np.array_equal(a, t.numpy()) for a, t in zip(eager[2:], model.state_dict().values(), strict=True))


def test_summary():
    text = str(flow.summary(models.resnet18(num_classes=3).eval(), flow.rand(1, 3, 32, 32)))
    assert "layer4" in text and "11,178,051" in text


@pytest.mark.parametrize(("mistake", "kind", "said"), [
    (lambda: models.ResNet(resnet.BasicBlock, [1, 1, 1, 1], groups=2), ShapeError, "groups=2"),
    (lambda: models.ResNet(resnet.BasicBlock, [1, 1]), ShapeError, r"layers=\[1, 1\]"),
    (lambda: models.SqueezeNet("2_0"), OutOfRangeError, "version '2_0'"),
    (lambda: models.vit_tiny(image_size=30), OutOfRangeError, "a multiple of patch_size, got 30 and 4"),
    (lambda: models.vit_tiny()(flow.rand(2, 3, 28, 28)), ShapeError, r"32x32, got shape \[2, 3, 28, 28\]"),
    (lambda: models.DCGANGenerator(image_size=48), OutOfRangeError, "power of two, at least 8, got 48"),
    (lambda: models.DCGANDiscriminator(image_size=4), OutOfRangeError, "power of two, at least 8, got 4"),
    (lambda: models.neural_style_transfer(style_model="monet"), OutOfRangeError, "style_model 'monet'"),
    (lambda: models.resnet18(weights="IMAGENET1K_V2"), OutOfRangeError, "no weights 'IMAGENET1K_V2'"),
    (lambda: models.resnet18(weights=models.ResNet34_Weights.DEFAULT), OutOfRangeError, "no weights .*ResNet34"),
])  # fmt: skip
def test_mistakes(mistake, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mistake()
    assert "test_zoo.py" in str(caught.value)


@pytest.mark.parametrize(("shape", "expected", "what", "hint"), [
    ((2, 1, 32, 32), "x float32[2, 1, 28, 28]", "and these are 32x32", "transforms.Resize((28, 28))"),
    ((2, 1, 8, 9), "x float32[2, 1, 28, 28]", "and these are 8x9", "transforms.Resize((28, 28))"),
    ((1, 28, 28), "x float32[1, 1, 28, 28]", "and this is a single one", "x.unsqueeze(0)"),
])  # fmt: skip
def test_lenet_error_names_its_image_size(shape, expected, what, hint):
    with pytest.raises(ShapeError) as caught:
        models.lenet()(flow.rand(*shape))
    assert caught.value.what == f"LeNet takes batches of images of 28x28, {what}" and caught.value.hint.startswith(hint)
    assert caught.value.values["expected"] == expected and "Linear" not in str(caught.value)
    assert "test_zoo.py:" in caught.value.where


# ---- pretrained weights ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("make", [models.lenet, models.mobilenet_v2])
def test_pretrained_error_says_how_to_load(make):
    with pytest.raises(DataError, match=rf"{make.__name__}\(pretrained=True\)[\s\S]*load_state_dict[\s\S]*safetensors"):
        make(pretrained=True)


@pytest.mark.parametrize(("call", "file"), [
    (lambda: models.resnet50(pretrained=True), "resnet50-0676ba61"),
    (lambda: models.resnet50(True), "resnet50-0676ba61"),
    (lambda: models.resnet50(weights="DEFAULT"), "resnet50-11ad3fa6"),
    (lambda: models.resnet50(weights=models.ResNet50_Weights.IMAGENET1K_V1), "resnet50-0676ba61"),
    (lambda: models.vgg16(models.VGG16_Weights.DEFAULT), "vgg16-397923af"),
    (lambda: models.vit_b_16(weights="ViT_B_16_Weights.IMAGENET1K_V1"), "vit_b_16-c867db91"),
])  # fmt: skip
def test_missing_file(folder, call, file):
    with pytest.raises(DataError) as caught:
        call()
    error = caught.value
    assert error.values["address"] == f"https://download.pytorch.org/models/{file}.pth" and f"{file}.pth" in error.what
    assert str(folder) in str(error.values["folder"]) and "test_zoo.py" in error.where
    assert re.search(r"into that folder .*MINFLOW_DATA.*load_state_dict", error.hint)


def test_weights_from_a_file(folder):
    trained = models.squeezenet1_1()
    flow.save(trained.state_dict(), folder / "squeezenet1_1-b8a52dc0.safetensors")
    x = flow.rand(1, 3, 32, 32)
    for model in (models.squeezenet1_1(pretrained=True), models.squeezenet1_1(weights="DEFAULT")):
        assert flow.equal(trained.eval()(x), model.eval()(x))
    with pytest.raises(StateError, match=r"classifier.1.weight[\s\S]*1000, 512"):
        models.squeezenet1_1(pretrained=True, num_classes=3)
    prepare = models.SqueezeNet1_1_Weights.DEFAULT.transforms()
    assert [type(t).__name__ for t in prepare.transforms] == ["Resize", "CenterCrop", "ToTensor", "Normalize"]


def test_styles_from_a_file(folder):
    """A file of PyTorch's example also has statistics of the instance norms, which are not used."""
    with pytest.raises(DataError, match=r"candy.pth is missing[\s\S]*saved_models.zip"):
        models.neural_style_transfer(pretrained=True, style_model="candy")
    trained = models.neural_style_transfer()
    state = {name: t.numpy() for name, t in trained.state_dict().items()}
    np.savez(folder / "candy.npz", **state, **{"in1.running_mean": np.zeros(32), "res1.in2.running_var": np.ones(128)})
    model = models.neural_style_transfer(True, style_model="candy")
    x = flow.rand(1, 3, 8, 8) * 255
    assert flow.equal(model(x), trained(x)) and model(x).shape == x.shape


def test_older_names_of_vision_transformers():
    one, other = models.vit_tiny(), models.vit_tiny()
    state = {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): t
        for name, t in one.state_dict().items()
    }
    assert sum("linear" in name for name in state) == 16
    other.load_state_dict(state)
    assert flow.equal(one(x := flow.rand(1, 3, 32, 32)), other(x))
    assert "encoder.layers.encoder_layer_0.mlp.linear_1.bias" in state  # the given dict is unchanged


def test_programs_of_flowvision(folder):
    """The import path of OneFlow's course, and its uses of the model."""
    from minflow.vision.models.neural_style_transfer.stylenet import neural_style_transfer

    model = neural_style_transfer(progress=True).eval()
    graph = type("MyGraph", (nn.Graph,), {"build": lambda self, *inputs: self.model(*inputs)})()
    graph.model = model
    image = flow.ones((1, 3, 16, 16))
    assert flow.equal(graph(image), model(image)) and isinstance(model, models.NeuralStyleTransfer)


def test_transfer_learning():
    """A typical course exercise: freeze a pretrained model, replace its head, train that."""
    model = models.resnet18(num_classes=5)
    for p in model.parameters():
        p.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, 2)
    optimizer = flow.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    before = [p.clone() for p in model.parameters()]
    nn.functional.cross_entropy(model(flow.rand(2, 3, 32, 32)), flow.tensor([0, 1])).backward()
    optimizer.step()
    changed = [name for (name, p), b in zip(model.named_parameters(), before) if not flow.equal(p, b)]
    assert changed == ["fc.weight", "fc.bias"]


def test_every_weight_file_belongs_to_a_model():
    assert weights.WEIGHTS_BY_MODEL.keys() <= {*models.list_models()}
