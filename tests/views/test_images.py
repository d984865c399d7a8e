"""Tensors as images: interpretation of axes and values, contents of a card, output in a terminal."""

import base64
import io
import math
import re
from html import escape

import numpy as np
import pytest
from PIL import Image

import minflow as flow
from minflow.core.base.errors import DTypeError, ShapeError
from minflow.views.front import show
from minflow.views.renderers.images import MAX_BYTES, MAX_IMAGES, images_of, images_record, to_uint8
from minflow.views.show import picture


@pytest.mark.parametrize(("shape", "images", "axes"), [
    ((5, 7), (1, 5, 7), "height, width"), ((1, 5, 7), (1, 5, 7), "channel, height, width"),
    ((3, 5, 7), (1, 5, 7, 3), "colors, height, width"), ((5, 7, 3), (1, 5, 7, 3), "height, width, colors"),
    ((9, 5, 7), (9, 5, 7), "images, height, width"), ((4, 1, 5, 7), (4, 5, 7), "images, channel, height, width"),
    ((4, 3, 5, 7), (4, 5, 7, 3), "images, colors, height, width"),
    ((4, 5, 7, 3), (4, 5, 7, 3), "images, height, width, colors"),
    ((4, 5, 7, 1), (4, 5, 7), "images, height, width, channel"),
    ((4, 6, 5, 7), (24, 5, 7), "images, each channel as an image, height, width"),
])  # fmt: skip
def test_axes(shape, images, axes):
    found, read = images_of(np.zeros(shape))
    assert found.shape == images and read == axes


def test_pixels_keep_their_positions():
    x = np.arange(4 * 3 * 5 * 7).reshape(4, 3, 5, 7)
    found, _ = images_of(x)
    assert found[2, 4, 6, 1] == x[2, 1, 4, 6]
    assert images_of(x.transpose(0, 2, 3, 1))[0][2, 4, 6, 1] == x[2, 1, 4, 6]


@pytest.mark.parametrize("shape", [(), (3,), (1, 1, 1, 1, 1), (0, 5)])
def test_tensors_that_are_not_images(shape):
    with pytest.raises(DTypeError, match=re.escape(f"shape {list(shape)}")):
        images_of(np.zeros(shape))


def test_brightness():
    assert to_uint8(np.array([[[0, 255]]], np.uint8))[1] == "0 is black, 255 white"
    pixels, scale, bad = to_uint8(np.array([[[0.0, 0.5, 1.0]]]))
    assert pixels.tolist() == [[[0, 128, 255]]] and scale == "0 is black, 1 white" and not bad
    pixels, scale, _ = to_uint8(np.array([[[-2.0, 0.0, 2.0]]]))
    assert pixels.tolist() == [[[0, 128, 255]]] and scale == "-2 is black, 2 white"
    pixels, _, bad = to_uint8(np.array([[[0.0, math.nan, 1.0]]]))
    assert to_uint8(np.zeros((1, 1, 1, 3)))[1] == "0 is dark, 1 bright in each color"
    assert pixels.shape == (1, 1, 3, 3) and bad == "1 elements are NaN or infinite, drawn magenta with a cross"


@pytest.mark.parametrize("x", [
    flow.rand(64, 3, 32, 32), flow.rand(3, 500, 700), flow.rand(1797, 8, 8), flow.randn(16, 6, 28, 28),
    flow.rand(2000, 3000) > 0.5,
])  # fmt: skip
def test_image_card_is_below_60_kB(x):
    view = picture(x, images=True)
    html = view.bundle()["text/html"]
    assert len(html) < 60_000 and html.count("<img") == 1 and 'alt="' in html and "<script" not in html
    assert len(view.text) < 3000


def test_omitted_images_are_counted():
    title = images_record(flow.rand(64, 3, 32, 32)).title
    shown = MAX_BYTES // (32 * 32 * 3)
    assert title.startswith("64 images of 32 x 32, color") and f"the first {shown}, row by row" in title
    assert "every 2nd pixel" in images_record(flow.rand(300, 300)).title


def test_images_in_a_terminal_and_as_a_file(capsys, tmp_path):
    x = flow.tensor([[0.0, 1.0], [0.5, 0.0]])
    show(x, images=True)
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("1 image of 2 x 2 (axes read as height, width)") and out[1:] == ["  ██", "▒▒"]
    several = picture(flow.stack([x, x]), images=True).text.splitlines()
    assert several[0].startswith("2 images of 2 x 2") and several[0].endswith("; the first:") and several[1:] == out[1:]
    picture(x, images=True).save(tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        assert image.size == (24, 24) and image.getpixel((23, 0)) == 255 and image.getpixel((0, 0)) == 0
    with pytest.raises(DTypeError, match="images have no SVG"):
        picture(x, images=True).svg
    show(np.zeros((3, 4)), images=True)
    with pytest.raises(DTypeError, match="takes a Tensor, not int"):
        show(3, images=True)


def test_labels_are_below_their_images():
    x = flow.stack([flow.full((1, 8, 8), i / 10) for i in range(11)])
    view = picture(x, images=True, labels=flow.arange(11))
    images = re.findall(
        r'<span [^>]*><img alt="image (\d+): (\d+)" [^>]*base64,([^"]+)"><br>(\d+)</span>', view.bundle()["text/html"]
    )
    assert [(int(i), int(alt), int(told)) for i, alt, _, told in images] == [(i, i, i) for i in range(11)]
    grays = [Image.open(io.BytesIO(base64.b64decode(data))).getextrema() for _, _, data, _ in images]
    # across the rows of the grid
    assert [low == high and abs(low - 25.5 * i) < 1 for i, (low, high) in enumerate(grays)] == [True] * 11
    assert view.text.splitlines()[0].endswith("; labeled 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; the first:")


@pytest.mark.parametrize(("labels", "told"), [
    (["a cat", "a dog"], ["a cat", "a dog"]), (np.array([[7], [2]]), ["7", "2"]), ((0.25, 1 / 3), ["0.25", "0.3333"]),
    ([flow.tensor(3), flow.tensor([True])], ["3", "True"]), (np.array(["x", "y"]), ["x", "y"]),
    ([None, (1, 2)], ["None", "(1, 2)"]),
    (["a" * 50, "<b>\n"], ["a" * 37 + "...", "<b>\\x0a"]), (flow.tensor([1.5, -2.0]), ["1.5", "-2"]),
])  # fmt: skip
def test_accepted_labels(labels, told):
    record = images_record(flow.rand(2, 4, 4), labels)
    assert list(record.labels) == told
    html = picture(flow.rand(2, 4, 4), images=True, labels=labels).bundle()["text/html"]
    assert html.count("<img") == 2 and "<b>" not in html and all(escape(text) in html for text in told)


def test_only_shown_images_have_labels():
    record = images_record(flow.rand(100, 8, 8), list(range(100)))
    assert record.labels == tuple(map(str, range(MAX_IMAGES)))
    large = picture(flow.rand(500, 400), images=True, labels=["one"]).bundle()["text/html"]
    assert 'alt="image 0: one"' in large and len(large) < 60_000
    assert len(picture(flow.rand(40, 3, 64, 64), images=True, labels=range(40)).bundle()["text/html"]) < 60_000


def test_wrong_number_of_labels():
    x = flow.rand(5, 4, 4)
    with pytest.raises(ShapeError, match="2 labels for 5 images"):
        show(x, images=True, labels=[1, 2])
    with pytest.raises(DTypeError, match="'abc' is not a list of labels"):
        show(x, images=True, labels="abc")
    with pytest.raises(DTypeError, match="int is not a list of labels"):
        show(x, images=True, labels=3)
    with pytest.raises(DTypeError, match="labels are written under images"):
        show(x, labels=[1, 2, 3, 4, 5])
