"""Run kernels on arrays beside inaccessible pages, in a child process that would crash on an out-of-bounds access."""

import os

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from kernel_checks import printed

PROGRAM = """
import numpy as np
import minflow as flow
from minflow import machine
from tests.guard_pages import at_page_edge

machine.use()
F = flow.nn.functional

def images(n, c, size, begins):
    x = flow.from_numpy(at_page_edge(np.ones((n, c, *size), "f4"), begins))
    return x.requires_grad_()

for begins in (True, False):
    for size in ((16, 16), (12, 20), (7, 9), (2, 2)):
        for c in (16, 33):
            x = images(2, c, size, begins)
            w = flow.from_numpy(at_page_edge(np.ones((c, 1, 3, 3), "f4"), begins)).requires_grad_()
            v = flow.from_numpy(at_page_edge(np.ones((5, c, 3, 3), "f4"), begins)).requires_grad_()
            y = F.conv2d(x, w, padding=1, groups=c)
            assert y.flatten()[0] == 4, "filtered"
            bias = flow.from_numpy(at_page_edge(np.ones(c, "f4"), begins)).requires_grad_()
            (y.sum() + F.batch_norm(x, None, None, bias, bias, True).sum() + F.conv2d(x, v, padding=1).sum()
             + F.max_pool2d(x, 2).sum() + F.relu6(x).erf().sum() + F.softmax(x, 3).sum()
             + (x.reshape(-1, size[1]) @ x.reshape(-1, size[1]).T).sum()).backward()
print("done")
"""


@pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
def test_no_read_beyond_an_array():
    assert printed(PROGRAM, PYTHONFAULTHANDLER="1")[0] == ["done"]
