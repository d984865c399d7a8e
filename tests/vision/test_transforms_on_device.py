"""Transforms of images that are tensors on a device: they stay there, with the numbers of the CPU."""

import pytest

import minflow as flow
from minflow.vision import transforms, utils


@pytest.mark.parametrize(
    "transform",
    [
        transforms.Resize((5, 7)),
        transforms.Resize(4),
        transforms.CenterCrop(3),
        transforms.Pad(2),
        transforms.Grayscale(),
        transforms.GaussianBlur(3, 1.0),
        lambda x: transforms.functional.rotate(x, 30),
        lambda x: transforms.functional.adjust_contrast(x, 0.5),
        transforms.Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)),
        transforms.RandomHorizontalFlip(1.0),
        transforms.RandomVerticalFlip(1.0),
        lambda x: utils.make_grid([x, x]),
    ],
)
def test_transforms_on_a_device(cuda, transform):
    image = flow.rand(3, 6, 8)
    moved = transform(image.to("cuda"))
    assert moved.device is cuda and flow.equal(moved.cpu(), transform(image))
