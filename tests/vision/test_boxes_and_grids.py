"""Boxes, and many images in one picture."""

import io

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, MissingNameError, OutOfRangeError, ShapeError
from minflow.vision import ops, utils

BOXES = flow.tensor([[0.0, 0, 4, 2], [2, 1, 6, 5], [2, 1, 2, 1], [-3, -1, 3, 9]])


def test_areas_and_overlaps():
    assert ops.box_area(BOXES).tolist() == [8, 16, 0, 60]
    iou = ops.box_iou(BOXES, BOXES[:2])
    expected = np.array([[1, 2 / 22], [2 / 22, 1], [0, 0], [6 / 62, 4 / 72]], "float32")
    assert np.allclose(iou.numpy(), expected) and iou.shape == (4, 2) and ops.box_iou(BOXES[:0], BOXES).shape == (0, 4)
    assert np.isnan(ops.box_iou(BOXES[2:3], BOXES[2:3]).numpy()).all()  # 0 / 0, as in PyTorch
    boxes = BOXES[:2].clone().requires_grad_()
    ops.box_iou(boxes, BOXES[3:]).sum().backward()
    assert np.isfinite(boxes.grad.numpy()).all() and boxes.grad.abs().sum().item() > 0


def test_other_forms():
    assert ops.box_convert(BOXES[:2], "xyxy", "xywh").tolist() == [[0, 0, 4, 2], [2, 1, 4, 4]]
    assert ops.box_convert(BOXES[:2], "xyxy", "cxcywh").tolist() == [[2, 1, 4, 2], [4, 3, 4, 4]]
    for one in ("xyxy", "xywh", "cxcywh"):
        for other in ("xyxy", "xywh", "cxcywh"):
            there = ops.box_convert(ops.box_convert(BOXES, "xyxy", one), one, other)
            assert flow.equal(ops.box_convert(there, other, "xyxy"), BOXES)
    assert ops.clip_boxes_to_image(BOXES, (4, 5)).tolist()[1:] == [[2, 1, 5, 4], [2, 1, 2, 1], [0, 0, 3, 4]]


def test_boxes_of_several_classes():
    boxes = flow.tensor([[0.0, 0, 4, 4], [0, 0, 4, 4.5], [0, 0, 4, 4], [-9, -9, -5, -5]])
    scores, classes = flow.tensor([0.6, 0.9, 0.8, 0.7]), flow.tensor([0, 0, 1, 1])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 3] and ops.batched_nms(boxes, scores, classes, 0.5).tolist() == [
        1,
        2,
        3,
    ]
    assert ops.batched_nms(boxes[:0], scores[:0], classes[:0], 0.5).tolist() == []


def test_grid():
    images = flow.arange(5 * 3 * 2 * 4).reshape(5, 3, 2, 4).float()
    grid = utils.make_grid(images, nrow=3, padding=1, pad_value=-1.0)
    assert grid.shape == (3, 7, 16) and grid.dtype is flow.float32
    assert flow.equal(grid[:, 1:3, 6:10], images[1]) and flow.equal(grid[:, 4:6, 1:5], images[3])
    assert (grid[:, 3] == -1).all().item() and (grid[:, 4:, 11:] == -1).all().item()
    assert utils.make_grid(images[:, :1]).shape == (3, 6, 32)
    assert flow.equal(utils.make_grid(list(images)), utils.make_grid(images))
    assert flow.equal(utils.make_grid(images[0]), images[0]) and utils.make_grid(images[0, 0]).shape == (3, 2, 4)
    scaled = utils.make_grid(images, normalize=True, padding=0)
    assert scaled.min().item() == 0 and scaled.max().item() == 1
    assert np.allclose(scaled[:, :, 4:8].numpy(), images[1].numpy() / 119)
    clipped = utils.make_grid(images, padding=0, normalize=True, value_range=(10, 20))
    assert np.allclose(clipped[:, :, :4].numpy(), (images[0].numpy().clip(10, 20) - 10) / 10)
    each = utils.make_grid(images, padding=0, normalize=True, scale_each=True)
    assert flow.equal(each[:, :, :4], each[:, :, 4:8]) and not flow.equal(images, images.clamp(0, 1))


def test_picture_in_a_file(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    images = flow.rand(4, 3, 5, 6, requires_grad=True)
    utils.save_image(images, tmp_path / "images.png", nrow=2)
    with Image.open(tmp_path / "images.png") as picture:
        pixels = np.asarray(picture)
    assert pixels.shape == (16, 18, 3) and (pixels[:2] == 0).all()
    assert np.array_equal(pixels[2:7, 2:8], np.floor(images[0].detach().numpy().transpose(1, 2, 0) * 255 + 0.5))
    file = io.BytesIO()
    utils.save_image(images[0] * 3 - 1, file, format="PNG")
    assert file.getvalue()[1:4] == b"PNG"


@pytest.mark.parametrize(("mistake", "kind", "said"), [
    (lambda: ops.box_area(flow.ones(3, 5)), ShapeError, r"box_area: boxes must have shape \(n, 4\), got \[3, 5\]"),
    (lambda: ops.box_iou(BOXES, flow.ones(2)), ShapeError, r"box_iou: boxes must have shape \(n, 4\), got \[2\]"),
    (lambda: ops.box_convert(BOXES, "xyxy", "yxyx"), OutOfRangeError, "'yxyx'"),
    (lambda: ops.roi_align, MissingNameError, "F.interpolate"),
    (lambda: utils.draw_bounding_boxes, MissingNameError, "PIL.ImageDraw"),
    (lambda: utils.make_grid([]), DTypeError, "not list"),
    (lambda: utils.make_grid(np.ones((2, 3, 4, 4))), DTypeError, "not ndarray"),
    (lambda: utils.make_grid([flow.ones(3, 4, 4), flow.ones(3, 5, 4)]), ShapeError, r"\(3, 4, 4\), \(3, 5, 4\)"),
    (lambda: utils.make_grid(flow.ones(1, 1, 1, 4, 4)), ShapeError, r"\[1, 1, 1, 4, 4\]"),
    (lambda: utils.make_grid(flow.ones(2, 1, 4, 4), nrow=0), OutOfRangeError, "nrow=0"),
])  # fmt: skip
def test_mistakes(mistake, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mistake()
    assert "test_boxes_and_grids.py" in str(caught.value)


def test_a_grid_is_on_the_device_of_its_images(cuda):
    images = flow.rand(3, 3, 4, 4)
    grid = utils.make_grid(images.to(cuda), nrow=2)
    assert grid.device == cuda and grid.cpu().equal(utils.make_grid(images, nrow=2))
    here, there = io.BytesIO(), io.BytesIO()
    utils.save_image(images, here, "png")
    utils.save_image(list(images.to(cuda)), there, "png")
    assert here.getvalue() == there.getvalue()
