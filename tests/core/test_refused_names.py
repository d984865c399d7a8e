"""Deliberately missing names: each row explains why or suggests an alternative, wherever the name is used."""

import importlib

import pytest

import minflow as flow
from minflow import nn
from minflow.compat.refused import RefusedType, hint_of
from minflow.core.base.errors import MissingNameError
from minflow.core.messages.suggestions import attribute_hint
from minflow.core.messages.unsupported import IMPORTED_NAMESPACES, IMPORTED_TYPES, REFUSED, reason


@pytest.mark.parametrize(
    ("room", "name", "hint"),
    [
        (nn, "COCOReader", "OFRecord"),
        (nn, "OFRecordReader", "DataLoader"),
        (nn, "FakeQuantization", "not quantized"),
        (nn, "QatConv2d", "not quantized"),
        (flow, "quantize_per_tensor", "x.half()"),
        (flow, "sparse_csr_tensor", "COO"),
        (flow.jit, "save", "load_graph"),
        (flow.cuda, "make_graphed_callables", "second call"),
        (flow.hub, "load", "flow.load"),
        (flow.env, "init_rdma", "MPI chooses how ranks reach each other"),
    ],
)
def test_refused_name_suggests_an_alternative(room, name, hint):
    with pytest.raises(MissingNameError, match=f"has no {name}") as caught:
        getattr(room, name)
    assert hint in caught.value.hint and "test_refused_names.py" in caught.value.where


def test_attributes_of_tensors_and_modules():
    for owner, name, hint in ((flow.ones(2), "to_mkldnn", "to_dense"), (flow.ones(2), "offload", "memory of a GPU")):
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
        assert hint in attribute_hint(caught.value)
    with pytest.raises(AttributeError, match=r"module.to_global\(placement, sbp\)"):
        nn.Linear(1, 1).to_consistent


def exists(path):
    """True if a program can use the name, also one that is made on first use or inherited."""
    owner, _, name = path.rpartition(".")
    try:
        if owner in ("Tensor", "nn.Module"):
            return hasattr(flow.ones(1) if owner == "Tensor" else nn.Module(), name)
        return not isinstance(getattr(importlib.import_module(f"minflow.{owner}".rstrip(".")), name), RefusedType)
    except (ImportError, AttributeError):
        return False


def test_refused_names_do_not_exist():
    assert exists("nn.Linear") and exists("framework.distribute") and exists("Tensor.is_quantized")
    assert not exists("hub.load") and not exists("Tensor.to_sparse_csr")
    namespaces = [name for name in REFUSED if f"{name}.".startswith(IMPORTED_NAMESPACES)]
    assert not [name for name in REFUSED if "*" not in name and name not in namespaces and exists(name)]


def test_reasons():
    assert reason("nn.OFRecordSomething") == REFUSED["nn.OFRecordReader"] and reason("nn.Linear") is None
    assert all(map(hint_of, [*IMPORTED_TYPES, *(f"{namespace}x" for namespace in IMPORTED_NAMESPACES)]))
    assert all(len(why) > 8 and "\n" not in why for why in REFUSED.values())  # covered by nn.Module
