"""Forks of a program that has used the stand-in for a GPU."""

import os
import sys

import pytest

import minflow as flow
from minflow.utils.data import DataLoader

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def result_of_child(function):
    """The text that a function returns in a forked process, or its error."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = function()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize("use", ["x + 1", "x.cpu()", "flow.ones(2, device='cuda')", "repr(x)", "flow.cuda.Stream()"])
def test_a_child_that_uses_the_device_is_refused(use, cuda):
    x = flow.ones(3, device="cuda")
    text = result_of_child(lambda: str(eval(use, {"flow": flow, "x": x})))
    assert "DeviceError: a forked process uses cuda:0" in text and 'get_context("spawn")' in text
    assert (x + 1).tolist() == [2.0] * 3  # the parent goes on


def test_a_child_computes_on_the_cpu(cuda):
    x, y = flow.ones(3, device="cuda"), flow.ones(3)
    assert result_of_child(lambda: str((y + 1).tolist())) == "[2.0, 2.0, 2.0]"
    assert x.tolist() == [1.0] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="workers are not forked here")
def test_processes_of_a_loader_work_beside_tensors_of_the_device(cuda):
    weight, data = flow.ones(2, device="cuda"), flow.arange(8.0).reshape(4, 2)
    loader = DataLoader(list(data), batch_size=2, num_workers=2, workers="process")
    found = [(batch.to("cuda") * weight).tolist() for batch in loader]
    assert found == data.reshape(2, 2, 2).tolist()
