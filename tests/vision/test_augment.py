"""Random transforms, colors and points against Pillow, colorsys and NumPy; reproducibility; errors."""

import colorsys

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, MissingNameError, OutOfRangeError, ShapeError
from minflow.vision import transforms as T
from minflow.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")
from PIL import ImageEnhance, ImageOps

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (12, 16, 3), dtype="uint8")
PICTURE = Image.fromarray(RGB)
BYTES = flow.tensor(RGB.transpose(2, 0, 1).copy())
FLOATS = BYTES.float() / 255


def back(tensor):
    """Convert a tensor [C, H, W] to an array [H, W, C]."""
    return tensor.numpy().transpose(1, 2, 0)


COLOR_CHANGES = [
    (lambda i: F.adjust_brightness(i, 0.6), "Brightness", 0.6),
    (lambda i: F.adjust_brightness(i, 1.7), "Brightness", 1.7),
    (lambda i: F.adjust_contrast(i, 0.5), "Contrast", 0.5), (lambda i: F.adjust_contrast(i, 1.5), "Contrast", 1.5),
    (lambda i: F.adjust_saturation(i, 0.0), "Color", 0.0), (lambda i: F.adjust_saturation(i, 2.5), "Color", 2.5),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "factor"), COLOR_CHANGES)
def test_color_changes_match_pillow(function, kind, factor):
    expected = np.asarray(getattr(ImageEnhance, kind)(PICTURE).enhance(factor))
    assert np.array_equal(np.asarray(function(PICTURE)), expected) and np.array_equal(function(RGB), expected)
    for tensor, scale in ((BYTES, 1), (FLOATS, 255)):
        out = function(tensor)
        assert out.dtype is tensor.dtype and out.shape == tensor.shape
        assert np.abs(back(out).astype("float64") * scale - expected).max() <= max(2, 2 * factor)
    assert flow.equal(F.adjust_brightness(BYTES, 1.0), BYTES)


def test_hues():
    for turn in (-0.5, -0.2, 0.0, 0.3):
        expected = np.array(
            [
                [
                    colorsys.hsv_to_rgb((h + turn) % 1, s, v)
                    for h, s, v in (colorsys.rgb_to_hsv(*(p / 255)) for p in row)
                ]
                for row in RGB
            ]
        )
        assert np.allclose(back(F.adjust_hue(FLOATS, turn)), expected, atol=1e-5)
        assert np.abs(back(F.adjust_hue(BYTES, turn)) - expected * 255).max() <= 1.01
        assert np.abs(np.asarray(F.adjust_hue(PICTURE, turn)) - expected * 255).max() <= 18  # Pillow has 256 steps
    gray = PICTURE.convert("L")
    assert F.adjust_hue(gray, 0.2) is gray and flow.equal(F.adjust_hue(FLOATS[:1], 0.2), FLOATS[:1])


def test_gray_negative_and_gamma():
    gray = np.asarray(PICTURE.convert("L"))
    assert np.array_equal(np.asarray(T.Grayscale()(PICTURE)), gray) and T.Grayscale()(RGB[:, :, 0]).shape == (12, 16)
    assert np.array_equal(T.Grayscale(3)(RGB), np.dstack([gray] * 3)) and T.Grayscale(3)(FLOATS).shape == (3, 12, 16)
    assert np.abs(back(T.Grayscale()(BYTES))[:, :, 0].astype(int) - gray).max() <= 1
    weights = np.array([0.2989, 0.587, 0.114], "float32")
    assert np.allclose(T.Grayscale()(FLOATS).numpy()[0], back(FLOATS) @ weights, atol=1e-6)
    assert np.array_equal(F.invert(RGB), 255 - RGB) and np.array_equal(back(F.invert(BYTES)), 255 - RGB)
    assert np.allclose(F.invert(FLOATS).numpy(), 1 - FLOATS.numpy())
    assert np.allclose(F.adjust_gamma(FLOATS, 2.0).numpy(), FLOATS.numpy() ** 2)
    for out in (np.asarray(F.adjust_gamma(PICTURE, 0.5)), back(F.adjust_gamma(BYTES, 0.5))):
        assert np.abs(out - 255 * (RGB / 255) ** 0.5).max() <= 1.001


def test_quarter_turns():
    square, wide = BYTES[:, :, :12].contiguous(), FLOATS
    for quarters in range(4):
        expected = np.rot90(back(square), quarters)
        for mode in (T.InterpolationMode.NEAREST, "bilinear"):
            assert np.array_equal(back(F.rotate(square, 90 * quarters, mode)), expected)
        assert np.array_equal(np.asarray(F.rotate(Image.fromarray(back(square)), 90 * quarters)), expected)
        turned = F.rotate(wide, 90 * quarters, expand=True)
        assert np.allclose(back(turned), np.rot90(back(wide), quarters), atol=1e-6)
    for angle in (10, 45, 100):
        assert F.image_size(F.rotate(wide, angle, expand=True)) == F.image_size(F.rotate(PICTURE, angle, expand=True))


def both(function, array):
    """Return the results for a PIL image and for a tensor as integer arrays."""
    tensor = flow.tensor(array.transpose(2, 0, 1).copy())
    return np.asarray(function(Image.fromarray(array))).astype(int), back(function(tensor)).astype(int)


MOVES = [
    lambda i: F.affine(i, 20, (3, -4), 1.1, (5.0, -8.0), "bilinear"),
    lambda i: F.affine(i, -35, (0, 0), 0.8, 10.0, "bilinear", center=(10, 12)),
    lambda i: F.affine(i, 0, (5, 2), 1.0, 0.0, "bilinear"),
    lambda i: F.rotate(i, 25, "bilinear"),
    lambda i: F.rotate(i, 25, "bilinear", center=(5, 30)),
]


@pytest.mark.parametrize("move", MOVES)
def test_tensor_sampling_points_match_pillow(move):
    """For a smooth picture, away from its borders, where rounding differs."""
    y, x = np.mgrid[0:40, 0:48]
    one, other = both(move, np.stack([4 * x, 5 * y, 2 * (x + y)], -1).astype("uint8"))
    inside = np.logical_and(*(w.min(-1) == 255 for w in both(move, np.full((40, 48, 3), 255, "uint8"))))
    for axis in (0, 1):
        inside &= np.roll(inside, 1, axis) & np.roll(inside, -1, axis)
    assert inside.mean() > 0.2 and np.abs(one - other)[inside].max() <= 2


def test_area_outside_is_filled():
    assert np.array_equal(back(F.affine(BYTES, 0, (3, 2), 1.0, 0.0, fill=7))[:2], np.full((2, 16, 3), 7))
    assert np.array_equal(back(F.affine(BYTES, 0, (3, 2), 1.0, 0.0))[2:, 3:], RGB[:-2, :-3])
    corner = F.rotate(FLOATS, 45, fill=[0.1, 0.2, 0.3])[:, 0, 0]
    assert np.allclose(corner.numpy(), [0.1, 0.2, 0.3])
    assert F.rotate(PICTURE, 45, fill=(1, 2, 3)).getpixel((0, 0)) == (1, 2, 3)


def test_blur():
    d = np.arange(-2, 3)
    wx, wy = (np.exp(-0.5 * (d / s) ** 2) for s in (0.7, 1.5))
    kernel = np.outer(wy / wy.sum(), wx / wx.sum())
    mirrored = np.pad(RGB.astype("float64"), ((2, 2), (2, 2), (0, 0)), "reflect")
    expected = sum(kernel[i, j] * mirrored[i : i + 12, j : j + 16] for i in range(5) for j in range(5))
    blurred = F.gaussian_blur(FLOATS, 5, (0.7, 1.5))
    assert np.allclose(back(blurred) * 255, expected, atol=1e-3) and blurred.dtype is flow.float32
    for image, out in ((PICTURE, np.asarray), (RGB, np.asarray), (BYTES, back)):
        assert np.abs(out(F.gaussian_blur(image, (5, 5), (0.7, 1.5))) - expected).max() <= 0.51
    assert flow.equal(F.gaussian_blur(BYTES, 3), F.gaussian_blur(BYTES, 3, 0.8))


def test_crops_dtypes_and_borders():
    corners = T.FiveCrop((5, 6))(RGB)
    assert [
        np.array_equal(c, e)
        for c, e in zip(corners, (RGB[:5, :6], RGB[:5, -6:], RGB[-5:, :6], RGB[-5:, -6:], RGB[4:9, 5:11]))
    ] == [True] * 5
    assert len(T.TenCrop(4)(PICTURE)) == 10 and np.array_equal(T.TenCrop(4)(RGB)[5], RGB[:, ::-1][:4, :4])
    assert flow.equal(T.PILToTensor()(PICTURE), BYTES) and flow.equal(T.PILToTensor()(RGB), BYTES)
    floats = T.ConvertImageDtype(flow.float32)(BYTES)
    assert flow.allclose(floats, FLOATS) and flow.equal(T.ConvertImageDtype(flow.uint8)(floats), BYTES)
    assert T.ConvertImageDtype(flow.float64)(FLOATS).dtype is flow.float64
    wide = T.ConvertImageDtype(flow.int32)(BYTES)
    assert wide.max().item() == BYTES.max().item() * 2**23 and flow.equal(T.ConvertImageDtype(flow.uint8)(wide), BYTES)
    assert T.Pad((1, 2), fill=9)(RGB).shape == (16, 18, 3) and F.get_dimensions(PICTURE) == [3, 12, 16]
    assert F.get_image_size(RGB) == [16, 12] and F.get_dimensions(RGB[:, :, 0]) == [1, 12, 16]
    assert F.image_size(T.Resize(24, max_size=28)(RGB)) == (21, 28) and F.image_size(T.Resize([6])(RGB)) == (6, 8)
    nearest = T.Resize((24, 32), T.InterpolationMode.NEAREST, antialias=True)(RGB)
    assert np.array_equal(nearest, RGB.repeat(2, 0).repeat(2, 1))
    assert np.array_equal(F.resized_crop(RGB, 2, 3, 5, 6, (5, 6)), RGB[2:7, 3:9])


def wider(image):
    """The image with mirrored borders: below 256 pixels, equalizing changes nothing."""
    return F.pad(image, 8, padding_mode="reflect")


TONES = [
    (lambda i: F.posterize(i, 3), lambda: RGB & 0b11100000),
    (lambda i: F.solarize(i, 100), lambda: np.where(RGB < 100, RGB, 255 - RGB)),
    (F.autocontrast, lambda: np.asarray(ImageOps.autocontrast(PICTURE))),
    (lambda i: F.equalize(wider(i)), lambda: np.asarray(ImageOps.equalize(wider(PICTURE)))),
    (lambda i: F.adjust_sharpness(i, 0), lambda: np.asarray(ImageEnhance.Sharpness(PICTURE).enhance(0))),
    (lambda i: F.adjust_sharpness(i, 1.8), lambda: np.asarray(ImageEnhance.Sharpness(PICTURE).enhance(1.8))),
]


@pytest.mark.parametrize(("function", "expected"), TONES)
def test_tones_and_sharpness_match_pillow(function, expected):
    expected = expected()
    assert not np.array_equal(expected, RGB)
    assert np.array_equal(np.asarray(function(PICTURE)), expected) and np.array_equal(function(RGB), expected)
    assert np.abs(back(function(BYTES)).astype(int) - expected).max() <= 1


def test_tones_of_floats():
    assert flow.equal(F.solarize(FLOATS, 0.4), flow.where(FLOATS < 0.4, FLOATS, 1 - FLOATS))
    low, high = FLOATS.amin((1, 2), True), FLOATS.amax((1, 2), True)
    assert flow.allclose(F.autocontrast(FLOATS * 0.5 + 0.1), (FLOATS - low) / (high - low), atol=1e-5)
    flat = flow.full((3, 4, 4), 0.3)
    assert flow.equal(F.autocontrast(flat), flat) and flow.equal(F.equalize(BYTES[:, :2, :2]), BYTES[:, :2, :2])
    smooth = F.adjust_sharpness(FLOATS, 0).numpy()
    part = FLOATS.numpy()[:, 3:6, 7:10]
    assert np.allclose(smooth[:, 4, 8], (part.sum((1, 2)) + 4 * part[:, 1, 1]) / 13)
    assert np.array_equal(smooth[:, 0], FLOATS.numpy()[:, 0])


def test_perspective():
    corners = [[0, 0], [16, 0], [16, 12], [0, 12]]
    for image in (FLOATS, BYTES, RGB, PICTURE):
        moved = F.perspective(image, corners, [[x + 2, y + 1] for x, y in corners], "nearest")
        assert np.array_equal(array(moved)[..., -5:, -5:], array(F.affine(image, 0, (2, 1), 1, 0))[..., -5:, -5:])
    tilted = [[1, 2], [15, 0], [13, 11], [2, 12]]
    back_again = F.perspective(F.perspective(FLOATS, corners, tilted), tilted, corners)
    blurred = F.gaussian_blur(FLOATS, 5, 2.0)
    again = F.perspective(F.perspective(blurred, corners, tilted), tilted, corners)
    assert (again - blurred)[:, 3:-3, 3:-3].abs().max() < 0.1 < (back_again - FLOATS)[:, 3:-3, 3:-3].abs().max()
    for start, end in (T.RandomPerspective.get_params(16, 12, 0.5) for _ in range(50)):
        inward = np.abs(np.array(start) - np.array(end))
        assert start == [[0, 0], [15, 0], [15, 11], [0, 11]] and (inward <= [4, 3]).all()


def test_policies():
    assert [len(T.AutoAugment(policy).policies) for policy in T.AutoAugmentPolicy] == [25, 25, 25]
    learned = {kind for policy in T.AutoAugmentPolicy for pair in T.AutoAugment(policy).policies for kind, _, _ in pair}
    assert learned - set(T.RandAugment().largest(1, 1)) == {"Invert"}
    assert T.AutoAugment().policies[0] == [("Posterize", 0.4, 8), ("Rotate", 0.6, 9)]
    ends = {kind: [T.RandAugment().strength(kind, step, RGB) for step in (0, 15, 30)] for kind in learned - {"Invert"}}
    assert ends["Rotate"] == [0, 15, 30] and ends["Solarize"] == [255, 127.5, 0] and ends["Posterize"] == [8, 6, 4]
    assert ends["TranslateX"][2] == 150 / 331 * 16 and ends["TranslateY"][2] == 150 / 331 * 12
    assert T.TrivialAugmentWide().strength("Rotate", 30, RGB) == 135
    flow.manual_seed(0)
    rotations = [T.RandAugment().apply_signed(BYTES, "Rotate", 9, word) for word in (0, 2**32 - 1)]
    assert [flow.equal(r, F.rotate(BYTES, a)) for r, a in zip(rotations, (-9, 9))] == [True, True]
    assert repr(T.RandAugment()).startswith("RandAugment(num_ops=2, magnitude=9, num_magnitude_bins=31")


RANDOM = {
    "AutoAugment": (T.AutoAugment, [PICTURE, RGB, BYTES]),
    "RandAugment": (T.RandAugment, [PICTURE, RGB, BYTES]),
    "TrivialAugmentWide": (T.TrivialAugmentWide, [PICTURE, RGB, BYTES]),
    "RandomInvert": (T.RandomInvert, [PICTURE, RGB, FLOATS]),
    "RandomAutocontrast": (T.RandomAutocontrast, [PICTURE, RGB, FLOATS * 0.5]),
    "RandomEqualize": (T.RandomEqualize, [wider(PICTURE), wider(RGB), wider(BYTES)]),
    "RandomPosterize": (lambda: T.RandomPosterize(2), [PICTURE, RGB, BYTES]),
    "RandomSolarize": (lambda: T.RandomSolarize(0.3), [PICTURE, RGB, FLOATS]),
    "RandomAdjustSharpness": (lambda: T.RandomAdjustSharpness(3), [PICTURE, RGB, FLOATS]),
    "RandomPerspective": (T.RandomPerspective, [PICTURE, RGB, FLOATS]),
    "ColorJitter": (lambda: T.ColorJitter(0.5, 0.5, 0.5, 0.2), [PICTURE, RGB, BYTES, FLOATS]),
    "RandomGrayscale": (lambda: T.RandomGrayscale(0.5), [PICTURE, RGB, BYTES]),
    "GaussianBlur": (lambda: T.GaussianBlur(3), [PICTURE, RGB, FLOATS]),
    "RandomRotation": (lambda: T.RandomRotation(30), [PICTURE, RGB, FLOATS]),
    "RandomAffine": (lambda: T.RandomAffine(30, (0.2, 0.2), (0.8, 1.2), 10), [PICTURE, RGB, FLOATS]),
    "RandomResizedCrop": (lambda: T.RandomResizedCrop(8), [PICTURE, RGB, FLOATS]),
    "RandomErasing": (lambda: T.RandomErasing(0.5, value="random"), [FLOATS]),
    "RandomApply": (lambda: T.RandomApply([T.RandomHorizontalFlip(1.0)], 0.5), [PICTURE, RGB, FLOATS]),
    "RandomChoice": (lambda: T.RandomChoice([T.RandomCrop(6), T.CenterCrop(6)]), [PICTURE, RGB, FLOATS]),
    "RandomOrder": (lambda: T.RandomOrder([T.RandomCrop(8), T.Pad(2), T.Resize((8, 8))]), [PICTURE, RGB]),
}  # fmt: skip


def array(image):
    return image.numpy() if isinstance(image, flow.Tensor) else np.asarray(image)


@pytest.mark.parametrize("name", RANDOM)
def test_random_and_reproducible(name):
    make, images = RANDOM[name]
    t = make()
    assert repr(t).startswith(f"{name}(")
    for image in images:
        results = []
        for _ in range(2):
            flow.manual_seed(4)
            results.append([array(t(image)) for _ in range(8)])
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
        assert any(a.shape != results[0][0].shape or not np.array_equal(a, results[0][0]) for a in results[0][1:])
        assert type(t(image)) is type(image) or isinstance(image, Image.Image)
        assert array(t(image)).dtype == array(image).dtype


def test_probability_and_positions():
    flow.manual_seed(0)
    t, black = T.RandomErasing(0.7, (0.1, 0.3), (0.5, 2.0), value=1), flow.zeros(3, 20, 30)
    parts = [t(black)[0].numpy() for _ in range(300)]
    erased = [p for p in parts if p.any()]
    assert abs(len(erased) - 210) < 35 and black.sum().item() == 0
    for p in erased:
        rows, columns = p.any(1).sum(), p.any(0).sum()
        assert p.sum() == rows * columns and 0.08 < p.mean() < 0.33 and 0.4 < rows / columns < 2.4
    colored = T.RandomErasing(1.0, value=[0.1, 0.2, 0.3])(black)
    assert np.allclose(colored.numpy().max((1, 2)), [0.1, 0.2, 0.3])
    inplace = flow.zeros(1, 9, 9)
    assert T.RandomErasing(1.0, value=1, inplace=True)(inplace) is inplace and inplace.sum().item() > 0
    chosen = [T.RandomChoice([lambda i: 0, lambda i: 1, lambda i: 2], [1, 0, 3])(RGB) for _ in range(400)]
    assert abs(chosen.count(0) - 100) < 40 and 1 not in chosen
    orders = {tuple(T.RandomOrder([lambda i: [*i, 0], lambda i: [*i, 1], lambda i: [*i, 2]])([])) for _ in range(60)}
    assert len(orders) == 6
    for _ in range(50):
        top, left, height, width = T.RandomResizedCrop.get_params(RGB, (0.2, 0.5), (0.5, 2.0))
        assert 0 <= top <= 12 - height and 0 <= left <= 16 - width and 0.15 < height * width / 192 < 0.6
    assert T.RandomResizedCrop.get_params(RGB, (4.0, 5.0), (1.0, 1.0)) == (0, 2, 12, 12)
    assert all(-5 <= T.RandomRotation.get_params((-5, 3)) <= 3 for _ in range(20))
    assert T.RandomCrop.get_params(RGB, (12, 16)) == (0, 0, 12, 16)
    same = T.ColorJitter()(PICTURE)
    assert same is PICTURE and T.ColorJitter(hue=(0.1, 0.1)).hue == (0.1, 0.1)


@pytest.mark.parametrize(("mistake", "kind", "said"), [
    (lambda: T.ColorJitter(-1), OutOfRangeError, "brightness must be non-negative, got -1"),
    (lambda: T.ColorJitter(hue=0.7), OutOfRangeError, r"hue must be .* in \[-0.5, 0.5\], got 0.7"),
    (lambda: T.ColorJitter(0.5)([1]), DTypeError, "not list"),
    (lambda: F.adjust_hue(RGB, 0.6), OutOfRangeError, "factor must be in .*, got 0.6"),
    (lambda: F.adjust_brightness(RGB.astype("float32"), 1), DTypeError, "not of float32"),
    (lambda: F.adjust_brightness(flow.rand(2, 4, 4), 1), ShapeError, r"\[2, 4, 4\]"),
    (lambda: F.rgb_to_grayscale(RGB, 2), OutOfRangeError, "num_output_channels must be 1 or 3, got 2"),
    (lambda: T.RandomErasing()(PICTURE), DTypeError, "ToTensor"),
    (lambda: T.RandomErasing(value="noise"), OutOfRangeError, "'noise'"),
    (lambda: T.RandomErasing(1.2), OutOfRangeError, r"p must be in \[0, 1\], got 1.2"),
    (lambda: F.erase(RGB, 0, 0, 1, 1, 0), DTypeError, "got ndarray"),
    (lambda: T.RandomRotation((5, 1)), OutOfRangeError, r"degrees must be .*, got \(5, 1\)"),
    (lambda: T.RandomRotation(5, "cubic"), OutOfRangeError, "'cubic'"),
    (lambda: F.rotate(FLOATS, 5, "bicubic"), OutOfRangeError, "nearest or bilinear"),
    (lambda: T.RandomAffine(5, translate=(2, 0)), OutOfRangeError, r"translate must be .*, got \(2, 0\)"),
    (lambda: F.affine(RGB, 0, (0, 0), 0, 0), OutOfRangeError, "scale must be positive, got 0"),
    (lambda: T.GaussianBlur(4)(RGB), OutOfRangeError, "kernel_size must be odd, got"),
    (lambda: F.gaussian_blur(RGB, 3, 0), OutOfRangeError, "sigma must be positive, got 0"),
    (lambda: F.gaussian_blur(RGB, 25), ShapeError, "16 pixels cannot be mirrored 12 wide|12 pixels"),
    (lambda: T.FiveCrop(20)(RGB), ShapeError, "20x20 pixels do not fit into an image of 12x16"),
    (lambda: T.PILToTensor()(BYTES), DTypeError, "already a tensor"),
    (lambda: T.ConvertImageDtype(flow.float32)(RGB), DTypeError, "PILToTensor"),
    (lambda: T.RandomApply([T.ToTensor()], 2), OutOfRangeError, r"p must be in \[0, 1\], got 2"),
    (lambda: T.RandomChoice([T.ToTensor()], [1, 2]), OutOfRangeError, r"weights of 1 transforms, got \[1, 2\]"),
    (lambda: T.Resize((4, 4), max_size=8), OutOfRangeError, "max_size=8"),
    (lambda: T.AutoAugment("mnist"), OutOfRangeError, "no policy 'mnist'"),
    (lambda: T.RandAugment(magnitude=31), OutOfRangeError, r"magnitude must be in \[0, 30\], got 31"),
    (lambda: T.TrivialAugmentWide(1), OutOfRangeError, "at least 2, got 1"),
    (lambda: F.posterize(FLOATS, 2), DTypeError, "posterize takes a tensor of bytes, got float32"),
    (lambda: F.equalize(FLOATS), DTypeError, "equalize takes a tensor of bytes, got float32"),
    (lambda: F.posterize(BYTES, 9), OutOfRangeError, "got 9"),
    (lambda: T.RandomPerspective(2.0), OutOfRangeError, r"distortion_scale must be in \[0, 1\], got 2.0"),
    (lambda: T.v2.ToImage, MissingNameError, r"ToTensor\(\)"),
])  # fmt: skip
def test_mistakes(mistake, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mistake()
    assert "test_augment.py" in str(caught.value)
