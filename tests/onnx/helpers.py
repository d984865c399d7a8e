"""Helpers of the tests of minflow/onnx: models of traced functions, and quiet runs of onnxruntime."""

import pytest

from minflow.compiler.names import op_names
from minflow.core.trace import trace
from minflow.deploy.program import Program, ProgramTensor
from minflow.onnx.model import expand_composites, model_of


def traced(function, tensors):
    """Program of `function(*tensors)` with inputs named input_0, input_1, ..."""
    graph, _ = trace(function, tensors)
    held = [ProgramTensor(f"state_{i}", "constant", None, source) for i, source in enumerate(graph.states)]
    return expand_composites(Program("traced", "test", graph, op_names(graph.nodes), (), None, None, held))


def traced_model(function, tensors):
    """Checked ModelProto of `function(*tensors)`."""
    return checked_model(traced(function, tensors))


def checked_model(program):
    names = [
        [f"{kind}_{i}" for i in range(len(values))]
        for kind, values in (("input", program.graph.inputs), ("output", program.graph.outputs))
    ]
    return model_of(program, *names)


def session(model):
    """A quiet session of onnxruntime on a ModelProto, on one thread."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime has no wheel for this system or Python")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors raise; the rest would go to stderr
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model, *arrays):
    """Outputs of a model for these inputs, in order."""
    runner = session(model)
    return runner.run(None, dict(zip([i.name for i in runner.get_inputs()], arrays)))
