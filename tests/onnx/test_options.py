"""Typical calls of torch.onnx.export: the same arguments, with only the import changed."""

import io

import numpy as np
import onnx
import pytest

import minflow as torch
from minflow import nn
from tests.onnx.helpers import session


class Masked(nn.Module):
    """As in textbooks: stores a computed mask, and asks whether it is being exported."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x, mask=None, scale=2.0, both=False):
        self.kept = self.norm(self.linear(x)) * scale
        y = self.kept if mask is None else self.kept * mask
        y = y + 1 if torch.onnx.is_in_onnx_export() else y
        return (y, x) if both else y


X, MASK = torch.rand(2, 3), torch.rand(2, 3)


def exported(*args, **options):
    """Session of the exported file, and the shapes of its inputs and outputs by name."""
    model, file = args[0] if args else options["model"], options.pop("f", None) or io.BytesIO()
    assert torch.onnx.export(*args, f=file, **options) is None and not torch.onnx.is_in_onnx_export()
    assert model.training
    runner = session(onnx.load_from_string(file.getvalue()))
    return runner, *[{x.name: x.shape for x in side} for side in (runner.get_inputs(), runner.get_outputs())]


def agrees(runner, model, *tensors, **options):
    feed = dict(zip([x.name for x in runner.get_inputs()], [x.numpy() for x in tensors]))
    want = model.eval()(*tensors, **options)
    model.train()
    want = want if isinstance(want, tuple) else (want,)
    got = runner.run(None, feed)
    assert len(got) == len(want)
    np.testing.assert_allclose(got[0], want[0].detach().numpy() + 1, rtol=1e-5, atol=1e-6)


def test_common_export_call():
    model = Masked()
    model(X)
    with pytest.warns(torch.MinflowWarning, match="opset 18") as said:
        runner, inputs, outputs = exported(
            model,
            X,
            export_params=True,
            opset_version=11,
            do_constant_folding=True,
            input_names=["input"],
            output_names=["output"],
            dynamic_axes={"input": {0: "batch size"}, "output": {0: "batch size"}},
            verbose=False,
        )
    assert len(said) == 1
    assert (inputs, outputs) == ({"input": ["batch_size", 3]}, {"output": ["batch_size", 3]})
    for n in (1, 2, 7):
        agrees(runner, model, torch.rand(n, 3))
    assert float(model.kept.sum()) != 0  # the stored value is a plain tensor again


@pytest.mark.parametrize(
    ("args", "kwargs", "names"),
    [
        ((X, MASK), None, ["x", "mask"]),
        ([X, MASK], None, ["x", "mask"]),
        ((X, MASK, {}), None, ["x", "mask"]),
        ((X, {"mask": MASK}), None, ["x", "mask"]),
        ({"x": X, "mask": MASK}, None, ["x", "mask"]),
        ((X,), {"mask": MASK}, ["x", "mask"]),
        ((X, MASK, 2.0, False), None, ["x", "mask"]),
        ((X, None, 2.0), None, ["x"]),
    ],
)
def test_positional_and_keyword_arguments(args, kwargs, names):
    model = Masked()
    runner, inputs, _ = exported(model, args, kwargs=kwargs)
    assert list(inputs) == names
    agrees(runner, model, *[X, MASK][: len(names)])


def test_scalars_and_flags_are_constants():
    model = Masked()
    runner, _, outputs = exported(
        model=model,
        args=(X, None, 3.0, True),
        dynamo=True,
        report=False,
        optimize=True,
        external_data=True,
        training=torch.onnx.TrainingMode.EVAL,
        operator_export_type=torch.onnx.OperatorExportTypes.ONNX,
    )
    assert list(outputs) == ["output_0", "output_1"]
    agrees(runner, model, X, scale=3.0, both=True)


@pytest.mark.parametrize(
    "options",
    [
        {"dynamic_axes": {"x": {0: "n"}, "mask": {0: "n"}}},
        {"dynamic_axes": {"x": [0], "mask": [0], "output_0": [0]}},  # without names: they cannot differ
        {"dynamic_axes": {"a": [0], "mask": [0]}, "input_names": ["a"]},
        {"dynamic": {"a": {0: "n"}, "mask": {0: "n"}}, "input_names": ["a"]},
        {"dynamic_shapes": {"mask": {0: "n"}, "x": {0: "n"}}},
        {"dynamic_shapes": ({0: "n"}, {0: "n"})},
        {"dynamic_shapes": [("n", None), ("n", None)]},
    ],
)
def test_dynamic_axes(options):
    model = Masked()
    runner, inputs, outputs = exported(model, (X, MASK), **options)
    ((name, three),) = {tuple(shape) for shape in (*inputs.values(), *outputs.values())}
    assert name in ("n", "x_0") and three == 3
    agrees(runner, model, torch.rand(5, 3), torch.rand(5, 3))


def test_dynamic_axes_of_nested_arguments():
    class Sum(nn.Module):
        def forward(self, pair, by_name):
            return pair[0] + pair[1] + by_name["z"]

    for shapes in ({"pair": ({0: "n"}, {0: "n"}), "by_name": {"z": {0: "n"}}}, (({0: "n"}, {0: "n"}), {"z": {0: "n"}})):
        _, inputs, _ = exported(Sum(), ((X, X), {"z": X}, {}), dynamic_shapes=shapes)
        assert inputs == {"pair[0]": ["n", 3], "pair[1]": ["n", 3], "by_name['z']": ["n", 3]}
    assert exported(Sum(), ((X, X), {"z": X}, {}), dynamic_shapes=None)[1]["pair[0]"] == [2, 3]


def test_input_names():
    assert list(exported(Masked(), (X, MASK), input_names=["mask"])[1]) == ["mask", "mask_1"]
    learned = ["image", *[f"learned_{i}" for i in range(6)]]  # PyTorch names the weights by them
    with pytest.warns(torch.MinflowWarning, match="7 names for 1 inputs"):
        assert list(exported(Masked(), X, input_names=learned)[1]) == ["image"]


def test_program_is_returned_without_a_file(tmp_path):
    program = torch.onnx.export(Masked(), (X,), dynamo=True)
    assert program.model_proto.opset_import[0].version == 18 and "Masked, opset 18" in repr(program)
    program.save(tmp_path / "a.onnx")
    assert onnx.load(tmp_path / "a.onnx") == program.model_proto


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"export_params": False}, "export_params=False asks for a file"),
        ({"keep_initializers_as_inputs": True}, "keep_initializers_as_inputs=True"),
        ({"training": torch.onnx.TrainingMode.TRAINING}, "training=TRAINING"),
        ({"training": torch.onnx.TrainingMode.PRESERVE}, "training=PRESERVE"),
        ({"operator_export_type": torch.onnx.OperatorExportTypes.ONNX_ATEN}, "operator_export_type=ONNX_ATEN"),
        ({"custom_opsets": {"mine": 1}}, "custom_opsets"),
        ({"optimise": True}, "no argument 'optimise'"),
        ({"dynamic_axes": {"y": [0]}}, "dynamic_axes names 'y'"),
        ({"dynamic_axes": ["x"]}, "dynamic_axes must be a dict"),
        ({"dynamic_shapes": {"y": {0: "n"}}}, "dynamic_shapes names 'y'"),
        ({"dynamic": True}, "dynamic must be a dict .*, got True"),
        ({"dynamic": {}, "dynamic_axes": {}}, "dynamic axes are named twice"),
        ({"kwargs": {"mask": MASK, "size": X}}, r"Masked.forward takes \(x, mask=None.*'size'"),
    ],
)
def test_unsupported_options_are_refused(options, words):
    file = io.BytesIO()
    with pytest.raises(torch.MinflowError, match=words) as caught:
        torch.onnx.export(Masked(), X, file, **options)
    assert "test_options.py:" in caught.value.where and not file.getvalue()


def test_options_without_effect_warn():
    with pytest.warns(torch.MinflowWarning, match="report, verify: without effect"):
        exported(Masked(), X, report=True, verify=True, profile=False)
    with pytest.raises(
        torch.GraphError, match="only a graph or a job function can be saved or exported, got a function"
    ):
        torch.onnx.export(lambda x: x, X, io.BytesIO())


def test_a_model_on_a_device_is_exported_as_on_the_host(cuda):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2))
    x, files = torch.rand(1, 3, 4, 4), []
    for device in ("cpu", cuda):
        files.append(io.BytesIO())
        torch.onnx.export(model.to(device), x.to(device), files[-1])
    assert files[0].getvalue() == files[1].getvalue()
