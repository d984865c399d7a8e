"""PyTorch's names of arguments work in every public function, or there is a reason why one does not."""

import inspect
import warnings
from fnmatch import fnmatchcase

import pytest

import minflow as flow
from minflow.core.messages.other_words import WORDS
from minflow.core.op import Op
from tests.oracle import signatures

THEIRS = signatures.read()
# Function -> (its arguments that minflow refuses, why)
REFUSED = {
    **dict.fromkeys(("addmm", "baddbmm", "bmm", "mm"), ("out_dtype", "PyTorch takes it on CUDA alone")),
    **dict.fromkeys(("lstm", "gru", "rnn_relu", "rnn_tanh"), ("data batch_sizes", "nn.LSTM takes a PackedSequence")),
    "autograd.gradcheck": ("nondet_tol check_undefined_grad check_grad_dtypes check_batched_grad masked fast_mode "
                           "check_batched_forward_grad check_forward_ad check_backward_ad", "it makes one check"),
    "compile": ("name isolate_recompiles recompile_limit shapes_spec", "they are about TorchDynamo"),
    "nn.UninitializedBuffer": ("persistent", "register_buffer says it"),
    **dict.fromkeys(("enable_grad", "autograd.enable_grad"), ("orig_func", "its own, when it decorates")),
    "Tensor.dim_order": ("ambiguity_check", "there is one memory format"),
    "range": ("end step device requires_grad pin_memory", "the name is that of the first generation"),
}


def ours(name: str):
    """The object of that name in minflow, or None."""
    owner = flow
    for part in name.split("."):
        owner = inspect.getattr_static(owner, part, None) if owner is flow.Tensor else getattr(owner, part, None)
    return getattr(owner, "__wrapped__", owner) if isinstance(getattr(owner, "__wrapped__", None), Op) else owner


def known(name: str, it) -> set[str]:
    """The keywords that it takes."""
    spoken = name if "." in name else f"flow.{name}"
    words = {word.split("=")[0] for names, text in WORDS.items() for word in text.split()
             if any(fnmatchcase(spoken, pattern) for pattern in names.split())}
    if isinstance(it, Op):
        return words | {*it.inputs, *it.attrs, "input", "other"}
    try:
        parameters = inspect.signature(it).parameters.values()
    except (TypeError, ValueError):
        return words
    return words | {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


@pytest.mark.parametrize("name", sorted(n for n in THEIRS if callable(ours(n)) and not isinstance(ours(n), property)))
def test_keywords(name):
    it = ours(name)
    missing = set(THEIRS[name]) - known(name, it)
    if missing == {"size_average", "reduce"}:  # of every loss, by a decorator; that it has a meaning: tests/nn
        if isinstance(it, type):
            with warnings.catch_warnings(action="ignore"):
                assert it(size_average=True, reduce=False).reduction == "none"
        missing = set()
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(it).parameters.values()):
        missing = set()  # it hands them on
    refused = set(REFUSED[name][0].split()) if name in REFUSED else set()
    assert missing == refused


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("by_name, by_place", [
    ("flow.permute(x, dims=(1, 0))", "x.t()"),
    ("x.permute(dims=(1, 0))", "x.t()"),
    ("flow.flip(input=x, dims=(0,))", "x.flip(0)"),
    ("x.tile(dims=(2, 1))", "x.tile(2, 1)"),
    ("flow.tile(x, dims=(2, 1))", "x.tile(2, 1)"),
    ("x.view(size=(3, 2))", "x.view(3, 2)"),
    ("x.view(dtype=flow.float32)", "x"),
    ("x.reshape(shape=(3, 2))", "x.reshape(3, 2)"),
    ("flow.reshape(input=x, shape=(3, 2))", "x.reshape(3, 2)"),
    ("x[:, :1].expand(size=(2, 5), implicit=False)", "x[:, :1].expand(2, 5)"),
    ("x.repeat(repeats=(1, 2))", "x.repeat(1, 2)"),
    ("x.new_zeros(size=(2,), dtype=flow.int64)", "x.new_zeros(2, dtype=flow.int64)"),
    ("x.to(other=flow.tensor(1))", "x.long()"),
    ("x.max(other=x.flip(1))", "flow.maximum(x, x.flip(1))"),
    ("flow.dot(x[0], tensor=x[1])", "x[0].dot(x[1])"),
    ("flow.hsplit(x, sections=3)[2]", "x[:, 2:]"),
    ("x.tensor_split(indices=(1,))[1]", "x[1:]"),
    ("flow.broadcast_to(x, size=(1, 2, 3))", "x[None]"),
    ("flow.searchsorted(x[0], input=x[1])", "flow.searchsorted(x[0], x[1])"),
    ("flow.kron(input=x, other=x)", "flow.kron(x, x)"),
    ("flow.result_type(tensor=x, other=flow.tensor(1j)) is flow.complex64", "True"),
    ("flow.utils.data.default_collate(batch=[x, x])", "flow.stack([x, x])"),
])
def test_a_call_by_name_is_the_call_by_place(by_name, by_place):
    names = {"x": flow.tensor(X), "flow": flow}
    a, b = eval(by_name, names), eval(by_place, names)
    assert a is b if isinstance(a, bool) else (a.dtype, a.tolist()) == (b.dtype, b.tolist())


def test_files_are_saved_and_loaded_by_pytorchs_names(tmp_path):
    flow.save(obj={"x": 1}, f=tmp_path / "x.pt")
    assert flow.load(f=tmp_path / "x.pt") == {"x": 1}


def test_an_argument_that_is_given_twice_is_refused():
    x = flow.tensor(X)
    for call in (lambda: x.view(3, 2, size=(2, 3)), lambda: x.reshape(3, 2, shape=(2, 3)),
                 lambda: flow.dot(x[0], other=x[0], tensor=x[0]), lambda: x.permute(1, 0, dims=(1, 0))):
        with pytest.raises(flow.MinflowError):
            call()
