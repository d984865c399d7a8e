"""Every public callable: one test per word, such as `relu` for `F.relu`, `Tensor.relu_` and `nn.ReLU`.

Each call returns what PyTorch returned, answers wrong arguments with a four-part error, accepts PyTorch's keywords,
writes into out=, and behaves like a Python function. The lists are read from the package, so new names are included.
Without `--complete` only a share of the recorded programs and of the wrong arguments is run.
"""

import contextlib
import copy
import importlib
import inspect
import itertools
import math
import pickle
import pydoc
import warnings
from collections import defaultdict
from fnmatch import fnmatchcase

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base import out as base
from minflow.core.base.errors import InternalError, MinflowError
from minflow.core.messages.renamed import RENAMED_ARGUMENTS
from minflow.core.op import Op
from tests.cases import Cases
from tests.fuzz.calls import call_of, called_names
from tests.oracle import signatures
from tests.oracle.recorded import as_recorded
from tests.sampling import sampled

# ---- functions behave as in Python -----------------------------------------------------------------------------------

FACES = {
    "flow": flow,
    "flow.nn.functional": nn.functional,
    "flow.nn.init": nn.init,
    "flow.nn.utils": nn.utils,
    "flow.linalg": flow.linalg,
    "flow.special": flow.special,
    "flow.fft": flow.fft,
    "flow.autograd": flow.autograd,
    "flow.math": flow.math,
    "flow.layers": flow.layers,
    "flow.random": flow.random,
}
FUNCTIONS = {
    f"{face}.{name}": getattr(holder, name)
    for face, holder in FACES.items()
    for name in dir(holder)
    if not name.startswith("_") and inspect.isroutine(getattr(holder, name))
}


def is_a_function(name: str) -> None:
    """Check its name, module, signature, help and copies. Ops are objects, but they must look like functions."""
    function = FUNCTIONS[name]
    home = importlib.import_module(function.__module__)
    assert getattr(home, function.__qualname__) is function and function.__name__ == function.__qualname__
    outer, inner = inspect.signature(function), inspect.signature(inspect.unwrap(function))
    own = [p for p in outer.parameters.values() if p.name != "name" or p.name in inner.parameters]  # legacy: name=
    assert outer.replace(parameters=own) == inner
    text = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert f"{function.__name__}(" in text and (function.__doc__ or "").split("\n")[0].strip() in text
    assert copy.copy(function) is function and copy.deepcopy([function]) == [function]
    assert pickle.loads(pickle.dumps(function)) is function


# ---- wrong arguments -------------------------------------------------------------------------------------------------


class Picture:
    """The part of a PIL image that a mistake needs: neither a tensor, nor an array, nor a number."""

    def getbands(self):
        return ("L",)


def x(*shape: int):
    return (flow.arange(math.prod(shape or (3, 4))) % 7 / 7 + 0.1).reshape(shape or (3, 4))


WRONG = {
    "None": lambda: None, "'x'": lambda: "x", "[1, 2]": lambda: [1, 2], "['a']": lambda: ["a"], "[]": list, "{}": dict,
    "array": lambda: np.ones((3, 4), "float32"), "Picture": Picture, "2": lambda: 2, "0": lambda: 0, "-1": lambda: -1,
    "-100": lambda: -100, "10**30": lambda: 10**30, "1.5": lambda: 1.5, "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "True": lambda: True, "1j": lambda: 1j, "object": object, "0-d": lambda: flow.tensor(1.5),
    "5-d": lambda: x(1, 2, 1, 2, 1),
    "empty": lambda: flow.zeros(0, 3), "ints": lambda: flow.tensor([[1, 2, 0], [0, 1, 2]]), "bools": lambda: x() > 0.5,
    "float64": lambda: x().double(), "(0, 0)": lambda: (0, 0), "(9, -9)": lambda: (9, -9), "(None,)": lambda: (None,),
    "[x, 1]": lambda: [x(), 1], "layer": lambda: nn.Linear(2, 2),
}  # fmt: skip
FITTING = {  # by the name of a parameter; otherwise a tensor
    **dict.fromkeys("dim axis dim0 start offset diagonal p a low alpha beta n m".split(), lambda: 0),
    **dict.fromkeys(
        "dim1 dim2 k chunks repeats shifts length decimals high end num_classes groups end_dim".split(), lambda: 1
    ),
    **dict.fromkeys("mask condition".split(), lambda: x() > 0.5),
    **dict.fromkeys("index indices".split(), lambda: flow.tensor([[0, 1, 1, 0]])),
    **dict.fromkeys("mat2 mat1 batch1".split(), lambda: x(4, 2)),
    **dict.fromkeys("size shape sizes dims normalized_shape".split(), lambda: (3, 4)),
    **dict.fromkeys("kernel_size stride output_size dilation".split(), lambda: 2),
    **dict.fromkeys(
        "in_features out_features in_channels out_channels num_features num_embeddings embedding_dim".split(), lambda: 4
    ),
    "tensors": lambda: [x(), x()],
}
ELSEWHERE = set(
    """save load show start timeline summary watch watch_diff set_printoptions manual_seed seed set_rng_state
    set_default_dtype
    set_grad_enabled sync_default_session clear_default_session get_variable global_function get_all_variables
    load_variables
    enable_eager_execution function_config jobs assign backward numpy register_hook data_ptr read_array grad_owner
    scalar_element uniform filled fail erfinv set_num_threads DataParallel DistributedDataParallel""".split()
)  # files, settings, jobs and displays have tests of their own
METHODS = {
    f"Tensor.{n}": f for n, f in inspect.getmembers(flow.Tensor, callable) if n[0] != "_" and not inspect.isclass(f)
}
LAYERS = {
    n: f
    for n in dir(nn)
    if inspect.isclass(f := getattr(nn, n)) and issubclass(f, nn.Module) and f not in (nn.Module, nn.Graph)
}
CALLS = {
    f"{face}{n}": f
    for face, room in {"": flow, "F.": nn.functional, "linalg.": flow.linalg, "init.": nn.init}.items()
    for n, f in vars(room).items()
    if n[0] != "_" and inspect.isroutine(f) and (face != "init." or n[-1] == "_")
}
CALLS |= METHODS | LAYERS
# they accept any arguments
CONTAINERS = "Identity Sequential ModuleList ModuleDict ParameterList ParameterDict".split()
SHARE = 0.15  # of the wrong values, without --complete
BY_PLACE, REST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


def attempt(call, *args) -> str:
    """Return how an error violates the rules, if it does."""
    try:
        with flow.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*args)
    except InternalError as error:
        return f"InternalError: {error.what}"
    except MinflowError as error:
        return "" if str(error) and error.where else f"no line: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refuses_or_answers(name: str) -> None:
    """Pass each parameter a value that fits its name, then one wrong value at a time: the call must return or raise a
    four-part error.

    `tests/fuzz` checks which calls are right and which ones PyTorch refuses.
    """
    function, seen = CALLS[name], {}
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in (BY_PLACE, REST)]
    names, least = [p.name for p in parameters], sum(p.default is p.empty and p.kind is BY_PLACE for p in parameters)
    pairs = list(itertools.product(range(max(len(names), 1)), WRONG))
    for k, text in sampled(pairs, SHARE, lambda pair: f"{name} {pair}"):
        args = [FITTING.get(n, x)() for n in names[: max(k + 1, least)]]
        if names and not (k == 0 and name.startswith("Tensor.")):
            args[k] = WRONG[text]()
        if said := attempt(function, *args):
            seen[f"{names[k]}={text}"] = said
    if name in LAYERS and name not in CONTAINERS and not seen:
        layer = made_layer(function)
        for text in sampled(WRONG, SHARE, lambda text: f"layer {name} {text}") if layer is not None else ():
            if said := attempt(layer, *[WRONG[text]()] * (1 + name.endswith("Loss"))):
                seen[f"layer({text})"] = said
    assert not seen, "\n".join(f"{call}: {said}" for call, said in seen.items())


def made_layer(kind):
    """Construct a layer of this class with as few arguments as possible; None if three are not enough."""
    for count in range(4):
        names = list(inspect.signature(kind).parameters)[:count]
        with contextlib.suppress(MinflowError, TypeError):
            return kind(*[FITTING.get(n, lambda: 2)() for n in names])


# ---- PyTorch's argument names ----------------------------------------------------------------------------------------

THEIRS = signatures.read()
REFUSED = {  # function -> (arguments that minflow refuses, why)
    **dict.fromkeys(("addmm", "baddbmm", "bmm", "mm"), ("out_dtype", "PyTorch takes it on CUDA alone")),
    **dict.fromkeys(("lstm", "gru", "rnn_relu", "rnn_tanh"), ("data batch_sizes", "nn.LSTM takes a PackedSequence")),
    "autograd.gradcheck": (
        "nondet_tol check_undefined_grad check_grad_dtypes check_batched_grad masked fast_mode "
        "check_batched_forward_grad check_forward_ad check_backward_ad",
        "it makes one check",
    ),
    "compile": ("name isolate_recompiles recompile_limit shapes_spec", "they are about TorchDynamo"),
    "nn.UninitializedBuffer": ("persistent", "register_buffer says it"),
    **dict.fromkeys(("enable_grad", "autograd.enable_grad"), ("orig_func", "its own, when it decorates")),
    "TypedStorage": ("device dtype wrap_storage", "a storage shows the memory of a tensor"),
    "Tensor.new": ("storage", "there are no storages apart from tensors"),
    "Tensor.dim_order": ("ambiguity_check", "there is one memory format"),
    "range": ("end step device requires_grad pin_memory", "the name is that of the first generation"),
}


def ours(name: str):
    """Return the minflow object of that name, or None."""
    owner = flow
    for part in name.split("."):
        owner = inspect.getattr_static(owner, part, None) if owner is flow.Tensor else getattr(owner, part, None)
    return getattr(owner, "__wrapped__", owner) if isinstance(getattr(owner, "__wrapped__", None), Op) else owner


def known(name: str, it) -> set[str]:
    """Return the keywords that it accepts."""
    spoken = name if "." in name else f"flow.{name}"
    words = {
        word.split("=")[0]
        for names, text in RENAMED_ARGUMENTS.items()
        for word in text.split()
        if any(fnmatchcase(spoken, pattern) for pattern in names.split())
    }
    if isinstance(it, Op):
        return words | {*it.inputs, *it.attrs, "input", "other"}
    try:
        parameters = inspect.signature(it).parameters.values()
    except (TypeError, ValueError):
        return words
    return words | {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def takes_keywords(name: str) -> None:
    """Check that PyTorch's argument names work, or that there is a reason why one does not."""
    it = ours(name)
    missing = set(THEIRS[name]) - known(name, it)
    if missing == {"size_average", "reduce"}:  # of every loss, by a decorator; tests/nn checks that it works
        if isinstance(it, type):
            with warnings.catch_warnings(action="ignore"):
                assert it(size_average=True, reduce=False).reduction == "none"
        missing = set()
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(it).parameters.values()):
        missing = set()  # it passes them on
    refused = set(REFUSED[name][0].split()) if name in REFUSED else set()
    assert missing == refused


# ---- out= ------------------------------------------------------------------------------------------------------------


def writes_out(name: str) -> None:
    """Compare a random call of the fuzzer with the same call that writes into tensors of its shapes."""
    for dtype, seed in itertools.product(("float32", "int64"), range(20)):
        lines = call_of(
            name, f"out {seed}", valid=True, grad=False, profile="unit" if dtype == "float32" else "ties", dtype=dtype
        )
        try:
            result = run(lines)
        except MinflowError:
            continue
        single = isinstance(result, flow.Tensor)
        places = [flow.zeros_like(t) for t in ([result] if single else result)]
        call = lines[-1][:-1] + ("" if lines[-1].endswith("()") else ", ")
        found = run([*lines[:-1], f"{call}out=o)"], places[0] if single else tuple(places))
        for place, written, want in zip(places, [found] if single else found, [result] if single else result):
            assert written is place
            if name != "empty":
                np.testing.assert_array_equal(place.numpy(), want.numpy())
        return
    pytest.fail("no call that is right")


def run(lines, o=None):
    flow.manual_seed(0)
    space = {"L": flow, "np": np, "inf": math.inf, "nan": math.nan, "o": o}
    exec("\n".join(lines), space)
    return space["r"]


# ---- one test per word -----------------------------------------------------------------------------------------------

CHECKS = {  # function name -> names
    as_recorded: called_names(),
    refuses_or_answers: [n for n in CALLS if n.rpartition(".")[2] not in ELSEWHERE],
    takes_keywords: [n for n in THEIRS if callable(ours(n)) and not isinstance(ours(n), property)],
    writes_out: sorted(base.NAMES & set(called_names())),
    is_a_function: FUNCTIONS,
}


def calls() -> dict[str, list[tuple]]:
    """Return word -> (check, name) for every name that ends with it, ignoring namespace, case and underscores."""
    found = defaultdict(list)
    for check, names in CHECKS.items():
        for name in names:
            found[name.rpartition(".")[2].strip("_").lower()].append((check, name))
    return dict(sorted(found.items()))


WORD_CALLS = calls()


@pytest.mark.parametrize("word", WORD_CALLS)
def test_call(word):
    with Cases() as case:
        for check, name in WORD_CALLS[word]:
            with case(f"{name} {check.__name__}"):
                check(name)


def test_every_kind_of_name_is_checked():
    """The lists are not empty, and the public namespaces contain no other kind of object."""
    assert [len(names) > least for names, least in zip(CHECKS.values(), (1300, 1200, 1000, 200, 800))] == [True] * 5
    kinds = [type(f).__name__ for f in FUNCTIONS.values()]
    assert kinds.count("NamedOp") > 30 and kinds.count("function") > 200
    assert set(kinds) <= {"NamedOp", "function", "builtin_function_or_method"}
    odd = [
        n
        for n, v in vars(flow).items()
        if callable(v) and n[0] != "_" and not isinstance(v, type) and not inspect.isroutine(v)
    ]
    assert odd == []


def test_broken_call_is_detected(monkeypatch):
    def broken(x):
        raise KeyError(x)

    monkeypatch.setitem(FUNCTIONS, "flow.broken", broken)
    with pytest.raises(AttributeError, match="broken"):
        is_a_function("flow.broken")
    monkeypatch.setitem(CALLS, "broken", broken)
    with pytest.raises(AssertionError, match="x=.*: KeyError"):
        refuses_or_answers("broken")
    monkeypatch.setitem(THEIRS, "exp", ["input", "dimension"])
    with pytest.raises(AssertionError, match="dimension"):
        takes_keywords("exp")
    monkeypatch.setattr(flow, "exp", lambda x, out=None: x * 1)
    with pytest.raises(AssertionError):
        writes_out("exp")


def test_op_as_class_attribute_is_not_bound():
    class Layer(flow.nn.Module):
        activation = flow.exp

        def forward(self, x):
            return self.activation(x)

    assert Layer()(flow.zeros(2)).tolist() == [1, 1]


def test_signatures_match_accepted_arguments():
    assert str(inspect.signature(flow.exp)) == "(x)"
    assert str(inspect.signature(flow.maximum)) == "(a, b)"
    assert str(inspect.signature(flow.core.op.OPS["sum"])) == "(x, *, axis, keepdims)"
    assert str(inspect.signature(flow.core.op.OPS["cat"])) == "(*tensors, dim)"
    assert flow.exp.__module__ == "minflow.core.ops.elementwise"
