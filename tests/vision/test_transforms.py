"""Transforms on PIL images, arrays and tensors; random ones in loaders; errors."""

import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, LoaderError, MissingDependencyError, OutOfRangeError, ShapeError
from minflow.utils.data import DataLoader, Subset
from minflow.vision import datasets, transforms
from minflow.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")
RGB = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype="uint8")
GRAY = RGB[:, :, 0].copy()


def kinds(array):
    """One picture as PIL image, array and tensor, each with a function that returns an array [H, W(, C)]."""
    planes = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)

    def back(tensor):
        out = tensor.numpy()
        return out[0] if array.ndim == 2 else out.transpose(1, 2, 0)

    return [
        (Image.fromarray(array), np.asarray),
        (array, np.asarray),
        (flow.tensor(np.ascontiguousarray(planes)), back),
    ]


def equal_on_all(function, array, expected=None):
    results = [back(function(image)) for image, back in kinds(array)]
    expected = results[0] if expected is None else expected
    for result in results:
        assert result.dtype == np.uint8 and np.array_equal(result, expected)


@pytest.mark.parametrize("array", [RGB, GRAY], ids=["color", "gray"])
def test_all_input_types_give_the_same_result(array):
    equal_on_all(F.hflip, array, array[:, ::-1])
    equal_on_all(F.vflip, array, array[::-1])
    equal_on_all(lambda i: F.crop(i, 2, 3, 5, 7), array, array[2:7, 3:10])
    equal_on_all(lambda i: F.center_crop(i, (6, 4)), array, array[3:9, 6:10])
    equal_on_all(lambda i: F.pad(i, (1, 2)), array, np.pad(array, ((2, 2), (1, 1)) + ((0, 0),) * (array.ndim - 2)))
    equal_on_all(lambda i: F.pad(i, 2, padding_mode="reflect"), array)
    equal_on_all(lambda i: F.crop(i, -1, -2, 20, 20), array)
    for size in ((24, 20), 6, (12, 16)):
        equal_on_all(lambda i: F.resize(i, size), array)  # noqa: B023
    assert F.image_size(F.resize(Image.fromarray(array), 6)) == (6, 8)
    flow.manual_seed(1)
    t = transforms.Compose([transforms.RandomCrop(8, padding=2), transforms.RandomHorizontalFlip()])

    def fixed(image):
        flow.manual_seed(5)
        return t(image)

    equal_on_all(fixed, array)


def test_to_tensor():
    for image in (Image.fromarray(RGB), RGB):
        x = transforms.ToTensor()(image)
        assert x.dtype is flow.float32 and x.shape == (3, 12, 16) and x.is_contiguous()
        assert np.array_equal(x.numpy(), (RGB.transpose(2, 0, 1).astype("float32") / np.float32(255)))
    assert transforms.ToTensor()(GRAY).shape == (1, 12, 16)
    assert transforms.ToTensor()(Image.fromarray(GRAY > 100)).max().item() == 1
    assert transforms.ToTensor()(GRAY.astype("float64")).dtype is flow.float64
    back = transforms.ToPILImage()(transforms.ToTensor()(RGB))
    assert np.array_equal(np.asarray(back), RGB)
    with pytest.raises(DTypeError, match="already a tensor"):
        transforms.ToTensor()(flow.ones(3, 4, 4))


def test_resize_of_floats():
    x = flow.rand(2, 3, 8, 8)
    y = F.resize(x, (16, 4))
    assert y.shape == (2, 3, 16, 4) and y.dtype is flow.float32 and abs(y.mean().item() - x.mean().item()) < 0.02
    assert F.resize(np.full((4, 4), 1000, "int32"), 8).dtype == np.int32


def test_normalize():
    x = flow.rand(3, 4, 5)
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    y = transforms.Normalize(mean, std)(x)
    expected = (x.numpy() - np.array(mean, "float32").reshape(3, 1, 1)) / np.array(std, "float32").reshape(3, 1, 1)
    assert np.array_equal(y.numpy(), expected)
    assert flow.equal(transforms.Normalize(mean, std)(flow.stack([x, x]))[1], y)
    x.requires_grad_()
    transforms.Normalize(0.5, 0.5)(x).sum().backward()
    assert x.grad[0, 0, 0].item() == 2
    z = flow.rand(3, 4, 5)
    assert transforms.Normalize(mean, std, inplace=True)(z) is z


def test_linear_transformation():
    image, mean = flow.rand(2, 3, 4), flow.rand(24)
    matrix = flow.rand(24, 24)
    whiten = transforms.LinearTransformation(matrix, mean)
    expected = (image.numpy().reshape(-1) - mean.numpy()) @ matrix.numpy()
    assert np.allclose(whiten(image).numpy(), expected.reshape(2, 3, 4), atol=1e-5)
    assert np.allclose(whiten(flow.stack([image, image]))[1].numpy(), expected.reshape(2, 3, 4), atol=1e-5)


@pytest.mark.parametrize(
    "mistake, kind, said",
    [
        (
            lambda: transforms.Normalize([0.5] * 3, [0.5] * 3)(flow.rand(1, 4, 4)),
            ShapeError,
            r"mean must have one value per channel, got 3 for 1",
        ),
        (lambda: transforms.Normalize(0.5, 0.5)(RGB), DTypeError, "ToTensor comes first"),
        (lambda: transforms.Normalize(0.5, 0), OutOfRangeError, r"std must be positive, got \[0.0\]"),
        (lambda: transforms.Normalize([0.5, 0.5], 0.5), ShapeError, "2 means and 1"),
        (
            lambda: transforms.LinearTransformation(flow.eye(4), flow.ones(3)),
            ShapeError,
            r"matrix \[4, 4\], a mean \[3\]",
        ),
        (
            lambda: transforms.LinearTransformation(flow.eye(4), flow.ones(4))(flow.ones(1, 3, 2)),
            ShapeError,
            r"must have 4 numbers, got shape \[1, 3, 2\]",
        ),
        (lambda: transforms.RandomCrop(20)(RGB), ShapeError, "20x20 pixels does not fit into an image of 12x16"),
        (lambda: transforms.RandomHorizontalFlip(1.5), OutOfRangeError, r"p must be in \[0, 1\], got 1.5"),
        (lambda: transforms.Resize(0), OutOfRangeError, "size must be positive, got 0"),
        (lambda: transforms.Resize(8, "cubic")(RGB), OutOfRangeError, "'cubic'"),
        (lambda: transforms.RandomHorizontalFlip()([1, 2]), DTypeError, "not list"),
        (lambda: transforms.CenterCrop(2)(flow.ones(3)), ShapeError, r"\[3\]"),
        (lambda: transforms.Compose([transforms.ToTensor]), LoaderError, r"ToTensor\(\)"),
        (lambda: transforms.RandomCrop(4, padding=-1), OutOfRangeError, "padding must be non-negative, got -1"),
        (lambda: transforms.Lambda(3), DTypeError, "3 cannot be called"),
    ],
)
def test_mistakes(mistake, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mistake()
    assert "test_transforms.py" in str(caught.value)


def test_random_crops_are_even():
    flow.manual_seed(0)
    t, image = transforms.RandomCrop(2), np.arange(9, dtype="uint8").reshape(3, 3)
    seen = [int(t(image)[0, 0]) for _ in range(2000)]
    assert {i: abs(seen.count(i) - 500) < 90 for i in (0, 1, 3, 4)} == dict.fromkeys((0, 1, 3, 4), True) and len(
        set(seen)
    ) == 4
    flips = sum(int(transforms.RandomHorizontalFlip(0.3)(image)[0, 0] == 2) for _ in range(2000))
    assert abs(flips - 600) < 80
    assert transforms.RandomCrop(5, pad_if_needed=True)(image).shape == (5, 5)
    assert np.array_equal(transforms.RandomVerticalFlip(1)(image), image[::-1])


AUGMENT = transforms.Compose(
    [
        transforms.RandomCrop(28, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.RandomResizedCrop(24),
        transforms.ColorJitter(0.4, 0.4),
        transforms.RandomRotation(15),
        transforms.Resize(20),
        transforms.ToTensor(),
        transforms.RandomErasing(),
        transforms.Normalize(0.5, 0.5),
    ]
)


def test_workers_do_not_change_bits():
    data = Subset(datasets.Digits(image_size=28, transform=AUGMENT), range(130))

    def walk(**crew):
        loader = DataLoader(data, 64, shuffle=True, generator=flow.Generator().manual_seed(2), **crew)
        return [np.concatenate([x.numpy().reshape(-1) for x, _ in loader]) for _ in range(2)]

    alone = walk()
    assert not np.array_equal(*alone)
    for crew in (dict(num_workers=2), dict(num_workers=3, workers="process")):
        assert all(np.array_equal(a, b) for a, b in zip(alone, walk(**crew)))


def test_arrays_and_pictures_give_the_same_result():
    """A user's function in the chain gets a PIL image; the values are those of the array."""
    seen = []

    def look(image):
        seen.append(type(image).__module__)
        return image

    chain = transforms.Compose([transforms.Lambda(look), *AUGMENT.transforms])
    results = []
    for t in (AUGMENT, chain):
        flow.manual_seed(9)
        results.append([x for x, _ in DataLoader(Subset(datasets.Digits(False, 28, t), range(60)), 50)])
    assert all(flow.equal(a, b) for a, b in zip(*results)) and seen[0] == "PIL.Image"


def test_without_pillow():
    """Only functions that use Pillow require it, and the error says how to install it."""
    program = """
import sys
sys.modules["PIL"] = None
import numpy as np
from minflow.core.base.errors import MissingDependencyError
from minflow.utils.data import DataLoader
from minflow.vision import datasets, transforms as T
chain = T.Compose([T.RandomCrop(8, padding=1), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(0.5, 0.5)])
x, y = next(iter(DataLoader(datasets.Digits(transform=chain), 32)))
assert x.shape == (32, 1, 8, 8)
for act in (lambda: T.Resize(4)(np.zeros((8, 8), "uint8")), lambda: datasets.FakeData()[0]):
    try:
        act()
    except MissingDependencyError as error:
        print(error.what.split()[0], "extra 'notebook'" in error.what, "notebook" in error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "Resize True True\nToPILImage True True\n" and issubclass(MissingDependencyError, ImportError)


def test_reprs():
    assert repr(AUGMENT).splitlines()[1] == "    RandomCrop(size=(28, 28), padding=4)" and "ToTensor()" in repr(AUGMENT)


class Darker(transforms.ToTensor):
    def forward(self, image):
        self.kind = type(image).__module__
        return super().forward(image) / 2


def test_transforms_are_modules():
    image = flow.tensor(np.arange(3 * 8 * 8, dtype="uint8").reshape(3, 8, 8))
    steps = [transforms.CenterCrop(4), transforms.ConvertImageDtype(flow.float32), transforms.Normalize(0.5, 0.5)]
    network = flow.nn.Sequential(*steps, flow.nn.Flatten(0), flow.nn.Linear(48, 2))
    assert flow.equal(network[:3](image), transforms.Compose(steps)(image)) and network(image).shape == (2,)
    assert [name for name, _ in network.named_parameters()] == ["4.weight", "4.bias"]
    assert "(2): Normalize(mean=[0.5], std=[0.5])" in repr(network)
    assert all(isinstance(t, flow.nn.Module) for t in (*steps, transforms.Compose(steps), transforms.RandomApply([])))
    seen = []
    steps[0].register_forward_hook(lambda module, args, out: seen.append(out.shape))
    assert transforms.Compose(steps)(image).shape == (3, 4, 4) and seen == [(3, 4, 4)]


def test_a_subclass_computes_what_it_defines():
    data, darker = datasets.ImageDataset(RGB[None], np.array([0])), Darker()
    data.transform = darker
    loaded = next(iter(DataLoader(data, batch_size=1)))[0]
    assert flow.equal(loaded[0], transforms.ToTensor()(RGB) / 2) and darker.kind.startswith("PIL")
