"""Tensors as images: how axes and numbers are read, what a card holds, what a terminal prints."""

import math
import re

import numpy as np
import pytest

import minflow as flow
from minflow.core.errors import DTypeError
from minflow.views.images import BYTES, as_bytes, images_of, images_record
from minflow.views.show import picture, show


@pytest.mark.parametrize(("shape", "images", "axes"), [
    ((5, 7), (1, 5, 7), "height, width"), ((1, 5, 7), (1, 5, 7), "channel, height, width"),
    ((3, 5, 7), (1, 5, 7, 3), "colours, height, width"), ((5, 7, 3), (1, 5, 7, 3), "height, width, colours"),
    ((9, 5, 7), (9, 5, 7), "images, height, width"), ((4, 1, 5, 7), (4, 5, 7), "images, channel, height, width"),
    ((4, 3, 5, 7), (4, 5, 7, 3), "images, colours, height, width"), ((4, 5, 7, 3), (4, 5, 7, 3), "images, height, width, colours"),
    ((4, 5, 7, 1), (4, 5, 7), "images, height, width, channel"),
    ((4, 6, 5, 7), (24, 5, 7), "images, channels as images of their own, height, width"),
])  # fmt: skip
def test_axes(shape, images, axes):
    found, read = images_of(np.zeros(shape))
    assert found.shape == images and read == axes


def test_pixels_stand_where_they_were():
    x = np.arange(4 * 3 * 5 * 7).reshape(4, 3, 5, 7)
    found, _ = images_of(x)
    assert found[2, 4, 6, 1] == x[2, 1, 4, 6]
    assert images_of(x.transpose(0, 2, 3, 1))[0][2, 4, 6, 1] == x[2, 1, 4, 6]


@pytest.mark.parametrize("shape", [(), (3,), (1, 1, 1, 1, 1), (0, 5)])
def test_what_is_no_image(shape):
    with pytest.raises(DTypeError, match=re.escape(f"shape {list(shape)}")):
        images_of(np.zeros(shape))


def test_brightness():
    assert as_bytes(np.array([[[0, 255]]], np.uint8))[1] == "0 is black, 255 white"
    pixels, scale, bad = as_bytes(np.array([[[0.0, 0.5, 1.0]]]))
    assert pixels.tolist() == [[[0, 128, 255]]] and scale == "0 is black, 1 white" and not bad
    pixels, scale, _ = as_bytes(np.array([[[-2.0, 0.0, 2.0]]]))
    assert pixels.tolist() == [[[0, 128, 255]]] and scale == "-2 is black, 2 white"
    pixels, _, bad = as_bytes(np.array([[[0.0, math.nan, 1.0]]]))
    assert pixels.shape == (1, 1, 3, 3) and bad == "1 numbers are NaN or infinite, drawn magenta with a cross"


@pytest.mark.parametrize("x", [
    flow.rand(64, 3, 32, 32), flow.rand(3, 500, 700), flow.rand(1797, 8, 8), flow.randn(16, 6, 28, 28), flow.rand(2000, 3000) > 0.5,
])  # fmt: skip
def test_a_card_of_images_is_below_60_kB(x):
    view = picture(x, images=True)
    html = view.bundle()["text/html"]
    assert len(html) < 60_000 and html.count("<img") == 1 and 'alt="' in html and "<script" not in html
    assert len(view.text) < 3000


def test_what_is_left_out_is_said():
    title = images_record(flow.rand(64, 3, 32, 32)).title
    shown = BYTES // (32 * 32 * 3)
    assert title.startswith("64 images of 32 x 32, colour") and f"the first {shown}, row by row" in title
    assert "every 2nd pixel" in images_record(flow.rand(300, 300)).title


def test_images_in_a_terminal_and_as_a_file(capsys, tmp_path):
    x = flow.tensor([[0.0, 1.0], [0.5, 0.0]])
    show(x, images=True)
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("1 image of 2 x 2 (axes read as height, width)") and out[1:] == ["  ██", "▒▒"]
    several = picture(flow.stack([x, x]), images=True).text.splitlines()
    assert several[0].startswith("2 images of 2 x 2") and several[0].endswith("; the first:") and several[1:] == out[1:]
    picture(x, images=True).save(tmp_path / "x.png")
    from PIL import Image

    with Image.open(tmp_path / "x.png") as image:
        assert image.size == (24, 24) and image.getpixel((23, 0)) == 255 and image.getpixel((0, 0)) == 0
    with pytest.raises(DTypeError, match="images have no SVG"):
        picture(x, images=True).svg
    show(np.zeros((3, 4)), images=True)
    with pytest.raises(DTypeError, match="takes a Tensor, not int"):
        show(3, images=True)
