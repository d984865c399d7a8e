"""Whatever a public function, method or layer is called with: it answers, or raises an error that has four parts.

Each parameter gets a value that fits its name, then one after the other what does not fit; no case is written down, so
a new name is met too. What is right and what PyTorch refuses is told elsewhere: `tests/fuzz`.
"""

import inspect
import math
import warnings

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import InternalError, MinflowError

warnings.simplefilter("ignore")


class Picture:
    """As much of a PIL image as a mistake needs: no tensor, no array, no number."""

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
FITTING = {  # by the name of a parameter; a tensor else
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
    enable_eager_execution function_config jobs assign backward numpy register_hook data_ptr numbers home one
    uniform filled fail erfinv set_num_threads DataParallel DistributedDataParallel""".split()
)  # files, settings, jobs and screens have tests of their own
METHODS = {
    f"Tensor.{n}": f for n, f in inspect.getmembers(flow.Tensor, callable) if n[0] != "_" and not inspect.isclass(f)
}
LAYERS = {
    n: f for n in dir(nn)
    if inspect.isclass(f := getattr(nn, n)) and issubclass(f, nn.Module) and f not in (nn.Module, nn.Graph)
}
FUNCTIONS = {
    f"{face}{n}": f
    for face, room in {"": flow, "F.": nn.functional, "linalg.": flow.linalg, "init.": nn.init}.items()
    for n, f in vars(room).items()
    if n[0] != "_" and inspect.isroutine(f) and (face != "init." or n[-1] == "_")
}
CALLS = {n: f for n, f in {**FUNCTIONS, **METHODS, **LAYERS}.items() if n.rpartition(".")[2] not in ELSEWHERE}


def attempt(call, *args) -> str:
    """What went wrong in a wrong way."""
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


@pytest.mark.parametrize("name", CALLS)
def test_every_error_has_four_parts(name):
    function = CALLS[name]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    names, least = [p.name for p in parameters], sum([p.default is p.empty and p.kind is kinds[0] for p in parameters])
    seen = {}
    for k in range(max(len(names), 1)):
        for text, wrong in WRONG.items():
            args = [FITTING.get(n, x)() for n in names[: max(k + 1, least)]]
            if names and not (k == 0 and name.startswith("Tensor.")):
                args[k] = wrong()
            if seen_here := attempt(function, *args):
                seen[f"{names[k]}={text}"] = seen_here
    if name in LAYERS and not seen:
        layer = next((made for made in map(made_layer(function), (0, 1, 2, 3)) if made is not None), None)
        for text, wrong in WRONG.items() if layer is not None else ():
            if name not in ("Identity", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"):
                seen |= {
                    f"layer({text})": said
                    for said in [attempt(layer, *[wrong()] * (1 + name.endswith("Loss")))]
                    if said
                }
    assert not seen


def made_layer(kind):
    """A layer of this class, of so many arguments."""

    def made(count: int):
        names = list(inspect.signature(kind).parameters)[:count]
        try:
            return kind(*[FITTING.get(n, lambda: 2)() for n in names])
        except (MinflowError, TypeError):
            return None

    return made


def test_what_the_learner_raises_is_left_as_it_is():
    class Odd:
        def __array__(self, *args, **options):
            raise KeyError("mine")

    for call in (lambda: flow.tensor(Odd()), lambda: flow.as_tensor([Odd()]), lambda: x() + flow.tensor(Odd())):
        with pytest.raises(KeyError, match="mine") as caught:
            call()
        assert type(caught.value) is KeyError
    with pytest.raises(KeyError, match="mine"):
        flow.autograd.gradcheck(lambda a: Odd().__array__(), [flow.ones(2, dtype=flow.float64, requires_grad=True)])


@pytest.mark.parametrize(("call", "words"), [
    (
        lambda: nn.Flatten()(np.zeros((3, 4))),
        r"(?s)the input is no tensor but ndarray of float64, shape \[3, 4\].*flow.from_numpy"
    ),
    (lambda: nn.Flatten()(Picture()), r"(?s)the input is no tensor but Picture.*Try: transforms.ToTensor"),
    (lambda: flow.cos(0), r"(?s)^cos: of int, where a tensor is wanted.*x  0"),
    (lambda: flow.eye(-1), r"(?s)^flow.eye: negative.*n  -1.*Try: flow.eye\(n, m=None"),
    (lambda: flow.arange(math.nan), r"(?s)^arange from 0 to nan by 1.*end"),
    (lambda: flow.zeros(10**6, 10**6), r"(?s)^full: the result, float32.1000000, 1000000., needs 4,000.0 GB of memory"),
    (
        lambda: nn.functional.dropout(x(), "x"),
        r"(?s)^nn.functional.dropout: p is str, where a number is wanted.*p  'x'"
    ),
    (lambda: flow.gather(x(), 0, 3), r"(?s)^flow.gather: the index is no tensor but int.*index  3"),
    (lambda: x().sum(keepdim="x"), r"(?s)^Tensor.sum: keepdim is str, where True or False is wanted.*'x'"),
    (lambda: x().expand_as(3), r"(?s)^expand_as: the other is no tensor but int.*other  3"),
    (lambda: nn.utils.clip_grad_norm_([nn.Parameter(x())], "x"), r"(?s)max_norm is str, where a number is wanted.*'x'"),
])  # fmt: skip
def test_the_wrong_argument_is_named(call, words):
    with pytest.raises(MinflowError, match=words) as caught:
        call()
    assert "test_wrong_arguments.py" in caught.value.where and caught.value.hint


def test_a_rate_that_is_no_number_is_named_in_eager_and_in_a_graph():
    layer = nn.Linear(2, 1)
    sgd = flow.optim.SGD(layer.parameters(), lr=0.1)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer = layer
            self.add_optimizer(sgd)

        def build(self, x):
            loss = self.layer(x).sum()
            loss.backward()
            return loss

    graph = Train()
    graph(flow.ones(3, 2))
    before = layer.weight.tolist()
    for wrong in ("x", None, [1]):
        for step in (lambda: graph(flow.ones(3, 2)), sgd.learning_rates):
            sgd.param_groups[0]["lr"] = wrong
            with pytest.raises(MinflowError, match=r"(?s)SGD: the learning rate of a group is .*lr") as caught:
                step()
            assert "test_wrong_arguments.py" in caught.value.where
    assert layer.weight.tolist() == before
    sgd.param_groups[0]["lr"] = 0.1
    graph(flow.ones(3, 2))
