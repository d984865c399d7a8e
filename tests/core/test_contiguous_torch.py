"""Products that are contiguous in PyTorch are contiguous here, so that `view` takes them. Skipped without it."""

import math

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch

SIZES = dict(zip("abcdefij", (2, 3, 4, 5, 1, 6, 3, 2)))
EQUATIONS = """
ab,cd->acbd a,b->ba a,b->ab ab,bc->ca ab,cb->ca ab,bc->ac iab,ibc->ica iab,ibc->aic iab,ibc->cia abc->ca aab->ba
ab,ab->ba ab,ab->ab ab,b->ab ab,b->ba a,ab->ba abc,d->dabc abc,cd->dab abc,cd->bad abc,d->abcd a,b,c->cab a,b,c->abc
ab,cd ba,dc abcd,ad->cb abcd,ad->acb abcd,ad->bc iac,iec->iea iac,iec->iae abc,dcf->bdaf ab,bc,cd->da ab,cb,cd->ad
abcd,cdij->jabi a...,b->b...a abcd,adij->acbi ab,ab-> ab,bc-> abc,bd->cda
""".split()
CALLS = """
L.tensordot(x, y, 0); L.tensordot(x.t(), x, ([1], [0])); L.outer(x[0], y[0]); L.kron(x, y); x@y.t()[:3]; (x.t()@x).t();
x.t()*x.t(); L.inner(x, x); L.linalg.multi_dot([x, y[:2].t(), x]); F.linear(x.t(), y.t()[:, :2]);
F.bilinear(x, x, L.ones(4, 3, 3)); F.conv1d(y.reshape(1, 4, 3).transpose(1, 2), L.ones(2, 3, 2));
L.cdist(x.t(), y.t()[:, :2]); L.addmm(L.ones(3), x.t(), x)
"""


def inputs(lib, equation: str, transposed: bool):
    """One tensor for each term, with its axes stored in the opposite order if `transposed`."""
    for term in equation.partition("->")[0].replace("...", "j").split(","):
        shape = [SIZES[c] for c in term]
        data = lib.arange(math.prod(shape)) * 0.5 - 3
        reverse = range(len(shape))[::-1]
        yield data.reshape(shape[::-1]).permute(*reverse) if transposed else data.reshape(shape)


def check(ours, theirs):
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    assert ours.is_contiguous() or not theirs.is_contiguous(), f"{ours.stride()}, PyTorch's {theirs.stride()}"


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation, transposed):
    check(*[lib.einsum(equation, *inputs(lib, equation, transposed)) for lib in (flow, torch)])


@pytest.mark.parametrize("text", [call.strip() for call in CALLS.split(";")])
def test_product(text):
    known = [
        {"L": lib, "F": lib.nn.functional, "x": lib.arange(6.0).reshape(2, 3), "y": lib.arange(12.0).reshape(4, 3)}
        for lib in (flow, torch)
    ]
    check(*[eval(text, names) for names in known])
