"""Classes of tensors that programs define, against PyTorch: classes of results, and the functions that are seen.

Skipped without PyTorch.
"""

import copy
import warnings

import pytest

import minflow as flow
from tests.own_classes import own_classes  # noqa: F401
from tests.pytorch import needs_torch, torch

pytestmark = [needs_torch, pytest.mark.usefixtures("own_classes")]


def classes(lib):
    """Plain, with a log of the functions that it sees, and one whose results are plain."""

    class Plain(lib.Tensor):
        pass

    class Logged(lib.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is not lib.Tensor.__repr__:
                cls.seen.append((func.__name__, [kind.__name__ for kind in types], len(args)))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Off(lib.Tensor):
        __torch_function__ = lib._C._disabled_torch_function_impl

    return Plain, Logged, Off


def name(x):
    """The name of a class; of a sequence, those of its parts."""
    if isinstance(x, tuple | list) and type(x).__name__ != "Size":
        return [name(part) for part in x]
    return "Tensor" if type(x).__name__ == "Parameter" else type(x).__name__


# Each gets the library, a tensor of the class (2, 3), and a plain one.
EXPRESSIONS = {
    "operators": lambda lib, x, y: [x + 1, 1 + x, x - y, y - x, x / 2, 2 / x, x**2, -x, abs(x), x > y, y == x, x % 2],
    "matrix products": lambda lib, x, y: [x @ y.T, y @ x.T, lib.mm(y, x.T), x.matmul(y.T), lib.einsum("ij->j", x)],
    "methods": lambda lib, x, y: [x.exp(), x.sum(), x.sum(1), x.reshape(6), x.clamp(0, 1), y.add(x), y.mul(x), x.cpu()],
    "functions": lambda lib, x, y: [lib.exp(x), lib.add(y, x), lib.cat([y, x]), lib.stack([x, x]), lib.zeros_like(x)],
    "layers": lambda lib, x, y: [lib.nn.Linear(3, 2)(x), lib.nn.ReLU()(x), lib.nn.functional.softmax(x, -1)],
    "several results": lambda lib, x, y: [x.split(1), lib.chunk(x, 2), list(x), x.unbind(1), x.max(0), lib.topk(x, 1)],
    "parts": lambda lib, x, y: [x[0], x[:, 1], x[x > 0], x.T, x.mT, x.data, x.detach(), x.clone(), x.real],
    "properties": lambda lib, x, y: [x.shape, x.ndim, x.requires_grad, x.is_leaf, x.numel(), x.sum().item()],
    "in place": lambda lib, x, y: [x.add_(1), x.mul_(y), x.zero_(), y.add_(x)],
    "views": lambda lib, x, y: [x.as_subclass(lib.Tensor), y.as_subclass(type(x)), x.as_subclass(lib.Tensor).exp()],
    "type": lambda lib, x, y: [x.double(), x.to(lib.float64), x.long(), x.type_as(y), y.to(x)],
    "new": lambda lib, x, y: [x.new_zeros(2), lib.ones_like(x), copy.copy(x)],
    "no override": lambda lib, x, y: [without(lib, lambda: [x + 1, x.T, lib.exp(x), x.add_(1)])],
}


def without(lib, run):
    with lib._C.DisableTorchFunctionSubclass():
        return run()


def tensors(lib, kind):
    elements = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
    return lib.tensor(elements).as_subclass(kind), lib.tensor(elements) + 1


def result_of(lib, expression, which):
    kind = classes(lib)[which]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return name(expression(lib, *tensors(lib, kind))), getattr(kind, "seen", None)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("case", EXPRESSIONS)
def test_classes_of_results(case, which):
    ours, theirs = [result_of(lib, EXPRESSIONS[case], which)[0] for lib in (flow, torch)]
    assert ours == theirs


SEEN = """x + 1|1 + x|x - 1|y + x|y - x|x * y|x / 2|x**2|-x|abs(x)|x > 0|x == 0|x % 2|x // 2|x @ y.T|lib.exp(x)|x.exp()
lib.sum(x, dim=1)|x.sum(1)|x[0]|x.T|x.shape|x.requires_grad|len(x)|float(x.sum())|repr(x)|str(x)|lib.cat([y, x])
y.add(x)|lib.zeros_like(x)|x.to(lib.float64)|x.detach()|lib.nn.Linear(3, 2)(x)|x.size()|x.is_floating_point()
lib.is_tensor(x)|hash(x)|lib.equal(x, x)|lib.where(x > 0, x, y)|x.item|x.numel()|x.as_subclass(lib.Tensor)"""


@pytest.mark.parametrize("source", SEEN.replace("\n", "|").split("|"))
def test_functions_that_a_class_sees(source):
    seen = []
    for lib in (flow, torch):
        kind = classes(lib)[1]
        x, y = tensors(lib, kind)
        kind.seen.clear()
        eval(source, {"lib": lib, "x": x, "y": y})
        seen.append(kind.seen)
    assert seen[0] == seen[1]


def related(lib):
    class A(lib.Tensor):
        pass

    class B(A):
        pass

    class Other(lib.Tensor):
        pass

    return [lib.ones(2).as_subclass(kind) for kind in (A, B, Other)]


def test_the_lowest_class_wins():
    for lib in (flow, torch):
        a, b, other = related(lib)
        assert [name(y) for y in (a + b, b + a, lib.add(a, b), lib.cat([a, b]))] == ["B"] * 4
        for refused in (lambda: lib.add(a, other), lambda: a.mul(other), lambda: a + other):  # noqa: B023
            with pytest.raises(TypeError):
                refused()


def gradients(lib):
    plain = lib.tensor([1.0, 2.0], requires_grad=True)
    kind = classes(lib)[0]
    view, leaf = plain.as_subclass(kind), lib.tensor([3.0, 4.0]).as_subclass(kind).requires_grad_()
    ((view * leaf) ** 2).sum().backward()
    made = lib.Tensor._make_subclass(kind, plain, True)
    shown = [view.is_leaf, leaf.is_leaf, made.is_leaf, made.requires_grad, name(made)]
    return [plain.grad.tolist(), leaf.grad.tolist(), name(plain.grad), name(leaf.grad), *shown]


def test_gradients():
    assert gradients(flow) == gradients(torch)


def constructed(lib):
    class WithMeta(lib.Tensor):
        def __new__(cls, x, meta, *args, **kwargs):
            return super().__new__(cls, x, *args, **kwargs)

        def __init__(self, x, meta):
            super().__init__()
            self.meta = meta

    class Cast(lib.Tensor):
        def __new__(cls, x, **kwargs):
            made = lib.as_tensor(x).as_subclass(cls)
            vars(made).update(kwargs)
            return made

    class Weight(lib.nn.Parameter):
        def __new__(cls, data, scale=2.0):
            made = lib.Tensor._make_subclass(cls, data, True)
            made.scale = scale
            return made

    class Both(Cast, lib.nn.Parameter):
        pass

    a, b, c, d = WithMeta([1, 2], "m"), Cast([3, 4], size=5), Weight(lib.ones(2)), classes(lib)[0]([6.0])
    whole = classes(lib)[0](lib.tensor([7]))
    module = lib.nn.Module()
    module.weight = c
    values = [x.tolist() for x in (a, b, c, d, whole)]
    classes_of_results = [name(y) for y in (a.clone(), b * 2, c * 2, d + 1, whole + 1)]
    both = Both(lib.ones(1))
    names = [key for key, _ in module.named_parameters()]
    facts = [a.meta, b.size, c.scale, c.requires_grad, names, hasattr(a.clone(), "meta"), name(both * 2), name(both)]
    return values, classes_of_results, facts


def test_constructors():
    assert constructed(flow) == constructed(torch)


def custom_function(lib):
    seen = []

    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append(name(x * x))
            return x * x

        @staticmethod
        def backward(ctx, g):
            seen.extend([name(ctx.saved_tensors[0]), name(g)])
            return 2 * g * ctx.saved_tensors[0]

    x = lib.tensor([3.0]).as_subclass(classes(lib)[0]).requires_grad_()
    y = Square.apply(x)
    y.sum().backward()
    return name(y), x.grad.tolist(), seen


def test_custom_functions():
    assert custom_function(flow) == custom_function(torch)


def overrides(lib):
    x, y = tensors(lib, classes(lib)[0])
    o = lib.overrides

    @o.wrap_torch_function(lambda a, b: (a, b))
    def own(a, b):
        return lib.add(a, b)

    has = [o.has_torch_function((z,)) for z in (x, y, lib.nn.Parameter(y), 3)]
    like = [o.is_tensor_like(z) for z in (x, y, 3)]
    methods = [o.is_tensor_method_or_property(f) for f in (lib.Tensor.add, lib.Tensor.shape.__get__, lib.add)]
    enabled = lib._C._is_torch_function_enabled(), without(lib, lib._C._is_torch_function_enabled)
    return has, like, methods, enabled, [name(own(x, y)), name(own(y, y))]


def test_overrides():
    assert overrides(flow) == overrides(torch)
